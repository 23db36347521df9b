"""IBM models 2 to 5 as steps of training: tables of positions, and what `climbing` counts as fertilities.

Climbing starts from the alignment of the iteration before; in a new text from that of an exact model within.

Shapes: as in `climbing`; H pairs of lengths, Q positions: of each pair a matrix [m, l + 1], NULL first.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from dragoman_training.alignment import models
from dragoman_training.alignment.bitext import Ids, Numbers, Offsets
from dragoman_training.alignment.hmm import TIED_JUMPS, maximize_weights
from dragoman_training.alignment.models import Arrays, Direction, Model, Model1, Posteriors, Shapes, Step
from dragoman_training.classics.climbing import NEVER, Counts, Parameters, Text, collect
from dragoman_training.classics.word_classes import learn_classes

NUM_FERTILITIES = 10
"""The number of fertilities, from 0 on. More words of one source word are next to impossible."""
NUM_CLASSES = 50
MAX_WORDS = 100
"""A longer sentence keeps the alignment that climbing would start from."""
MAX_ALIGNMENTS = 100
"""A sentence pair with so many is summed over all of them."""
TENSION = 8.0
"""How steeply a place of model 3 without counts falls off beside the diagonal."""


@dataclass(frozen=True, eq=False)
class PositionTable:
    """A number for each position of the pairs of lengths that a model was trained on."""

    source_size_H: Offsets
    target_size_H: Offsets
    position_Q: Numbers

    def positions(self, shapes: Shapes, otherwise_Q: Numbers) -> Numbers:
        """Those of other sentences, of `otherwise_Q` where the table lacks a pair of lengths."""
        ends = np.cumsum((self.source_size_H + 1) * self.target_size_H)
        sizes = zip(self.source_size_H.tolist(), self.target_size_H.tolist(), strict=True)
        end_by_size = dict(zip(sizes, ends.tolist(), strict=True))
        result_Q = otherwise_Q.copy()
        own_sizes = zip(shapes.source_size_H.tolist(), shapes.target_size_H.tolist(), strict=True)
        for shape, size in enumerate(own_sizes):
            first, end = shapes.first_H[shape], shapes.first_H[shape + 1]
            if (own := end_by_size.get(size)) is not None:
                result_Q[first:end] = self.position_Q[own - (end - first) : own]
        return result_Q

    def arrays(self, name: str) -> Arrays:
        """The table as it is saved, its numbers under a name."""
        sizes = {"source_size": self.source_size_H, "target_size": self.target_size_H}
        return {**sizes, name: self.position_Q.astype(np.float32)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, name: str) -> "PositionTable":
        """The table that `arrays` saved."""
        return cls(arrays["source_size"], arrays["target_size"], arrays[name].astype(np.float64))


@dataclass(frozen=True, eq=False)
class Model2(models.PositionModel):
    """Brown et al. 1993, section 4.2: a table for each pair of lengths."""

    KIND = "ibm2"

    table: PositionTable | None = None
    """None before the first step: all positions are alike."""

    def positions(self, shapes: Shapes) -> Numbers:
        """Those of the table. A pair of lengths that was never seen has the diagonal's. [Q]"""
        if self.table is None:
            return Model1().positions(shapes)
        return self.table.positions(shapes, models.DiagonalModel().positions(shapes))

    def estimated(self, shapes: Shapes, count_Q: Numbers) -> "Model2":
        """Relative frequencies (eq. 27, normalised)."""
        position_Q = models.normalize(count_Q, shapes.row_Q)
        return Model2(PositionTable(shapes.source_size_H, shapes.target_size_H, position_Q))

    def arrays(self) -> Arrays:
        assert self.table is not None
        return self.table.arrays("position")

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        return cls(PositionTable.from_arrays(arrays, "position"))


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Counts in addition to those of the corpus."""

    fertility: float = 10.0
    """The count of each word's fertilities, spread as those of all words are."""
    place: float = 5.0
    """The count of each source position in model 3, along the diagonal."""
    class_jump: float = 20.0
    """The count of each class's jumps, spread as those of all classes are."""
    jump: float = 0.1
    """The count of each jump."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FertilityModel(Model):
    """What models 3 to 5 have in common; each uses the tables of its own distortion."""

    NUMBER: ClassVar[int]

    start: Model
    null: float
    """p1."""
    fertility_VF: Numbers
    place: PositionTable | None
    """Model 3's d."""
    source_class_V: Ids
    target_class_V: Ids
    head_ABD: Numbers
    """Model 4's log d1, model 5's weights."""
    tail_BD: Numbers
    priors: Priors = Priors()
    max_alignments: int = MAX_ALIGNMENTS
    alignment_U: Ids | None = None
    """The best alignment so far, in training."""

    @classmethod
    def after(cls, before: Model | None, direction: Direction, lexicon_P: Numbers) -> Self:
        """A model from the counts of the alignment of the model before."""
        before = before or Model1()
        start, alignment_U = before, None
        if isinstance(before, FertilityModel):
            start, alignment_U = before.start, before.alignment_U
        if alignment_U is None:
            alignment_U = before.viterbi(direction, lexicon_P)
        source, target = direction.bitext.source, direction.bitext.target
        if cls.NUMBER == 3:
            class_V, target_class_V = (np.zeros(side.num_words + 1, np.int32) for side in (source, target))
        elif isinstance(before, FertilityModel) and before.NUMBER > 3:
            class_V, target_class_V = before.source_class_V, before.target_class_V
        else:
            class_V, target_class_V = (learn_classes(side, NUM_CLASSES) for side in (source, target))
        longest = int(max(MAX_WORDS, source.size_S.max(initial=0), target.size_S.max(initial=0)))
        num_heads = int(class_V.max(initial=0)) + 2 if cls.NUMBER == 4 else 1
        num_classes = int(target_class_V.max(initial=0)) + 1
        weight = float(cls.NUMBER == 5)
        flat = cls(
            start=start,
            null=0.1,
            fertility_VF=np.full((source.num_words + 1, NUM_FERTILITIES), 1 / NUM_FERTILITIES),
            place=None,
            source_class_V=class_V,
            target_class_V=target_class_V,
            head_ABD=np.full((num_heads, num_classes, 2 * longest + 1), weight),
            tail_BD=np.full((num_classes, 2 * longest + 1), weight),
        )
        alignment_U = alignment_U.copy()
        counts, posterior_L, _ = flat.collect(direction, lexicon_P, alignment_U, climb=False)
        return flat._estimated(direction, counts, posterior_L, alignment_U)

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        own_U = self.alignment_U
        alignment_U = self.start.viterbi(direction, lexicon_P) if own_U is None else own_U.copy()
        counts, posterior_L, log_likelihood = self.collect(direction, lexicon_P, alignment_U)
        pair_P = np.bincount(direction.links.pair_L, posterior_L, len(lexicon_P)).astype(float)
        after = self._estimated(direction, counts, posterior_L, alignment_U)
        return Step(pair_P, posterior_L, log_likelihood, after)

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        return self.collect(direction, lexicon_P, self.start.viterbi(direction, lexicon_P))[1]

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        alignment_U = self.start.viterbi(direction, lexicon_P)
        self.collect(direction, lexicon_P, alignment_U)
        return alignment_U

    def collect(
        self, direction: Direction, lexicon_P: Numbers, alignment_U: Ids, *, climb: bool = True
    ) -> tuple[Counts, Posteriors, float]:
        """Counts, posteriors and log-likelihood, over better alignments, which replace those given."""
        max_words, num_classes = self.tail_BD.shape[1] // 2, len(self.tail_BD)
        room = max_words + 2 if self.NUMBER == 5 else 0
        sizes = (num_classes, room, room), (num_classes, room)
        tables = map(np.zeros_like, (self.fertility_VF, self.head_ABD, self.tail_BD))
        counts = Counts._make([*tables, *map(np.zeros, sizes)])
        log_place_Q, first_place_S = np.empty(0), np.empty(0, np.int64)
        if self.NUMBER == 3:
            shapes = direction.shapes
            place_Q = _places(shapes, np.zeros(len(shapes.row_Q)), 1.0)
            if self.place is not None:
                place_Q = self.place.positions(shapes, place_Q)
            log_place_Q, first_place_S = _log(place_Q), shapes.first_H[shapes.shape_S]
        text = Text(
            links=direction.links,
            source_N=direction.source_N,
            source_class_N=self.source_class_V[direction.source_N],
            target_class_U=self.target_class_V[direction.target_U],
            log_place_Q=log_place_Q,
            first_place_S=first_place_S,
        )
        limits = (self.max_alignments if climb else -1, max_words)
        return counts, *collect(self.parameters(), counts, text, lexicon_P, alignment_U, *limits)

    def parameters(self) -> Parameters:
        """The tables as `walk` reads them."""
        log_null, log_not_null = np.log([max(self.null, 1e-300), max(1 - self.null, 1e-300)]).tolist()
        log_fertility_VF = _log(self.fertility_VF)
        if self.NUMBER == 3:
            log_fertility_VF += np.cumsum(np.log(np.maximum(np.arange(self.fertility_VF.shape[1]), 1)))
        return Parameters(self.NUMBER, log_null, log_not_null, log_fertility_VF, self.head_ABD, self.tail_BD)

    def _estimated(
        self, direction: Direction, counts: Counts, posterior_L: Posteriors, alignment_U: Ids
    ) -> Self:
        common_F = counts.fertility_VF.sum(axis=0) + self.priors.jump
        own_VF = counts.fertility_VF + self.priors.fertility * common_F / common_F.sum()
        after = replace(self, fertility_VF=own_VF / own_VF.sum(1, keepdims=True), alignment_U=alignment_U)
        return after._with_distortion(direction, counts, posterior_L)

    @abstractmethod
    def _with_distortion(self, direction: Direction, counts: Counts, posterior_L: Posteriors) -> Self:
        """This model with tables, made from counts, that say where words go."""

    def arrays(self) -> Arrays:
        return {
            "start": np.array(self.start.KIND),
            **{f"start.{key}": array for key, array in self.start.arrays().items()},
            "null": np.array(self.null),
            "fertility": self.fertility_VF.astype(np.float32),
            "source_class": self.source_class_V,
            "target_class": self.target_class_V,
            "head": self.head_ABD.astype(np.float32),
            "tail": self.tail_BD.astype(np.float32),
            **(self.place.arrays("place") if self.place is not None else {}),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        start = {key.removeprefix("start."): array for key, array in arrays.items() if key[:6] == "start."}
        return cls(
            start=models.model_kind(str(arrays["start"])).from_arrays(start),
            null=float(arrays["null"]),
            fertility_VF=arrays["fertility"].astype(np.float64),
            place=PositionTable.from_arrays(arrays, "place") if cls.NUMBER == 3 else None,
            source_class_V=arrays["source_class"],
            target_class_V=arrays["target_class"],
            head_ABD=arrays["head"].astype(np.float64),
            tail_BD=arrays["tail"].astype(np.float64),
        )


class Model3(FertilityModel):
    """Brown et al. 1993, section 4.4: d(j|i,l,m) is a table for each pair of lengths."""

    KIND, NUMBER = "ibm3", 3

    def _with_distortion(self, direction: Direction, counts: Counts, posterior_L: Posteriors) -> Self:
        shapes, first_S = direction.shapes, direction.links.first_S
        # Links by the place that they have in their pair of lengths.
        shift_S = shapes.first_H[shapes.shape_S] - first_S[:-1]
        place_L = np.arange(len(posterior_L)) + np.repeat(shift_S, np.diff(first_S))
        count_Q = np.bincount(place_L, posterior_L, int(shapes.first_H[-1])).astype(float)
        place_Q = _places(shapes, count_Q, self.priors.place)
        return replace(self, place=PositionTable(shapes.source_size_H, shapes.target_size_H, place_Q))


class Model4(FertilityModel):
    """Brown et al. 1993, section 4.5."""

    KIND, NUMBER = "ibm4", 4

    def _with_distortion(self, direction: Direction, counts: Counts, posterior_L: Posteriors) -> Self:
        # The first cept is another matter than those after it.
        heads = [self._smooth(part) for part in (counts.head_ABD[:-1], counts.head_ABD[-1:])]
        return replace(self, head_ABD=np.concatenate(heads), tail_BD=self._smooth(counts.tail_BD))

    def _smooth(self, counts: Numbers) -> Numbers:
        """Logarithms of probabilities over the last axis."""
        common_D = counts.reshape(-1, counts.shape[-1]).sum(axis=0) + self.priors.jump
        own = counts + self.priors.class_jump * common_D / common_D.sum()
        return _log(own / own.sum(axis=-1, keepdims=True))


class Model5(FertilityModel):
    """Brown et al. 1993, section 4.6."""

    KIND, NUMBER = "ibm5", 5

    def _with_distortion(self, direction: Direction, counts: Counts, posterior_L: Posteriors) -> Self:
        head_ABD, tail_BD = self.head_ABD.copy(), self.tail_BD.copy()
        middle = tail_BD.shape[1] // 2
        ends = min(TIED_JUMPS, middle), self.priors.jump
        head_jump_BD, head_room_BRR = self._shared(counts.head_ABD[0], counts.head_room_BRR)
        tail_jump_BD, tail_room_BR = self._shared(counts.tail_BD, counts.tail_room_BR)
        for label in range(len(tail_BD)):
            origin, room = head_room_BRR[label].nonzero()
            runs = (middle + 1 - origin, room, head_room_BRR[label][origin, room])
            maximize_weights(head_ABD[0, label], head_jump_BD[label], *runs, *ends)
            (room,) = tail_room_BR[label].nonzero()
            runs = (np.full(len(room), middle + 1), room, tail_room_BR[label][room])
            maximize_weights(tail_BD[label], tail_jump_BD[label], *runs, *ends)
        return replace(self, head_ABD=head_ABD, tail_BD=tail_BD)

    def _shared(self, jump_BD: Numbers, room: Numbers) -> tuple[Numbers, Numbers]:
        """Counts of each class and a share of those of all classes."""
        share = self.priors.class_jump / max(1.0, float(jump_BD.sum()))
        return jump_BD + share * jump_BD.sum(axis=0), room + share * room.sum(axis=0)


def _places(shapes: Shapes, count_Q: Numbers, prior: float) -> Numbers:
    """Model 3's d from counts and prior ones along the diagonal, as many of each position. NULL's are 1."""
    diagonal_Q = models.normalize(np.exp(-TENSION * shapes.distance_Q), shapes.column_Q)
    place_Q = models.normalize(count_Q + prior * diagonal_Q, shapes.column_Q)
    place_Q[shapes.null_Q] = 1.0
    return place_Q


def _log(values: Numbers) -> Numbers:
    """Logarithms, bounded below."""
    return np.log(np.maximum(values, np.exp(NEVER)))

"""Models 3, 4 and 5 as steps of training: what `climbing` counts becomes fertilities and distortions.

Climbing starts from the alignment of the iteration before; in a new text from that of an exact model, which
is part of this one.

Shapes: as in `fertility_walk`; Q places of model 3.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dragoman_training.alignment.corpus.bitext import Ids
from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.climbing import collect
from dragoman_training.alignment.models.exact import EXACT_KINDS, ExactModel
from dragoman_training.alignment.models.fertility_walk import NEVER, Counts, Parameters
from dragoman_training.alignment.models.ibm2 import PositionTable, Shapes
from dragoman_training.alignment.models.model import Arrays, Direction, Posteriors, Step
from dragoman_training.alignment.models.places import diagonal_places, estimate_places
from dragoman_training.alignment.models.weights import maximize_weights
from dragoman_training.alignment.models.word_classes import learn_classes

NUM_FERTILITIES = 10
"""From 0 on. More words of one source word are next to impossible."""
NUM_CLASSES = 50
MAX_WORDS = 100
"""A longer sentence keeps the alignment that climbing would start from."""
MAX_ALIGNMENTS = 100
"""A sentence pair with so many is summed over all of them."""
TIED_JUMPS = 20
"""Jumps of model 5 that go further weigh the same as one that goes this far."""


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Counts beside those of the corpus."""

    fertility: float = 10.0
    """Of each word, spread as all words' fertilities are."""
    place: float = 5.0
    """Of each source position in model 3, along the diagonal."""
    class_jump: float = 20.0
    """Of each class, spread as the jumps of all classes are."""
    jump: float = 0.1
    """Of each jump."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FertilityModel:
    """What the three have in common; each uses the tables of its own distortion."""

    NUMBER: ClassVar[int]

    start: ExactModel
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
    """In training: the best alignment so far."""

    @classmethod
    def after(
        cls, before: "ExactModel | FertilityModel", direction: Direction, lexicon_P: Numbers, priors: Priors
    ) -> Self:
        """As its training begins: from the counts of the alignment of the model before."""
        if isinstance(before, FertilityModel):
            start, alignment_U = before.start, before.alignment_U
        else:
            start, alignment_U = before, None
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
        flat = cls(
            start=start,
            null=0.1,
            fertility_VF=np.full((source.num_words + 1, NUM_FERTILITIES), 1 / NUM_FERTILITIES),
            place=None,
            source_class_V=class_V,
            target_class_V=target_class_V,
            head_ABD=np.zeros((num_heads, num_classes, 2 * longest + 1)),
            tail_BD=np.zeros((num_classes, 2 * longest + 1)),
            priors=priors,
        )
        if cls.NUMBER == 5:
            flat = replace(flat, head_ABD=flat.head_ABD + 1, tail_BD=flat.tail_BD + 1)
        alignment_U = alignment_U.copy()
        counts, posterior_L, _ = flat._collect(direction, lexicon_P, alignment_U, climb=False)
        return flat._estimate(direction, counts, posterior_L, alignment_U)

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Over the neighbours of the best alignment found."""
        if self.alignment_U is None:
            alignment_U = self.start.viterbi(direction, lexicon_P)
        else:
            alignment_U = self.alignment_U.copy()
        counts, posterior_L, log_likelihood = self._collect(direction, lexicon_P, alignment_U, climb=True)
        pair_L = direction.cooccurrence.pair_L
        pair_P = np.bincount(pair_L, posterior_L, len(lexicon_P)).astype(float)
        after = self._estimate(direction, counts, posterior_L, alignment_U)
        return Step(pair_P=pair_P, posterior_L=posterior_L, log_likelihood=log_likelihood, next=after)

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        """Of every link, over the neighbours of the best alignment found."""
        alignment_U = self.start.viterbi(direction, lexicon_P)
        return self._collect(direction, lexicon_P, alignment_U, climb=True)[1]

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        """The best that climbing finds."""
        alignment_U = self.start.viterbi(direction, lexicon_P)
        self._collect(direction, lexicon_P, alignment_U, climb=True)
        return alignment_U

    def _collect(
        self, direction: Direction, lexicon_P: Numbers, alignment_U: Ids, *, climb: bool
    ) -> tuple[Counts, Posteriors, float]:
        cooccurrence = direction.cooccurrence
        posterior_L = np.empty(len(cooccurrence.pair_L), np.float32)
        max_words = self.tail_BD.shape[1] // 2
        num_classes = len(self.tail_BD)
        room = max_words + 2 if self.NUMBER == 5 else 0
        counts = Counts(
            fertility_VF=np.zeros_like(self.fertility_VF),
            head_ABD=np.zeros_like(self.head_ABD),
            tail_BD=np.zeros_like(self.tail_BD),
            head_room_BRR=np.zeros((num_classes, room, room)),
            tail_room_BR=np.zeros((num_classes, room)),
        )
        log_place_Q, first_place_S = np.empty(0), np.empty(0, np.int64)
        if self.NUMBER == 3:
            shapes = Shapes.of(cooccurrence)
            place_Q = diagonal_places(shapes)
            if self.place is not None:
                place_Q = self.place.positions(shapes, place_Q)
            log_place_Q, first_place_S = _log(place_Q), shapes.first_H[shapes.shape_S]
        log_likelihood = collect(
            self.parameters(),
            counts,
            lexicon_P,
            log_place_Q,
            first_place_S,
            cooccurrence.pair_L,
            cooccurrence.first_S,
            cooccurrence.source_size_S,
            cooccurrence.target_size_S,
            direction.source_N,
            self.source_class_V[direction.source_N],
            self.target_class_V[direction.target_U],
            alignment_U,
            climb,
            self.max_alignments,
            max_words,
            posterior_L,
        )
        return counts, posterior_L, log_likelihood

    def parameters(self) -> Parameters:
        """As `walk` reads them."""
        return Parameters(
            self.NUMBER,
            float(np.log(max(self.null, 1e-300))),
            float(np.log(max(1 - self.null, 1e-300))),
            self._log_fertilities,
            self.head_ABD,
            self.tail_BD,
        )

    @cached_property
    def _log_fertilities(self) -> Numbers:
        log_fertility_VF = _log(self.fertility_VF)
        if self.NUMBER == 3:
            log_fertility_VF += np.cumsum(np.log(np.maximum(np.arange(self.fertility_VF.shape[1]), 1)))
        return log_fertility_VF

    def _estimate(
        self, direction: Direction, counts: Counts, posterior_L: Posteriors, alignment_U: Ids
    ) -> Self:
        common_F = counts.fertility_VF.sum(axis=0) + self.priors.jump
        own_VF = counts.fertility_VF + self.priors.fertility * common_F / common_F.sum()
        place, head_ABD, tail_BD = self.place, self.head_ABD, self.tail_BD
        if self.NUMBER == 3:
            shapes = Shapes.of(direction.cooccurrence)
            count_Q = _count_places(direction, shapes, posterior_L)
            place = PositionTable.of(shapes, estimate_places(shapes, count_Q, self.priors.place))
        elif self.NUMBER == 4:
            # The first cept is another matter than those after it.
            head_ABD = np.concatenate(
                [self._smooth(part) for part in (counts.head_ABD[:-1], counts.head_ABD[-1:])]
            )
            tail_BD = self._smooth(counts.tail_BD)
        else:
            head_ABD, tail_BD = self._weigh(counts)
        return replace(
            self,
            fertility_VF=own_VF / own_VF.sum(axis=1, keepdims=True),
            place=place,
            head_ABD=head_ABD,
            tail_BD=tail_BD,
            alignment_U=alignment_U,
        )

    def _smooth(self, counts: Numbers) -> Numbers:
        """Logarithms of probabilities over the last axis."""
        common_D = counts.reshape(-1, counts.shape[-1]).sum(axis=0) + self.priors.jump
        own = counts + self.priors.class_jump * common_D / common_D.sum()
        return _log(own / own.sum(axis=-1, keepdims=True))

    def _weigh(self, counts: Counts) -> tuple[Numbers, Numbers]:
        """Model 5's weights, of each class."""
        head_ABD, tail_BD = self.head_ABD.copy(), self.tail_BD.copy()
        middle = tail_BD.shape[1] // 2
        tied = min(TIED_JUMPS, middle)
        head_share, tail_share = (
            self.priors.class_jump / max(1.0, float(jumps.sum()))
            for jumps in (counts.head_ABD, counts.tail_BD)
        )
        head_jump_BD = counts.head_ABD[0] + head_share * counts.head_ABD[0].sum(axis=0)
        head_room_BRR = counts.head_room_BRR + head_share * counts.head_room_BRR.sum(axis=0)
        tail_jump_BD = counts.tail_BD + tail_share * counts.tail_BD.sum(axis=0)
        tail_room_BR = counts.tail_room_BR + tail_share * counts.tail_room_BR.sum(axis=0)
        for label in range(len(tail_BD)):
            origin, room = head_room_BRR[label].nonzero()
            runs = (middle + 1 - origin, room, head_room_BRR[label][origin, room])
            maximize_weights(head_ABD[0, label], head_jump_BD[label], *runs, tied, self.priors.jump)
            (room,) = tail_room_BR[label].nonzero()
            runs = (np.full(len(room), middle + 1), room, tail_room_BR[label][room])
            maximize_weights(tail_BD[label], tail_jump_BD[label], *runs, tied, self.priors.jump)
        return head_ABD, tail_BD

    def arrays(self) -> Arrays:
        """All tables, and those of the model that climbing starts from."""
        kind = next(name for name, own in EXACT_KINDS.items() if type(self.start) is own)
        result = {
            "start": np.array(kind),
            **{f"start.{key}": array for key, array in self.start.arrays().items()},
            "null": np.array(self.null),
            "fertility": self.fertility_VF.astype(np.float32),
            "source_class": self.source_class_V,
            "target_class": self.target_class_V,
            "head": self.head_ABD.astype(np.float32),
            "tail": self.tail_BD.astype(np.float32),
        }
        if self.place is not None:
            result |= {
                "place": self.place.position_Q.astype(np.float32),
                "source_size": self.place.source_size_H,
                "target_size": self.place.target_size_H,
            }
        return result

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The same model from them."""
        kind = EXACT_KINDS[str(arrays["start"])]
        prefix = "start."
        start = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        place = None
        if cls.NUMBER == 3:
            place_Q = arrays["place"].astype(np.float64)
            place = PositionTable(arrays["source_size"], arrays["target_size"], place_Q)
        return cls(
            start=kind.from_arrays(start),
            null=float(arrays["null"]),
            fertility_VF=arrays["fertility"].astype(np.float64),
            place=place,
            source_class_V=arrays["source_class"],
            target_class_V=arrays["target_class"],
            head_ABD=arrays["head"].astype(np.float64),
            tail_BD=arrays["tail"].astype(np.float64),
        )


class Model3(FertilityModel):
    """Brown et al. 1993, section 4.4."""

    NUMBER = 3


class Model4(FertilityModel):
    """Brown et al. 1993, section 4.5."""

    NUMBER = 4


class Model5(FertilityModel):
    """Brown et al. 1993, section 4.6."""

    NUMBER = 5


def _count_places(direction: Direction, shapes: Shapes, posterior_L: Posteriors) -> Numbers:
    """Links by the place that they have in their pair of lengths."""
    first_S = direction.cooccurrence.first_S
    shift_S = shapes.first_H[shapes.shape_S] - first_S[:-1]
    place_L = np.arange(len(posterior_L)) + np.repeat(shift_S, np.diff(first_S))
    return np.bincount(place_L, posterior_L, int(shapes.first_H[-1])).astype(float)


def _log(values: Numbers) -> Numbers:
    """With an end."""
    return np.log(np.maximum(values, np.exp(NEVER)))

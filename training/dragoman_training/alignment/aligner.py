"""A trained aligner: it links words of new texts, from the models of both directions.

It is saved as a folder with `aligner.json`, arrays of both directions, and words of both sides.

Shapes: P distinct word pairs, L links, U target words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dragoman_training import saved_folder
from dragoman_training.alignment.bitext import (
    Bitext,
    Ids,
    Numbers,
    Vocabulary,
    WordPair,
    WordRule,
    number_pairs,
)
from dragoman_training.alignment.lexicon import Lexicon, likeness
from dragoman_training.alignment.links import Matrix, Method, symmetrize
from dragoman_training.alignment.models import Direction, Model, Posteriors, likeliest, model_kind

Search = Literal["posterior", "viterbi"]
"""Whether a word has its own likeliest link, or its link in the sentence's likeliest alignment."""

NEVER_SEEN = 1e-7
"""t(f|e) of words that were never seen together."""
SPELT_ALIKE = 0.01
"""The same where one of them was never seen at all, at equal spelling."""
ALIKE = 0.6
"""Words less alike have nothing from it."""
FORMAT_VERSION = 2
_MANIFEST = "aligner.json"
_LEXICON = {"first": "first_V", "target": "target_P", "probability": "probability_P"}

Beliefs = NDArray[np.float32]
Sides = tuple[Vocabulary, Vocabulary]
"""The words of a text's source and of its target."""


@dataclass(frozen=True, eq=False)
class DirectedModel:
    """A model of one direction, with its lexicon and the vocabularies that number its words."""

    model: Model
    lexicon: Lexicon
    source: Vocabulary
    target: Vocabulary

    def align(self, bitext: Bitext, words: Sides, search: Search) -> Ids:
        """The source position of each target word from 1 on, or 0 for NULL. [U]"""
        if search == "posterior":
            return self.posteriors(bitext, words)[1]
        return self.model.viterbi(*self._of_text(bitext, words))

    def posteriors(self, bitext: Bitext, words: Sides) -> tuple[Posteriors, Ids]:
        """P(a_j = i | f, e) of every link, by sentence and target word, NULL first. [L]

        And of each target word the likeliest, as `align` finds it. [U]
        """
        direction, lexicon_P = self._of_text(bitext, words)
        posterior_L = self.model.posteriors(direction, lexicon_P)
        return posterior_L, likeliest(direction.links, posterior_L)

    def _of_text(self, bitext: Bitext, own: Sides) -> tuple[Direction, Numbers]:
        """The text's links, and t of each distinct pair of its words. [P]"""
        numbers, known = [], []
        for words, vocabulary in zip(own, (self.source, self.target), strict=True):
            number = np.array([vocabulary.number(word) for word in words.words], np.int32)
            numbers.append(number)
            known.append(number < vocabulary.unknown)
        direction = Direction.of(bitext, numbers)
        source_P, target_P = direction.links.source_P, direction.links.target_P
        # NULL's number is behind the last word's, here and there.
        of_model = np.append(numbers[0], len(self.lexicon.first_V) - 2)
        lexicon_P, found_P = self.lexicon.look_up(of_model[source_P], numbers[1][target_P])
        both_known_P = np.append(known[0], True)[source_P] & known[1][target_P]
        alike_P = likeness(own[0].words, own[1].words, source_P, target_P)
        guess_P = np.where(~both_known_P & (alike_P >= ALIKE), SPELT_ALIKE * alike_P**2, 0.0)
        lexicon_P = np.where(found_P & both_known_P, lexicon_P, 0.0) + np.maximum(guess_P, NEVER_SEEN)
        return direction, lexicon_P


@dataclass(frozen=True, eq=False, kw_only=True)
class Aligner:
    """The models of both directions over one pair of vocabularies."""

    name: str
    """Which model it is, such as `hmm`."""
    rule: WordRule
    forward: DirectedModel
    backward: DirectedModel

    def align(self, pairs: Sequence[WordPair], method: Method, search: Search = "posterior") -> list[Matrix]:
        """The links of each sentence pair, [source, target]; its words are those of `rule.normalize`."""
        bitext, source, target = number_pairs(pairs)
        forward = backward = None
        # One direction alone needs no other.
        if method != "backward":
            forward = _matrices(self.forward.align(bitext, (source, target), search), pairs)
        if method != "forward":
            turned = self.backward.align(bitext.reversed(), (target, source), search)
            backward = [matrix.T for matrix in _matrices(turned, _turned(pairs))]
        both = zip(forward or backward or [], backward or forward or [], strict=True)
        return [symmetrize(*links, method) for links in both]

    def believed(self, pairs: Sequence[WordPair], method: Method) -> list[tuple[Beliefs, Matrix]]:
        """How far both directions believe in each link, up to 1, and the links, as `align` finds them.

        [source, target] for each sentence pair.
        """
        bitext, source, target = number_pairs(pairs)
        there_L, forward_U = self.forward.posteriors(bitext, (source, target))
        back_L, backward_U = self.backward.posteriors(bitext.reversed(), (target, source))
        turned = _turned(pairs)
        beliefs = zip(_by_pair(there_L, pairs), _by_pair(back_L, turned), strict=True)
        links = zip(_matrices(forward_U, pairs), _matrices(backward_U, turned), strict=True)
        halves = [np.float32(0.5) * (one.T + other) for one, other in beliefs]
        return list(zip(halves, [symmetrize(one, other.T, method) for one, other in links], strict=True))

    def swapped(self, pairs: Sequence[WordPair]) -> bool:
        """Whether the texts' words are rather those of the other side."""
        known = np.zeros((2, 2), np.int64)
        for pair in pairs:
            for side, words in enumerate(pair):
                for number, vocabulary in enumerate((self.forward.source, self.forward.target)):
                    known[side, number] += sum(vocabulary.number(word) < vocabulary.unknown for word in words)
        return bool(known[0, 0] < known[0, 1] and known[1, 1] < known[1, 0])

    def save(self, folder: Path) -> None:
        """Writes the folder, all of it or nothing. Raises ValueError where something is there already."""
        directions = {"forward": self.forward, "backward": self.backward}
        with saved_folder.written_whole(folder) as partial:
            for name, directed in directions.items():
                own = {f"model.{key}": array for key, array in directed.model.arrays().items()}
                parts = ((part, getattr(directed.lexicon, field)) for part, field in _LEXICON.items())
                own |= {f"lexicon.{part}": array for part, array in parts}
                saved_folder.write_arrays(partial / f"{name}.npz", own)
            manifest = {
                "format_version": FORMAT_VERSION,
                "model": self.name,
                "kinds": {name: directed.model.KIND for name, directed in directions.items()},
                "tokenize": self.rule.tokenize,
                "lowercase": self.rule.lowercase,
                **saved_folder.write_sides(partial, self.forward.source.words, self.forward.target.words),
            }
            saved_folder.write_manifest(partial / _MANIFEST, manifest)


def load_aligner(folder: Path) -> Aligner:
    """Reads a saved aligner. Raises ValueError for what is none, or one of another version."""
    with saved_folder.read_folder(
        folder, _MANIFEST, kind="aligner", command="dragoman align train", version=FORMAT_VERSION
    ) as manifest:
        source, target = map(Vocabulary, saved_folder.read_sides(folder, manifest))
        sides = []
        for name, words in (("forward", (source, target)), ("backward", (target, source))):
            arrays = saved_folder.read_arrays(folder / f"{name}.npz")
            lexicon = Lexicon(**{field: arrays[f"lexicon.{part}"] for part, field in _LEXICON.items()})
            own = {key.removeprefix("model."): array for key, array in arrays.items() if key[:6] == "model."}
            model = model_kind(manifest["kinds"][name]).from_arrays(own)
            sides.append(DirectedModel(model, lexicon, *words))
        rule = WordRule(tokenize=manifest["tokenize"], lowercase=manifest["lowercase"])
        return Aligner(name=manifest["model"], rule=rule, forward=sides[0], backward=sides[1])


def _turned(pairs: Sequence[WordPair]) -> list[WordPair]:
    """The other direction."""
    return [(other, one) for one, other in pairs]


def _by_pair(posterior_L: Posteriors, pairs: Sequence[WordPair]) -> list[Beliefs]:
    """[target, source] of each sentence pair, without NULL."""
    ends = np.cumsum([len(other) * (len(one) + 1) for one, other in pairs])
    parts = zip(np.split(posterior_L, ends[:-1]), pairs, strict=False)
    return [part.reshape(len(other), len(one) + 1)[:, 1:] for part, (one, other) in parts]


def _matrices(aligned_U: Ids, pairs: Sequence[WordPair]) -> list[Matrix]:
    """[source, target] of each sentence pair, without NULL."""
    result, first = [], 0
    for one, other in pairs:
        matrix = np.zeros((len(one) + 1, len(other)), bool)
        matrix[aligned_U[first : first + len(other)], np.arange(len(other))] = True
        result.append(matrix[1:])
        first += len(other)
    return result

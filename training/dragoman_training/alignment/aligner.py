"""A trained aligner: it links words of new texts, from the models of both directions.

Shapes: P distinct word pairs, L links, V words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Bitext, Ids, Offsets, Sentences, Vocabulary
from dragoman_training.alignment.corpus.spelling import likeness
from dragoman_training.alignment.corpus.text import WordRule
from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.model import Direction, Model, Posteriors, likeliest
from dragoman_training.alignment.output.symmetrization import Matrix, Method, symmetrize

Search = Literal["posterior", "viterbi"]
"""Whether a word has its own likeliest link, or its link in the sentence's likeliest alignment."""

NEVER_SEEN = 1e-7
"""t(f|e) of words that were never seen together."""
SPELT_ALIKE = 0.01
"""The same where one of them was never seen at all, at equal spelling."""
ALIKE = 0.6
"""Words less alike have nothing from it."""

WordPair = tuple[Sequence[str], Sequence[str]]
Beliefs = NDArray[np.float32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Lexicon:
    """t(target | source): of each source word, and of NULL behind them, a row of target words."""

    first_V: Offsets
    target_P: Ids
    """Ascending in each row."""
    probability_P: NDArray[np.float32]

    def look_up(self, source_P: Ids, target_P: Ids) -> tuple[Numbers, NDArray[np.bool_]]:
        """The probabilities of pairs, and which there are. Words without a row are behind NULL."""
        return _look_up(self.first_V, self.target_P, self.probability_P, source_P, target_P)


@njit(cache=True, nogil=True)
def _look_up(
    first_V: Offsets,
    own_target_P: Ids,
    own_probability_P: NDArray[np.float32],
    source_P: Ids,
    target_P: Ids,
) -> tuple[Numbers, NDArray[np.bool_]]:
    """By halving each pair's row: what it takes does not grow with the lexicon."""
    probability_P, found_P = np.zeros(len(source_P)), np.zeros(len(source_P), np.bool_)
    for pair in range(len(source_P)):
        if source_P[pair] >= len(first_V) - 1:
            continue
        low, end = first_V[source_P[pair]], first_V[source_P[pair] + 1]
        high = end
        while low < high:
            middle = (low + high) // 2
            if own_target_P[middle] < target_P[pair]:
                low = middle + 1
            else:
                high = middle
        if low < end and own_target_P[low] == target_P[pair]:
            probability_P[pair], found_P[pair] = own_probability_P[low], True
    return probability_P, found_P


@dataclass(frozen=True, eq=False, kw_only=True)
class DirectedModel:
    """A model of one direction, with its lexicon."""

    model: Model
    lexicon: Lexicon

    def align(self, bitext: Bitext, words: "LocalWords", search: Search) -> Ids:
        """Of each target word the source position from 1 on, or 0 for NULL. [U]"""
        direction, lexicon_P = self._of_text(bitext, words)
        if search == "viterbi":
            return self.model.viterbi(direction, lexicon_P)
        return likeliest(direction.cooccurrence, self.model.posteriors(direction, lexicon_P))

    def posteriors(self, bitext: Bitext, words: "LocalWords") -> tuple[Posteriors, Ids]:
        """P(a_j = i | f, e) of every link, by sentence and target word, NULL first. [L]

        And of each target word the likeliest, as `align` finds it. [U]
        """
        direction, lexicon_P = self._of_text(bitext, words)
        posterior_L = self.model.posteriors(direction, lexicon_P)
        return posterior_L, likeliest(direction.cooccurrence, posterior_L)

    def _of_text(self, bitext: Bitext, words: "LocalWords") -> tuple[Direction, Numbers]:
        """The text's links, and t of each distinct pair of its words. [P]"""
        direction = Direction.of_text(bitext, words.source_number, words.target_number)
        cooccurrence = direction.cooccurrence
        source_P, target_P = cooccurrence.source_P, cooccurrence.target_P
        # NULL's number is behind the last word's, here and there.
        of_model = np.append(words.source_number, len(self.lexicon.first_V) - 2)
        known_source = np.append(words.source_known, True)
        lexicon_P, found_P = self.lexicon.look_up(of_model[source_P], words.target_number[target_P])
        both_known_P = known_source[source_P] & words.target_known[target_P]
        alike_P = likeness(words.source, words.target, source_P, target_P)
        guess_P = np.where(~both_known_P & (alike_P >= ALIKE), SPELT_ALIKE * alike_P**2, 0.0)
        lexicon_P = np.where(found_P & both_known_P, lexicon_P, 0.0) + np.maximum(guess_P, NEVER_SEEN)
        return direction, lexicon_P


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalWords:
    """The words of some text, and their numbers in the vocabularies of a model."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    source_number: Ids
    target_number: Ids
    source_known: NDArray[np.bool_]
    target_known: NDArray[np.bool_]

    @classmethod
    def of(
        cls, source: Vocabulary, target: Vocabulary, of_source: Vocabulary, of_target: Vocabulary
    ) -> "LocalWords":
        """Words of a text by those of a model."""
        source_number = np.array([of_source.number(word) for word in source.words], np.int32)
        target_number = np.array([of_target.number(word) for word in target.words], np.int32)
        return cls(
            source=source.words,
            target=target.words,
            source_number=source_number,
            target_number=target_number,
            source_known=source_number < of_source.unknown,
            target_known=target_number < of_target.unknown,
        )

    def reversed(self) -> "LocalWords":
        """The other direction."""
        return LocalWords(
            source=self.target,
            target=self.source,
            source_number=self.target_number,
            target_number=self.source_number,
            source_known=self.target_known,
            target_known=self.source_known,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Aligner:
    """The models of both directions over one pair of vocabularies."""

    name: str
    """Which model it is, such as `hmm`."""
    rule: WordRule
    source: Vocabulary
    target: Vocabulary
    forward: DirectedModel
    backward: DirectedModel

    def align(self, pairs: Sequence[WordPair], method: Method, search: Search = "posterior") -> list[Matrix]:
        """Of each sentence pair the links, [source, target]. The words are those of `rule.normalize`."""
        bitext, source, target = number_pairs(pairs)
        words = LocalWords.of(source, target, self.source, self.target)
        # One direction alone needs no other.
        need = {"forward": (True, False), "backward": (False, True)}.get(method, (True, True))
        shapes = [(len(one), len(other)) for one, other in pairs]
        empty = [np.zeros(shape, bool) for shape in shapes]
        forward = backward = empty
        if need[0]:
            forward = _matrices(self.forward.align(bitext, words, search), shapes)
        if need[1]:
            aligned_U = self.backward.align(bitext.reversed(), words.reversed(), search)
            backward = [matrix.T for matrix in _matrices(aligned_U, [(n, m) for m, n in shapes])]
        return [symmetrize(one, other, method) for one, other in zip(forward, backward, strict=True)]

    def beliefs(self, pairs: Sequence[WordPair]) -> list[Beliefs]:
        """Of each sentence pair how far both directions believe in each link, [source, target], up to 1."""
        return [beliefs for beliefs, _ in self.believed(pairs, "intersection")]

    def believed(self, pairs: Sequence[WordPair], method: Method) -> list[tuple[Beliefs, Matrix]]:
        """The beliefs of each sentence pair, and with them its links, as `align` finds them."""
        bitext, source, target = number_pairs(pairs)
        words = LocalWords.of(source, target, self.source, self.target)
        forward_L, forward_U = self.forward.posteriors(bitext, words)
        backward_L, backward_U = self.backward.posteriors(bitext.reversed(), words.reversed())
        shapes = [(len(one), len(other)) for one, other in pairs]
        forward = _matrices(forward_U, shapes)
        backward = [matrix.T for matrix in _matrices(backward_U, [(n, m) for m, n in shapes])]
        found: list[tuple[Beliefs, Matrix]] = []
        first = other_first = 0
        for (num_sources, num_targets), one, other in zip(shapes, forward, backward, strict=True):
            end = first + num_targets * (num_sources + 1)
            other_end = other_first + num_sources * (num_targets + 1)
            # NULL's are left out.
            there = forward_L[first:end].reshape(num_targets, num_sources + 1)[:, 1:].T
            back = backward_L[other_first:other_end].reshape(num_sources, num_targets + 1)[:, 1:]
            found.append((np.float32(0.5) * (there + back), symmetrize(one, other, method)))
            first, other_first = end, other_end
        return found

    def swapped(self, pairs: Sequence[WordPair]) -> bool:
        """Whether the texts' words are rather those of the other side."""
        known = np.zeros((2, 2), np.int64)
        for pair in pairs:
            for side, words in enumerate(pair):
                for number, vocabulary in enumerate((self.source, self.target)):
                    known[side, number] += sum(vocabulary.number(word) < vocabulary.unknown for word in words)
        return bool(known[0, 0] < known[0, 1] and known[1, 1] < known[1, 0])


def number_pairs(pairs: Sequence[WordPair]) -> tuple[Bitext, Vocabulary, Vocabulary]:
    """Words as numbers of the vocabularies that they make."""
    source, target = (Vocabulary.of(pair[side] for pair in pairs) for side in (0, 1))
    sides = [
        Sentences.of(
            [[vocabulary.number(word) for word in pair[side]] for pair in pairs], len(vocabulary.words)
        )
        for side, vocabulary in enumerate((source, target))
    ]
    return Bitext(*sides), source, target


def _matrices(aligned_U: Ids, shapes: list[tuple[int, int]]) -> list[Matrix]:
    """[source, target] of each sentence pair."""
    result, first = [], 0
    for num_sources, num_targets in shapes:
        # NULL's row is left out.
        matrix = np.zeros((num_sources + 1, num_targets), bool)
        matrix[aligned_U[first : first + num_targets], np.arange(num_targets)] = True
        result.append(matrix[1:])
        first += num_targets
    return result

"""The phrase table: of each source phrase its translations, with the logarithms of four probabilities.

Shapes: X extracted pairs, P distinct phrase pairs, W words of all targets, T nodes of the source phrases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Bitext, Ids, Offsets
from dragoman_training.alignment.output.symmetrization import Matrix
from dragoman_training.classics.smt.phrases.extraction import extract_phrases
from dragoman_training.classics.smt.phrases.lexical import span_sums, word_weights
from dragoman_training.classics.smt.trie import Trie, build_trie, find_child

SCORES = ("phrase", "lexical", "phrase_backward", "lexical_backward")
"""φ(e|f), lex(e|f), φ(f|e) and lex(f|e), for a source phrase f and its translation e."""
MAX_WORDS = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class PhraseTable:
    """Pairs by source phrase."""

    max_words: int
    trie: Trie
    """Source phrases and what they begin with."""
    first_T: Offsets
    """[T + 1]: where each source phrase's pairs begin, and the end."""
    target_first_P: Offsets
    """[P + 1]: where the words of each pair's target begin in `target_W`, and the end."""
    target_W: Ids
    scores_P4: NDArray[np.float32]
    """Logarithms, in the order of `SCORES`."""

    def __len__(self) -> int:
        return len(self.scores_P4)

    def spans(self, words: Sequence[int], start: int) -> list[tuple[int, int, int]]:
        """Of the phrases that begin at a word: the position behind the last, and from where to where in P."""
        node, found = 0, []
        for end in range(start + 1, min(start + self.max_words, len(words)) + 1):
            node = find_child(self.trie.word_T, self.trie.first_T, node, words[end - 1])
            if node < 0:
                break
            first, behind = self.first_T[node], self.first_T[node + 1]
            if first < behind:
                found.append((end, int(first), int(behind)))
        return found

    def target(self, pair: int) -> list[int]:
        """The target words of a pair."""
        words: list[int] = self.target_W[self.target_first_P[pair] : self.target_first_P[pair + 1]].tolist()
        return words

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        return {
            "max_words": np.array(self.max_words),
            "word": self.trie.word_T,
            "child": self.trie.first_T,
            "first": self.first_T,
            "target_first": self.target_first_P,
            "target": self.target_W,
            "scores": self.scores_P4,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "PhraseTable":
        """What was saved."""
        return cls(
            max_words=int(arrays["max_words"]),
            trie=Trie(word_T=arrays["word"], first_T=arrays["child"]),
            first_T=arrays["first"],
            target_first_P=arrays["target_first"],
            target_W=arrays["target"],
            scores_P4=arrays["scores"],
        )


def learn_phrases(
    bitext: Bitext, links: Sequence[Matrix], *, max_words: int, max_options: int
) -> PhraseTable:
    """Phrase pairs with relative frequencies, of each source phrase the `max_options` most frequent.

    Where a pair was seen with several links, its best lexical weights count.
    """
    if not 1 <= max_words <= MAX_WORDS:
        raise ValueError(f"phrases of up to {max_words} words: it is from 1 to {MAX_WORDS}")
    spans = extract_phrases(bitext, links, max_words)
    source_X, trie = _nodes(bitext, spans[:, 0], spans[:, 1], max_words)
    target_X, target_trie = _nodes(bitext.reversed(), spans[:, 2], spans[:, 3], max_words)
    key_X = source_X * len(target_trie) + target_X
    key_P, example_P, number_X, count_P = np.unique(
        key_X, return_index=True, return_inverse=True, return_counts=True
    )
    source_P, target_P = key_P // len(target_trie), key_P % len(target_trie)
    forward_X = span_sums(word_weights(bitext, links), spans[:, 2], spans[:, 3])
    turned = [matrix.T for matrix in links]
    backward_X = span_sums(word_weights(bitext.reversed(), turned), spans[:, 0], spans[:, 1])
    forward_P, backward_P = (np.full(len(key_P), -np.inf) for _ in range(2))
    np.maximum.at(forward_P, number_X, forward_X)
    np.maximum.at(backward_P, number_X, backward_X)
    scores_P4 = np.stack(
        [
            np.log(count_P / np.bincount(source_P, count_P)[source_P]),
            forward_P,
            np.log(count_P / np.bincount(target_P, count_P)[target_P]),
            backward_P,
        ],
        axis=1,
    )
    # By source phrase, the most frequent first.
    order = np.lexsort((-scores_P4[:, 2], -count_P, source_P))
    sorted_P = source_P[order]
    rank_P = np.arange(len(order)) - np.searchsorted(sorted_P, sorted_P)
    order = order[rank_P < max_options]
    example = spans[example_P[order]]
    size_P = example[:, 3] - example[:, 2]
    target_first_P = np.concatenate([[0], np.cumsum(size_P)])
    words = np.arange(target_first_P[-1]) + np.repeat(example[:, 2] - target_first_P[:-1], size_P)
    kept_T = _with_prefixes(trie, source_P)
    number_T = np.cumsum(kept_T) - 1
    first_T = np.searchsorted(number_T[source_P[order]], np.arange(int(kept_T.sum()) + 1))
    return PhraseTable(
        max_words=max_words,
        trie=trie.select(kept_T),
        first_T=first_T,
        target_first_P=target_first_P,
        target_W=bitext.target.word_N[words],
        scores_P4=scores_P4[order].astype(np.float32),
    )


def _nodes(bitext: Bitext, first_X: Offsets, end_X: Offsets, max_words: int) -> tuple[Offsets, Trie]:
    """The node of each span of the source."""
    trie, node_KN = build_trie(bitext.source, max_words)
    return np.stack(node_KN)[end_X - first_X - 1, end_X - 1], trie


def _with_prefixes(trie: Trie, nodes: Offsets) -> NDArray[np.bool_]:
    """The nodes, all that they begin with, and all single words. [T]"""
    kept_T, parent_T = np.zeros(len(trie), bool), trie.parent_T
    kept_T[: trie.first_T[1]] = True
    while len(nodes):
        kept_T[nodes] = True
        nodes = np.unique(parent_T[nodes])
        nodes = nodes[~kept_T[nodes]]
    return kept_T

"""Phrases that translate each other, learnt from linked words, with the logarithms of four probabilities.

A phrase pair agrees with the links of its sentence pair if no word inside is linked to a word outside, and at
least one link is inside (Och & Ney 2004, section 2.2; Koehn et al. 2003).

Shapes: S sentence pairs, L links, N target words of the corpus, X extracted pairs, P distinct phrase pairs,
W words of all targets, T nodes of the source phrases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Bitext, Ids, Numbers, Offsets
from dragoman_training.alignment.links import Matrix
from dragoman_training.classics.smt.language_model import Trie, build_trie, find_child

Spans = NDArray[np.int64]
"""[X, 4]: first source word and the one behind the last, then those of the target, in the whole corpus."""


def extract_phrases(bitext: Bitext, links: Sequence[Matrix], max_words: int) -> Spans:
    """All phrase pairs of up to `max_words` on each side."""
    first_S = np.concatenate([[0], np.cumsum([np.count_nonzero(matrix) for matrix in links], dtype=np.int64)])
    places = bitext.source.first_S, bitext.target.first_S, *_places(bitext, links), first_S
    spans = np.zeros((_extract(*places, max_words, np.zeros((0, 4), np.int64)), 4), np.int64)
    _extract(*places, max_words, spans)
    return spans


def _places(bitext: Bitext, links: Sequence[Matrix]) -> tuple[Offsets, Offsets]:
    """The source and the target word of every link, as places in the corpus. [L] each"""
    found = [matrix.nonzero() for matrix in links]
    source, target = (
        np.concatenate(
            [np.zeros(0, np.int64), *(own[axis] + first for own, first in zip(found, side, strict=False))]
        )
        for axis, side in enumerate((bitext.source.first_S, bitext.target.first_S))
    )
    return source, target


@njit(cache=True, nogil=True)
def _extract(
    source_first_S: Offsets,
    target_first_S: Offsets,
    source_L: Offsets,
    target_L: Offsets,
    link_first_S: Offsets,
    max_words: int,
    spans: Spans,
) -> int:
    """Fills the spans as far as there is room, and returns how many there are."""
    found = 0
    for sentence in range(len(source_first_S) - 1):
        source_offset, target_offset = source_first_S[sentence], target_first_S[sentence]
        num_sources = source_first_S[sentence + 1] - source_offset
        num_targets = target_first_S[sentence + 1] - target_offset
        # The first and last word that each is linked to.
        lowest_source, highest_source = np.full(num_targets, num_sources), np.full(num_targets, -1)
        lowest_target, highest_target = np.full(num_sources, num_targets), np.full(num_sources, -1)
        for link in range(link_first_S[sentence], link_first_S[sentence + 1]):
            i, j = source_L[link] - source_offset, target_L[link] - target_offset
            lowest_source[j], highest_source[j] = min(lowest_source[j], i), max(highest_source[j], i)
            lowest_target[i], highest_target[i] = min(lowest_target[i], j), max(highest_target[i], j)
        for first in range(num_sources):
            low, high = num_targets, -1
            for last in range(first, min(first + max_words, num_sources)):
                low, high = min(low, lowest_target[last]), max(high, highest_target[last])
                if high < 0 or high - low >= max_words:
                    continue
                own = slice(low, high + 1)
                if lowest_source[own].min() < first or highest_source[own].max() > last:
                    continue
                # Words without links may stand at either end.
                start = low
                while start >= 0 and high - start < max_words and (start == low or highest_source[start] < 0):
                    end, beyond = high, min(num_targets, start + max_words)
                    while end < beyond and (end == high or highest_source[end] < 0):
                        if found < len(spans):
                            spans[found, :2] = source_offset + first, source_offset + last + 1
                            spans[found, 2:] = target_offset + start, target_offset + end + 1
                        found += 1
                        end += 1
                    start -= 1
    return found


def word_weights(bitext: Bitext, source_L: Offsets, target_L: Offsets) -> Numbers:
    """The log of the mean of w(e | f) over each target word's links, or of w(e | NULL). [N]

    w are relative frequencies among the links (Koehn et al. 2003, section 4). All links of a word are inside
    every phrase pair that has the word inside, so its weight is the same in each, and a phrase's lexical
    weight is the sum over its words.
    """
    source, target = bitext.source, bitext.target
    num_links_N = np.bincount(target_L, minlength=len(target.word_N))
    null = source.num_words
    open_N = np.flatnonzero(num_links_N == 0)
    # Words without links are linked with NULL.
    from_L = np.concatenate([source.word_N[source_L].astype(np.int64), np.full(len(open_N), null)])
    to_L = np.concatenate([target_L, open_N])
    key_L = from_L * target.num_words + target.word_N[to_L]
    _, number_L, count = np.unique(key_L, return_inverse=True, return_counts=True)
    weight_L = count[number_L] / np.bincount(from_L, minlength=null + 1)[from_L]
    total_N = np.bincount(to_L, weight_L, minlength=len(target.word_N))
    return np.log(total_N / np.maximum(num_links_N, 1))


def _sums(value_N: Numbers, first: Offsets, end: Offsets) -> Numbers:
    """Sums over spans of the corpus."""
    before = np.concatenate([[0.0], np.cumsum(value_N)])
    return np.asarray(before[end] - before[first])


SCORES = ("phrase", "lexical", "phrase_backward", "lexical_backward")
"""φ(e|f), lex(e|f), φ(f|e) and lex(f|e), for a source phrase f and its translation e."""


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
        """The phrases that begin at a word: the position behind the last, and their range in P."""
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
        words: list[int] = self.target_W[self.target_first_P[pair] : self.target_first_P[pair + 1]].tolist()
        return words

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        own = {name: getattr(self, field) for name, field in _SAVED.items()}
        trie = {"word": self.trie.word_T, "child": self.trie.first_T}
        return {"max_words": np.array(self.max_words), **trie, **own}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "PhraseTable":
        """What was saved."""
        trie = Trie(word_T=arrays["word"], first_T=arrays["child"])
        own = {field: arrays[name] for name, field in _SAVED.items()}
        return cls(max_words=int(arrays["max_words"]), trie=trie, **own)


_SAVED = {"first": "first_T", "target_first": "target_first_P", "target": "target_W", "scores": "scores_P4"}


def learn_phrases(bitext: Bitext, links: Sequence[Matrix], max_words: int, max_options: int) -> PhraseTable:
    """Phrase pairs with relative frequencies, of each source phrase the `max_options` most frequent.

    Where a pair was seen with several links, its best lexical weights count.
    """
    spans = extract_phrases(bitext, links, max_words)
    source_X, trie = _nodes(bitext, spans[:, 0], spans[:, 1], max_words)
    target_X, target_trie = _nodes(bitext.reversed(), spans[:, 2], spans[:, 3], max_words)
    key_X = source_X * len(target_trie) + target_X
    distinct = np.unique(key_X, return_index=True, return_inverse=True, return_counts=True)
    key_P, example_P, number_X, count_P = distinct
    source_P, target_P = key_P // len(target_trie), key_P % len(target_trie)
    source_L, target_L = _places(bitext, links)
    forward_X = _sums(word_weights(bitext, source_L, target_L), spans[:, 2], spans[:, 3])
    backward_X = _sums(word_weights(bitext.reversed(), target_L, source_L), spans[:, 0], spans[:, 1])
    forward_P, backward_P = (np.full(len(key_P), -np.inf) for _ in range(2))
    np.maximum.at(forward_P, number_X, forward_X)
    np.maximum.at(backward_P, number_X, backward_X)
    phrase_P = np.log(count_P / np.bincount(source_P, count_P)[source_P])
    phrase_backward_P = np.log(count_P / np.bincount(target_P, count_P)[target_P])
    scores_P4 = np.stack([phrase_P, forward_P, phrase_backward_P, backward_P], axis=1)
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

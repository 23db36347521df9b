"""Phrase pairs that agree with the links of a sentence pair (Och & Ney 2004, section 2.2; Koehn et al. 2003).

A pair agrees if no word inside is linked to a word outside, and at least one link is inside.

Shapes: S sentence pairs, L links, X extracted pairs.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Bitext, Offsets
from dragoman_training.alignment.output.symmetrization import Matrix

Spans = NDArray[np.int64]
"""[X, 4]: first source word and the one behind the last, then those of the target, in the whole corpus."""


def extract_phrases(bitext: Bitext, links: Sequence[Matrix], max_words: int) -> Spans:
    """All phrase pairs of up to `max_words` on each side."""
    arrays = (bitext.source.first_S, bitext.target.first_S, *_flatten(links), max_words)
    spans = np.zeros((_extract(*arrays, np.zeros((0, 4), np.int64)), 4), np.int64)
    _extract(*arrays, spans)
    return spans


def _flatten(links: Sequence[Matrix]) -> tuple[Offsets, Offsets, Offsets]:
    """Source and target position of every link, and where each sentence's begin. [L] twice, [S + 1]"""
    places = [matrix.nonzero() for matrix in links]
    first_S = np.concatenate([[0], np.cumsum([len(source) for source, _ in places], dtype=np.int64)])
    empty = [np.zeros(0, np.int64)]
    return (
        np.concatenate(empty + [source for source, _ in places]),
        np.concatenate(empty + [target for _, target in places]),
        first_S,
    )


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
            i, j = source_L[link], target_L[link]
            lowest_source[j], highest_source[j] = min(lowest_source[j], i), max(highest_source[j], i)
            lowest_target[i], highest_target[i] = min(lowest_target[i], j), max(highest_target[i], j)
        for first in range(num_sources):
            low, high = num_targets, -1
            for last in range(first, min(first + max_words, num_sources)):
                low, high = min(low, lowest_target[last]), max(high, highest_target[last])
                if high < 0 or high - low >= max_words:
                    continue
                closed = True
                for j in range(low, high + 1):
                    if highest_source[j] >= 0 and (lowest_source[j] < first or highest_source[j] > last):
                        closed = False
                        break
                if not closed:
                    continue
                # Words without links may stand at either end.
                start = low
                while start >= 0 and high - start < max_words and (start == low or highest_source[start] < 0):
                    end = high
                    while (
                        end < num_targets
                        and end - start < max_words
                        and (end == high or highest_source[end] < 0)
                    ):
                        if found < len(spans):
                            spans[found] = (
                                source_offset + first,
                                source_offset + last + 1,
                                target_offset + start,
                                target_offset + end + 1,
                            )
                        found += 1
                        end += 1
                    start -= 1
    return found

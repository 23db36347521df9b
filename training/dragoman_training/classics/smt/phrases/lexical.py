"""How well the words of phrases translate each other: lexical weights (Koehn et al. 2003, section 4).

Shapes: N target words of the corpus, L links.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Bitext
from dragoman_training.alignment.output.symmetrization import Matrix


def word_weights(bitext: Bitext, links: Sequence[Matrix]) -> NDArray[np.float64]:
    """Of each target word the logarithm of the mean of w(e | f) over its links, or of w(e | NULL). [N]

    w are relative frequencies among the links. All links of a word are inside every phrase pair that has the
    word inside, so its weight is the same in each, and a phrase's lexical weight is the sum over its words.
    """
    source, target = bitext.source, bitext.target
    source_L, target_L = (
        np.concatenate(
            [np.zeros(0, np.int64)]
            + [matrix.nonzero()[axis] + first for matrix, first in zip(links, side.first_S, strict=False)]
        )
        for axis, side in enumerate((source, target))
    )
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


def span_sums(
    value_N: NDArray[np.float64], first: NDArray[np.int64], end: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sums over spans of the corpus."""
    before = np.concatenate([[0.0], np.cumsum(value_N)])
    sums: NDArray[np.float64] = before[end] - before[first]
    return sums

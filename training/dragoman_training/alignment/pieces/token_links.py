"""Links between the tokens of training pairs, by an HMM of their own in both directions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.text import WordRule
from dragoman_training.alignment.pieces.learning import Pair, as_words
from dragoman_training.alignment.training import TrainingOptions, train_aligner

TokenLinks = NDArray[np.int32]
"""[links, 2]: source and target position, from 0 on."""

BLOCK_PAIRS = 10_000


def link_tokens(pairs: Sequence[Pair]) -> list[TokenLinks]:
    """The links of each pair of token ids. The same pairs give the same links."""
    words = as_words(pairs)
    longest = max((len(side) for pair in words for side in pair), default=0)
    # Numbers of tokens are not spelt.
    options = TrainingOptions(model="hmm", spelling=0, max_words=max(1, longest))
    aligner = train_aligner(words, options, WordRule(lowercase=False))
    links: list[TokenLinks] = []
    for first in range(0, len(words), BLOCK_PAIRS):
        block = words[first : first + BLOCK_PAIRS]
        links += [
            np.argwhere(matrix).astype(np.int32) for matrix in aligner.align(block, "grow-diag-final-and")
        ]
    return links

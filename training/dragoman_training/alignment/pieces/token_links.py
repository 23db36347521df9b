"""Links between the tokens of training pairs, by an HMM of their own in both directions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.text import WordRule
from dragoman_training.alignment.pieces.learning import Pair
from dragoman_training.alignment.training import TrainingOptions, train_aligner

TokenLinks = NDArray[np.int32]
"""[links, 2]: source and target position, from 0 on."""


class TokenLinker:
    """Links tokens by what it learnt from pairs of token ids. The same pairs give the same links."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        words = _words(pairs)
        longest = max((len(side) for pair in words for side in pair), default=0)
        # Numbers of tokens are not spelt.
        options = TrainingOptions(model="hmm", spelling=0, max_words=max(1, longest))
        self._aligner = train_aligner(words, options, WordRule(lowercase=False))

    def __call__(self, pairs: Sequence[Pair]) -> list[TokenLinks]:
        """The links of each of some pairs, of which none need be among those learnt from."""
        matrices = self._aligner.align(_words(pairs), "grow-diag-final-and")
        return [np.argwhere(matrix).astype(np.int32) for matrix in matrices]


def _words(pairs: Sequence[Pair]) -> list[tuple[list[str], list[str]]]:
    return [([str(token) for token in one], [str(token) for token in other]) for one, other in pairs]

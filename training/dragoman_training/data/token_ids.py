"""Token ids of many sentences in one flat array, in memory or mapped from a file.

Shapes: N tokens of all sentences, S sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class TokenIds:
    """Sentences by number, each a run of the flat array."""

    ids_N: Numbers
    first_S: Numbers
    """[S + 1]: where each sentence begins, and the end."""

    def __len__(self) -> int:
        return len(self.first_S) - 1

    def __getitem__(self, number: int) -> Numbers:
        return self.ids_N[self.first_S[number] : self.first_S[number + 1]]

    def lengths(self) -> Numbers:
        """How many tokens each sentence has: [S]."""
        return np.diff(self.first_S)


def id_type(vocabulary_size: int) -> np.dtype[Any]:
    """The smallest type that holds the vocabulary's ids."""
    return np.dtype(np.uint16 if vocabulary_size <= 1 << 16 else np.uint32)


def flatten(sentences: Sequence[Sequence[int]], dtype: np.dtype[Any]) -> TokenIds:
    """Lists of ids as flat arrays in memory."""
    lengths_S = np.fromiter((len(sentence) for sentence in sentences), np.int64, len(sentences))
    first_S = np.concatenate([[0], np.cumsum(lengths_S)])
    return TokenIds(np.fromiter(chain.from_iterable(sentences), dtype, int(first_S[-1])), first_S)

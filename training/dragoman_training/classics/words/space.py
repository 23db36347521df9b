"""Vectors of words, wherever they are from, and which of them are alike.

Shapes: V words, D width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Neighbour:
    """A word and how alike it is."""

    row: int
    word: str
    cosine: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Space:
    """What has a vector, and the vectors."""

    title: str
    vector_VD: NDArray[np.float32]
    words: Sequence[str]
    """What each row is the vector of."""
    row_of: Callable[[str], int]
    """The row of a word. Raises ValueError where it has none."""
    no_words: Sequence[int] = ()
    """Rows that are no answer, such as those of a vocabulary's special pieces."""

    def unit(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """Vectors at length one. [rows, D]"""
        vectors = self.vector_VD[list(rows)]
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
        return unit

    def nearest(self, plus: Sequence[int], minus: Sequence[int], *, number: int) -> list[Neighbour]:
        """The words whose vectors have the largest cosine with a sum of others', which are left out.

        Each of the sum has length one, as in Mikolov et al. (2013), "Linguistic Regularities in Continuous
        Space Word Representations", section 4.
        """
        wanted_D = self.unit(plus).sum(axis=0) - self.unit(minus).sum(axis=0)
        length = max(float(np.linalg.norm(wanted_D)), 1e-12)
        cosine_V = self.unit(range(len(self.vector_VD))) @ wanted_D / length
        cosine_V[[*plus, *minus, *self.no_words]] = -np.inf
        best = np.argsort(-cosine_V, kind="stable")[:number]
        return [
            Neighbour(row, self.words[row], float(cosine_V[row]))
            for row in best.tolist()
            if np.isfinite(cosine_V[row])
        ]

"""Which target pieces a source piece is translated by, and how probably.

Shapes: P distinct pairs of pieces, V source pieces and NULL.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslationTable:
    """t(target | source), sparse. The rows are the source pieces by their ids, and then NULL."""

    first_V: NDArray[np.int64]
    """[V + 1]: where each row begins in the two below, and the end."""
    target_P: NDArray[np.int32]
    """Target pieces, likeliest first in each row; of equally likely ones the one with the lower id."""
    probability_P: NDArray[np.float64]

    @classmethod
    def from_pairs(
        cls,
        source_P: NDArray[np.int32],
        target_P: NDArray[np.int32],
        probability_P: NDArray[np.float64],
        *,
        source_vocabulary: int,
    ) -> "TranslationTable":
        """Sorts pairs, in any order, into rows; the source piece `source_vocabulary` is NULL."""
        order = np.lexsort((target_P, -probability_P, source_P))
        sizes = np.bincount(source_P, minlength=source_vocabulary + 1)
        return cls(
            first_V=np.concatenate([[0], np.cumsum(sizes)]),
            target_P=target_P[order],
            probability_P=probability_P[order],
        )

    @property
    def null(self) -> int:
        """The row of NULL."""
        return len(self.first_V) - 2

    def row(self, source: int) -> dict[int, float]:
        """A source piece's targets with their probabilities, likeliest first."""
        run = slice(self.first_V[source], self.first_V[source + 1])
        return dict(zip(self.target_P[run].tolist(), self.probability_P[run].tolist(), strict=True))

    def prune(self, *, max_targets: int, min_probability: float) -> "TranslationTable":
        """The `max_targets` likeliest of each row, without those less likely than `min_probability`."""
        sizes = np.diff(self.first_V)
        rank_P = np.arange(len(self.target_P)) - np.repeat(self.first_V[:-1], sizes)
        kept_P = (rank_P < max_targets) & (self.probability_P >= min_probability)
        num_kept_before = np.concatenate([[0], np.cumsum(kept_P)])
        return TranslationTable(
            first_V=num_kept_before[self.first_V],
            target_P=self.target_P[kept_P],
            probability_P=self.probability_P[kept_P],
        )

"""Attention: queries look at keys and take a weighted sum of values.

Shapes: S sentences, Q queries a sentence, T source positions, D widths.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

MASKED = -1e4
"""Score of a padded position; its exponential is exactly 0 in every precision."""


class Attention(nn.Module, ABC):
    """A score function with the softmax and the weighted sum that all of them share."""

    @abstractmethod
    def keys(self, values_STD: Tensor) -> Tensor:
        """Projects the encoder's states once a sentence: [S, T, D] -> [S, T, A]."""

    @abstractmethod
    def scores(self, query_SQD: Tensor, keys_STA: Tensor) -> Tensor:
        """How well each query matches each key: [S, Q, T], before mask and softmax."""

    def forward(
        self, query_SQD: Tensor, keys_STA: Tensor, values_STD: Tensor, mask_ST: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns context [S, Q, D] and weights [S, Q, T]; a padded position weighs exactly 0."""
        scores_SQT = self.scores(query_SQD, keys_STA)
        return attend(scores_SQT, values_STD, mask_ST)


def attend(scores_SQT: Tensor, values_STD: Tensor, mask_ST: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax of the scores over source positions, and the sum of values it weighs.

    Bahdanau et al. (2015), equations 5 and 6.
    """
    masked = scores_SQT.masked_fill(mask_ST.unsqueeze(1) == 0, MASKED)
    weights_SQT = masked.float().softmax(dim=-1)
    return weights_SQT.to(values_STD.dtype) @ values_STD, weights_SQT


class GeneralAttention(Attention):
    """The bilinear score q·W·k of Luong et al. (2015), equation 8, `general`."""

    def __init__(self, *, query_size: int, value_size: int) -> None:
        super().__init__()
        self.key = nn.Linear(value_size, query_size, bias=False)

    def keys(self, values_STD: Tensor) -> Tensor:
        return self.key(values_STD)

    def scores(self, query_SQD: Tensor, keys_STA: Tensor) -> Tensor:
        return query_SQD @ keys_STA.transpose(1, 2)


class AdditiveAttention(Attention):
    """The additive score v·tanh(W·q + U·k) of Bahdanau et al. (2015), appendix A.1.2."""

    def __init__(self, *, query_size: int, value_size: int, units: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, units, bias=False)
        self.key = nn.Linear(value_size, units)
        self.energy = nn.Linear(units, 1, bias=False)

    def keys(self, values_STD: Tensor) -> Tensor:
        return self.key(values_STD)

    def scores(self, query_SQD: Tensor, keys_STA: Tensor) -> Tensor:
        query_SQ1A = self.query(query_SQD).unsqueeze(2)
        hidden_SQTA = torch.tanh(query_SQ1A + keys_STA.unsqueeze(1))
        return self.energy(hidden_SQTA).squeeze(3)

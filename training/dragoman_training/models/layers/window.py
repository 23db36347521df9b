"""Where local attention looks (Luong et al. 2015, section 3.2).

A window says for each query and source position by what the weight is multiplied, and 0 outside: what
`Attention` takes as `window_SQT`. Positions count from 1, source and target.

Shapes: S sentences, Q queries a sentence, T source positions, H decoder units.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional


class Window(nn.Module, ABC):
    """The 2·`reach` + 1 positions around a centre."""

    def __init__(self, reach: int) -> None:
        """`reach` is the paper's D: positions to either side of the centre."""
        super().__init__()
        self.reach = reach

    @abstractmethod
    def centre(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        """Where each query looks, from 0 to the sentence's last position: [S, Q] float32.

        `position_SQ` is how many target tokens were read before each query.
        """

    @abstractmethod
    def forward(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        """What weights are multiplied by: [S, Q, T], 0 outside the window. Padding is left to the mask."""

    def _distance(self, centre_SQ: Tensor, mask_ST: Tensor) -> Tensor:
        """How far each position is from the centre, with a sign: [S, Q, T]."""
        position_ST = torch.ones_like(mask_ST, dtype=torch.float32).cumsum(dim=1)
        return position_ST.unsqueeze(1) - centre_SQ.unsqueeze(2)


class MonotonicWindow(Window):
    """local-m: the centre is the target's own position, p_t = t.

    Where a translation grows longer than its source by more than the window, the paper's would leave the
    sentence and hold nothing. Here it stays at the sentence's end: p_t = min(t, S).
    """

    def centre(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        return torch.minimum(position_SQ.float() + 1, sentence_length(mask_ST))

    def forward(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        distance_SQT = self._distance(self.centre(query_SQH, mask_ST, position_SQ), mask_ST)
        return (distance_SQT.abs() <= self.reach).float()


class PredictedWindow(Window):
    """local-p: the centre is predicted, p_t = S·sigmoid(v·tanh(W·h)) (equation 9).

    Within the window weights are multiplied by a Gaussian around the centre with a deviation of D/2 (equation
    10), so that the prediction has a gradient; they then add up to less than 1.
    """

    def __init__(self, reach: int, units: int) -> None:
        super().__init__(reach)
        self.hidden = nn.Linear(units, units, bias=False)
        self.direction = nn.Parameter(torch.empty(units))
        nn.init.uniform_(self.direction, -(units**-0.5), units**-0.5)

    def centre(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        # For sums, and for products with a vector, onnxruntime has routines whose order may differ between
        # one row and many. With a second column, which is not read, it is a product of matrices.
        direction_H2 = functional.pad(self.direction.unsqueeze(1), (0, 1))
        logit_SQ = (self.hidden(query_SQH).tanh() @ direction_H2)[:, :, 0]
        return sentence_length(mask_ST) * logit_SQ.float().sigmoid()

    def forward(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        distance_SQT = self._distance(self.centre(query_SQH, mask_ST, position_SQ), mask_ST)
        deviation = self.reach / 2
        gaussian_SQT = (distance_SQT.square() * (-0.5 / deviation**2)).exp()
        return gaussian_SQT * (distance_SQT.abs() <= self.reach)


def sentence_length(mask_ST: Tensor) -> Tensor:
    """The paper's S, positions in each sentence: [S, 1] float32."""
    return mask_ST.float().sum(dim=1, keepdim=True)

"""Global and local attention at the top of a stacked LSTM decoder (Luong et al. 2015).

Local attention looks in a window (section 3.2), which says for each query and source position by what the
weight is multiplied, and 0 outside: what `Attention` takes as `window_SQT`. Positions count from 1.

Shapes: S sentences, Q queries a sentence, T source positions, H decoder units, M = 2 · encoder units.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_training.checks import require_at_least
from dragoman_training.models.attentional import AttentionalConfig, AttentionalLSTM
from dragoman_training.models.layers import attention
from dragoman_training.models.layers.embedding import VocabularyShape
from dragoman_training.models.seq2seq import Tensors, sentence_length


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

    def forward(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        """What weights are multiplied by: [S, Q, T], 0 outside the window. Padding is left to the mask."""
        centre_SQ = self.centre(query_SQH, mask_ST, position_SQ)
        position_ST = torch.ones_like(mask_ST, dtype=torch.float32).cumsum(dim=1)
        return self.factor(position_ST.unsqueeze(1) - centre_SQ.unsqueeze(2))

    def factor(self, distance_SQT: Tensor) -> Tensor:
        """The same of positions so far from the centre, with a sign."""
        return (distance_SQT.abs() <= self.reach).float()


class MonotonicWindow(Window):
    """local-m: the centre is the target's own position, p_t = t.

    Where a translation grows longer than its source by more than the window, the paper's would leave the
    sentence and hold nothing. Here it stays at the sentence's end: p_t = min(t, S).
    """

    def centre(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        return torch.minimum(position_SQ.float() + 1, sentence_length(mask_ST))


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

    def factor(self, distance_SQT: Tensor) -> Tensor:
        deviation = self.reach / 2
        gaussian_SQT = (distance_SQT.square() * (-0.5 / deviation**2)).exp()
        return gaussian_SQT * (distance_SQT.abs() <= self.reach)


Score = Literal["dot", "general", "concat", "scaled_dot"]


@dataclass(frozen=True, kw_only=True)
class LuongConfig(AttentionalConfig):
    """Sizes of a Luong model, its score and where it looks."""

    family: Literal["luong"] = "luong"
    """Names this family in a recipe."""
    score: Score = "general"
    """How a decoder state is matched with an encoder state (section 3.1); `scaled_dot` is Vaswani's. `dot`
    and `scaled_dot` need decoder states as wide as the encoder's."""
    attention: Literal["global", "local-m", "local-p"] = "global"
    """Over all of the source (section 3.1), or in a window that moves with the target or is predicted
    (section 3.2)."""
    window: int = 0
    """Source positions to either side of a local window's centre, the paper's D, there 10; 0 is no window."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, "model", window=0)
        if self.score in ("dot", "scaled_dot") and self.decoder_units != 2 * self.encoder_units:
            raise ValueError(
                f"model.score is {self.score}, which multiplies decoder states by encoder states, but "
                f"model.decoder_units is {self.decoder_units} and the encoder's two directions have "
                f"{2 * self.encoder_units}; make them equal, or take general or concat"
            )
        if self.attention != "global" and self.window == 0:
            raise ValueError(
                f"model.attention is {self.attention}, but model.window is 0; give it the positions to "
                "either side that it may look at, at least 1 (the paper has 10)"
            )
        if self.attention == "global" and self.window > 0:
            raise ValueError(
                f"model.window is {self.window}, but model.attention is global and has none; leave it out, "
                "or take local-m or local-p"
            )


class Luong(AttentionalLSTM):
    """Luong's decoder, with any of his scores, over all of the source or in a window."""

    def __init__(self, config: LuongConfig, vocabulary: VocabularyShape) -> None:
        sizes = {"query_size": config.decoder_units, "value_size": 2 * config.encoder_units}
        scores: dict[Score, Callable[[], attention.Attention]] = {
            "dot": attention.DotAttention,
            "scaled_dot": attention.ScaledDotAttention,
            "general": partial(attention.GeneralAttention, **sizes),
            # The hidden layer is as wide as the queries.
            "concat": partial(attention.AdditiveAttention, **sizes, units=config.decoder_units),
        }
        width, counts_steps = sizes["value_size"], config.attention == "local-m"
        given = config, vocabulary, scores[config.score]
        super().__init__(*given, context_size=width, counts_steps=counts_steps)
        self.config = config
        self.window: Window | None = None
        if counts_steps:
            self.window = MonotonicWindow(config.window)
        elif config.attention == "local-p":
            self.window = PredictedWindow(config.window, config.decoder_units)

    def remember(self, states_STM: Tensor, mask_ST: Tensor) -> Tensors:
        memory = {"values": states_STM, "mask": mask_ST}
        # Keys that are the values themselves are kept once.
        if self.config.score in ("general", "concat"):
            memory["keys"] = self.attention.keys(states_STM)
        return memory

    def look(self, top_SQH: Tensor, memory: Tensors, position_SQ: Tensor | None) -> tuple[Tensor, Tensor]:
        mask_ST, values_STM = memory["mask"], memory["values"]
        window_SQT = None if self.window is None else self.window(top_SQH, mask_ST, position_SQ)
        return self.attention(top_SQH, memory.get("keys", values_STM), values_STM, mask_ST, window_SQT)

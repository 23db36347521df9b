"""Scheduled sampling: the decoder learns to read its own tokens too (Bengio et al. 2015).

Shapes: S sentences, U target positions, V vocabulary, D features.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dragoman_training.checks import require_at_least, require_default
from dragoman_training.models import Seq2Seq, Tensors


@dataclass(frozen=True, kw_only=True)
class ScheduledSamplingConfig:
    """How often the decoder reads the reference's token, rather than its own last one, while it trains.

    Off by default: it reads the reference always, which is teacher forcing. Otherwise a coin is tossed for
    each token, and the decoder runs step by step, with an output layer a step: training is slower.
    """

    teacher_forcing: float = 1.0
    """Probability of the reference's token before the first step, where `inverse_sigmoid` begins with
    k/(k + 1) of it; without a `decay` it stays there."""
    decay: Literal["none", "linear", "exponential", "inverse_sigmoid"] = "none"
    """How that probability falls (section 2.4)."""
    pace: float = 1000.0
    """`linear`: steps in which it falls to 0. `exponential`: steps in which it falls by a factor of e.
    `inverse_sigmoid`: the paper's k; half of it is left after k·ln k steps."""
    least: float = 0.0
    """It never falls below this."""
    token: Literal["best", "sampled"] = "best"
    """The model's own token: its likeliest, or one drawn from its distribution."""

    def __post_init__(self) -> None:
        require_at_least(self, "scheduled_sampling", teacher_forcing=0, pace=1, least=0)
        for name in ("teacher_forcing", "least"):
            if getattr(self, name) > 1:
                raise ValueError(f"scheduled_sampling.{name} is {getattr(self, name)}, but must be at most 1")
        if not self.pace < math.inf:
            raise ValueError(f"scheduled_sampling.pace is {self.pace}, but must be finite")
        if self.least > self.teacher_forcing:
            raise ValueError(
                f"scheduled_sampling.least is {self.least}, but must be at most teacher_forcing, "
                f"{self.teacher_forcing}"
            )
        if self.decay == "none":
            because = 'scheduled_sampling.decay is "none", so that the probability does not fall'
            require_default(self, "scheduled_sampling", "pace", "least", because=because)
            if self.teacher_forcing == 1:
                because += " and the reference is read always"
                require_default(self, "scheduled_sampling", "token", because=because)


def teacher_forcing(config: ScheduledSamplingConfig, step: int) -> float:
    """Probability of the reference's token at a step, counted from 1 (Bengio et al. 2015, section 2.4)."""
    done = step - 1
    match config.decay:
        case "none":
            factor = 1.0
        case "linear":
            factor = 1 - done / config.pace
        case "exponential":
            factor = math.exp(-done / config.pace)
        case "inverse_sigmoid":
            # k / (k + exp(i / k)), written so that it can't overflow.
            factor = 1 / (1 + math.exp(min(done / config.pace, 700.0) - math.log(config.pace)))
    return max(config.least, config.teacher_forcing * factor)


def decode_scheduled(
    model: Seq2Seq,
    memory: Tensors,
    state: Tensors,
    target_SU: Tensor,
    *,
    teacher_forcing: float,
    token: Literal["best", "sampled"] = "best",
) -> Tensor:
    """Features [S, U, D], as `Seq2Seq.decode` returns them, with some inputs replaced by predictions.

    Each input after the first is the given one with that probability, else what the model predicts from its
    last features. No gradient flows through the choice. Dropout is as in `Seq2Seq.decode`. Draws from
    PyTorch's generator of the device.
    """
    gold_SU = torch.rand(target_SU.shape, device=target_SU.device) < teacher_forcing
    token_S = target_SU[:, 0]
    features = []
    for position in range(target_SU.shape[1]):
        features_SD, _, state = model.step(token_S.unsqueeze(1), memory, state)
        features.append(features_SD)
        if position + 1 < target_SU.shape[1]:
            own_S = _own_token(model, features_SD, token)
            token_S = torch.where(gold_SU[:, position + 1], target_SU[:, position + 1], own_S)
    return torch.stack(features, dim=1)


@torch.no_grad()
def _own_token(model: Seq2Seq, features_SD: Tensor, token: Literal["best", "sampled"]) -> Tensor:
    logits_SV: Tensor = model.output(features_SD)
    if token == "best":
        return logits_SV.argmax(dim=-1)
    return logits_SV.float().softmax(dim=-1).multinomial(1).squeeze(1)

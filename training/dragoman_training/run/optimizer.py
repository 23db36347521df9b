"""The optimizer, its learning rate over time, and the moving average of parameters."""

import copy
import math
from typing import Any

import torch
from torch import nn

from dragoman_training.models import Seq2Seq
from dragoman_training.models.layers.transformer_layers import Positions
from dragoman_training.recipe.settings import TrainingConfig


def build_optimizer(config: TrainingConfig, model: Seq2Seq) -> torch.optim.Optimizer:
    """Adam or AdamW over the model's parameters; AdamW decays weight matrices alone.

    Tables that rows are looked up in, embeddings and learned positions, are none.
    """
    # Fused, it keeps state of a step that overflows, and on GPUs wants the count of steps on the device.
    fused = next(model.parameters()).device.type == "cpu" and config.precision != "fp16"
    if config.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), lr=0.0, betas=config.adam_betas, eps=1e-9, fused=fused)
    looked_up = [module for module in model.modules() if isinstance(module, nn.Embedding | Positions)]
    tables = {weight for module in looked_up for weight in module.parameters(recurse=False)}
    decayed = [weight for weight in model.parameters() if weight.ndim >= 2 and weight not in tables]
    undecayed = [weight for weight in model.parameters() if weight.ndim < 2 or weight in tables]
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": undecayed, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        groups, lr=0.0, betas=config.adam_betas, eps=1e-9, weight_decay=config.weight_decay, fused=fused
    )


def learning_rate(config: TrainingConfig, step: int, total_steps: int) -> float:
    """The learning rate at a step, counted from 1: linear warm-up, then the recipe's decay.

    `inverse_sqrt` is the schedule of Vaswani et al. (2017), equation 3, scaled to its peak.
    """
    if step < config.warmup_steps:
        return config.learning_rate * step / config.warmup_steps
    warmup = max(config.warmup_steps, 1)
    progress = min(1.0, (step - warmup) / max(1, total_steps - warmup))
    match config.decay:
        case "inverse_sqrt":
            factor = math.sqrt(warmup / max(step, warmup))
        case "linear":
            factor = 1 - progress
        case "cosine":
            factor = (1 + math.cos(math.pi * progress)) / 2
        case "constant":
            factor = 1.0
    return config.learning_rate * factor


class MovingAverage:
    """A model whose parameters are the exponential moving average of another's.

    A decay of 0 follows the other exactly. The decay is held back at the beginning, to
    min(decay, (1 + n) / (10 + n)) after n updates, so that the first random parameters are soon forgotten.
    """

    def __init__(self, model: Seq2Seq, decay: float) -> None:
        self._decay = decay
        self.num_updates = 0
        # The move flattens the weights of recurrent layers again, as CUDA wants them.
        self.model = copy.deepcopy(model).eval().requires_grad_(False).to(next(model.parameters()).device)

    @torch.no_grad()
    def update(self, model: Seq2Seq) -> None:
        """Takes in the model's current parameters."""
        self.num_updates += 1
        decay = min(self._decay, (1 + self.num_updates) / (10 + self.num_updates))
        torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), 1 - decay)

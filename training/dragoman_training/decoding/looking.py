"""Where a model looks while it says given tokens, and where local-p attention puts its window.

Shapes: S sentences, U target tokens, eos included, T source tokens, eos included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import Luong, Seq2Seq
from dragoman_training.models.layers.window import PredictedWindow

Weights = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Look:
    """Where one sentence's decoder looked."""

    weights_UT: Weights
    """Attention of each target token over the source's."""
    centre_U: Weights | None
    """Where local-p put its window, in source positions counted from 1; None for other models."""


def looks_somewhere(model: Seq2Seq) -> bool:
    """Whether the model has attention over the source."""
    source_ST, length_S = torch.tensor([[0, 0]]), torch.tensor([2])
    device = next(model.parameters()).device
    (look,) = look_at(model, source_ST.to(device), length_S.to(device), torch.tensor([[0]], device=device))
    return bool(look.weights_UT.any())


def look_along(
    model: Seq2Seq,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    pad_ids_of_sides: tuple[int, int],
    bos_id: int,
) -> list[Look]:
    """Where the model looks saying `targets`, ids with eos, of `sources`, ids with eos."""
    device = next(model.parameters()).device
    source_pad, target_pad = pad_ids_of_sides
    looks = look_at(
        model,
        pad_ids(sources, source_pad).to(device),
        torch.tensor([len(source) for source in sources], device=device),
        pad_ids([[bos_id, *target[:-1]] for target in targets], target_pad).to(device),
    )
    return [
        Look(
            weights_UT=look.weights_UT[: len(target), : len(source)],
            centre_U=None if look.centre_U is None else look.centre_U[: len(target)],
        )
        for look, source, target in zip(looks, sources, targets, strict=True)
    ]


@torch.inference_mode()
def look_at(model: Seq2Seq, source_ST: Tensor, length_S: Tensor, input_SU: Tensor) -> list[Look]:
    """Steps through what the decoder reads, beginning with bos; padding looks somewhere too."""
    window = model.window if isinstance(model, Luong) else None
    centres = _Centres()
    handle = None
    if isinstance(window, PredictedWindow):
        handle = window.register_forward_hook(centres)
    try:
        memory, state = model.encode(source_ST, length_S)
        weights = []
        for token_S1 in input_SU.split(1, dim=1):
            _, attention_S1T, state = model.step(token_S1, memory, state)
            weights.append(attention_S1T.float().cpu())
    finally:
        if handle is not None:
            handle.remove()
    weights_SUT = torch.cat(weights, dim=1).numpy()
    if handle is None:
        return [Look(weights_UT=weights_UT, centre_U=None) for weights_UT in weights_SUT]
    centre_SU = torch.cat(centres.seen, dim=1).numpy()
    return [
        Look(weights_UT=weights_UT, centre_U=centre_U)
        for weights_UT, centre_U in zip(weights_SUT, centre_SU, strict=True)
    ]


class _Centres:
    """Hears what a local-p window is asked, and keeps what it predicts."""

    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def __call__(self, window: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        assert isinstance(window, PredictedWindow)
        self.seen.append(window.centre(*inputs).float().cpu())

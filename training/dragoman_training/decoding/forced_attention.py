"""A model's attention when it says given tokens (forced decoding), and where local-p puts its window.

Shapes: S sentences, U target tokens, eos included, T source tokens, eos included.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman_training.data.batching import pad_ids
from dragoman_training.data.vocabulary import Tokenizers
from dragoman_training.models import Luong, Seq2Seq
from dragoman_training.models.luong import PredictedWindow

Weights = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ForcedAttention:
    """The attention of one sentence's decoder."""

    weights_UT: Weights
    """Attention of each target token over the source's."""
    centre_U: Weights | None
    """Where local-p put its window, in source positions counted from 1; None for other models."""


def has_attention(model: Seq2Seq) -> bool:
    """Whether the model has attention over the source."""
    device = next(model.parameters()).device
    given = (torch.tensor(ids, device=device) for ids in ([[0, 0]], [2], [[0]]))
    return bool(_force_tokens(model, *given)[0].any())


def attention_along(
    model: Seq2Seq, tokenizers: Tokenizers, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[ForcedAttention]:
    """The attention when the model says `targets` for `sources`; both are ids with eos."""
    device = next(model.parameters()).device
    source_tokenizer, target_tokenizer = tokenizers
    inputs = [[target_tokenizer.bos_id, *target[:-1]] for target in targets]
    weights_SUT, centre_SU = _force_tokens(
        model,
        pad_ids(sources, source_tokenizer.pad_id).to(device),
        torch.tensor([len(source) for source in sources], device=device),
        pad_ids(inputs, target_tokenizer.pad_id).to(device),
    )
    found = []
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        centre_U = None if centre_SU is None else centre_SU[number, : len(target)]
        weights_UT = weights_SUT[number, : len(target), : len(source)]
        found.append(ForcedAttention(weights_UT=weights_UT, centre_U=centre_U))
    return found


@torch.inference_mode()
def _force_tokens(
    model: Seq2Seq, source_ST: Tensor, length_S: Tensor, input_SU: Tensor
) -> tuple[Weights, Weights | None]:
    """Steps through the tokens that the decoder reads, from bos on: attention, padding's too, and centres."""
    window = model.window if isinstance(model, Luong) else None
    centres: list[Tensor] = []
    handle = None
    if isinstance(window, PredictedWindow):
        handle = window.register_forward_hook(lambda _, given, output: centres.append(window.centre(*given)))
    try:
        memory, state = model.encode(source_ST, length_S)
        weights = []
        for token_S1 in input_SU.split(1, dim=1):
            _, attention_S1T, state = model.step(token_S1, memory, state)
            weights.append(attention_S1T.float().cpu())
    finally:
        if handle is not None:
            handle.remove()
    centre_SU = torch.cat(centres, dim=1).float().cpu().numpy() if centres else None
    return torch.cat(weights, dim=1).numpy(), centre_SU

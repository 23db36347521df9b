"""Label-smoothed cross-entropy over a tied output layer, without keeping the logits.

Shapes: N target tokens, C tokens of a chunk, P tokens of a piece of it, D features, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

CHUNK_LOGITS = 1 << 26
"""Logits of one product of matrices, at most: 128 MiB in bf16."""
CACHED_LOGITS = 1 << 18
"""Logits that a CPU turns into gradients at a time: what it passes over several times stays in its cache."""


class _LinearCrossEntropy(torch.autograd.Function):
    """Logits, loss and gradients chunk by chunk in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        features_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor,
        target_N: Tensor,
        smoothing: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        vocabulary = weight_VD.shape[0]
        weight = weight_VD.to(dtype)
        features = features_ND.to(dtype)
        smoothed = features_ND.new_zeros((), dtype=torch.float32)
        plain = features_ND.new_zeros((), dtype=torch.float32)
        grad_features = torch.empty_like(features)
        grad_weight = torch.zeros_like(weight_VD, dtype=torch.float32)
        grad_bias = torch.zeros_like(bias_V, dtype=torch.float32)
        chunk = max(1, CHUNK_LOGITS // vocabulary)
        piece = max(1, CACHED_LOGITS // vocabulary) if features.device.type == "cpu" else chunk
        for start in range(0, features.shape[0], chunk):
            part = slice(start, start + chunk)
            chunk_CV = features[part] @ weight.T
            for piece_PV, target_P in zip(chunk_CV.split(piece), target_N[part].split(piece), strict=True):
                target_P1 = target_P.unsqueeze(1)
                logits_PV = piece_PV.float().add_(bias_V)
                largest_P1 = logits_PV.amax(dim=1, keepdim=True)
                # The logits from here on lack the largest, so that no exponential overflows.
                to_target_P1 = logits_PV.sub_(largest_P1).gather(1, target_P1)
                uniform_P1 = logits_PV.mean(dim=1, keepdim=True)
                total_P1 = logits_PV.exp_().sum(dim=1, keepdim=True)
                normalizer_P1 = total_P1.log()
                target_loss = (normalizer_P1 - to_target_P1).sum()
                plain += target_loss
                smoothed += (1 - smoothing) * target_loss + smoothing * (normalizer_P1 - uniform_P1).sum()
                if not any(ctx.needs_input_grad):
                    continue
                grad_PV = logits_PV.div_(total_P1).sub_(smoothing / vocabulary)
                grad_PV.scatter_add_(1, target_P1, torch.full_like(total_P1, smoothing - 1))
                grad_bias += grad_PV.sum(dim=0)
                piece_PV.copy_(grad_PV)
            if any(ctx.needs_input_grad):
                grad_features[part] = chunk_CV @ weight
                grad_weight += chunk_CV.T @ features[part]
        ctx.save_for_backward(grad_features.to(features_ND.dtype), grad_weight, grad_bias)
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_features, grad_weight, grad_bias = ctx.saved_tensors
        return (
            # A float32 scalar leaves the type as it is: rounded to bf16 it would be off by up to 0.4%.
            grad_features * grad,
            grad_weight * grad,
            grad_bias * grad,
            None,
            None,
            None,
        )


def linear_cross_entropy(
    features_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    target_N: Tensor,
    *,
    smoothing: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Sums over tokens of the smoothed loss, which has gradients, and of the plain one, which has none.

    Label smoothing is that of Szegedy et al. (2016), section 7: the target keeps 1 - `smoothing`, the rest is
    spread evenly over the vocabulary. `dtype` is the matrix products'; all else is float32. Natural logs.
    """
    result: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features_ND, weight_VD, bias_V, target_N, smoothing, dtype
    )
    return result

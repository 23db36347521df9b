"""Label-smoothed cross-entropy over a tied output layer, without keeping the logits.

Shapes: N target tokens, C tokens of a chunk, D features, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

CHUNK_TOKENS = 512


class _LinearCrossEntropy(torch.autograd.Function):
    """Logits, loss and gradients chunk by chunk in the forward pass: [N, V] never exists."""

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
        for start in range(0, features.shape[0], CHUNK_TOKENS):
            part = slice(start, start + CHUNK_TOKENS)
            logits_CV = (features[part] @ weight.T).float().add_(bias_V)
            target_C1 = target_N[part].unsqueeze(1)
            normalizer_C1 = logits_CV.logsumexp(dim=1, keepdim=True)
            target_loss = (normalizer_C1 - logits_CV.gather(1, target_C1)).sum()
            uniform_loss = (normalizer_C1.squeeze(1) - logits_CV.mean(dim=1)).sum()
            plain += target_loss
            smoothed += (1 - smoothing) * target_loss + smoothing * uniform_loss
            if not any(ctx.needs_input_grad):
                continue
            grad_CV = logits_CV.sub_(normalizer_C1).exp_().sub_(smoothing / vocabulary)
            grad_CV.scatter_add_(1, target_C1, torch.full_like(normalizer_C1, smoothing - 1))
            grad_bias += grad_CV.sum(dim=0)
            grad = grad_CV.to(dtype)
            grad_features[part] = grad @ weight
            grad_weight += grad.T @ features[part]
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

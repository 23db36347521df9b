"""Label-smoothed cross-entropy over a tied output layer, without keeping the logits.

Shapes: P passes over the same tokens, N target tokens, C tokens of a chunk, D features, V vocabulary.
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
        features_PND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor,
        target_N: Tensor,
        smoothing: float,
        consistency: float,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        passes = features_PND.shape[0]
        vocabulary = weight_VD.shape[0]
        weight = weight_VD.to(dtype)
        features = features_PND.to(dtype)
        minimised = features_PND.new_zeros((), dtype=torch.float32)
        plain = features_PND.new_zeros((), dtype=torch.float32)
        grad_features = torch.empty_like(features)
        grad_weight = torch.zeros_like(weight_VD, dtype=torch.float32)
        grad_bias = torch.zeros_like(bias_V, dtype=torch.float32)
        for start in range(0, features.shape[1], CHUNK_TOKENS):
            part = slice(start, start + CHUNK_TOKENS)
            scores_PCV = (features[:, part] @ weight.T).float().add_(bias_V)
            target_PC1 = target_N[part].view(1, -1, 1).expand(passes, -1, 1)
            normalizer_PC1 = scores_PCV.logsumexp(dim=2, keepdim=True)
            target_loss = (normalizer_PC1 - scores_PCV.gather(2, target_PC1)).sum() / passes
            uniform_loss = (normalizer_PC1.squeeze(2) - scores_PCV.mean(dim=2)).sum() / passes
            plain += target_loss
            minimised += (1 - smoothing) * target_loss + smoothing * uniform_loss
            if not (consistency or any(ctx.needs_input_grad)):
                continue
            scores_PCV.sub_(normalizer_PC1)
            difference_CV = scores_PCV[0] - scores_PCV[1] if consistency else None
            grad_PCV = scores_PCV.exp_()
            pull_PCV = None
            if difference_CV is not None:
                divergence, pull_PCV = _symmetric_divergence(grad_PCV, difference_CV)
                minimised += consistency / 2 * divergence
            grad_PCV.sub_(smoothing / vocabulary)
            grad_PCV.scatter_add_(2, target_PC1, torch.full_like(normalizer_PC1, smoothing - 1))
            if passes > 1:
                grad_PCV /= passes
            if pull_PCV is not None:
                grad_PCV.add_(pull_PCV, alpha=consistency / 2)
            grad_bias += grad_PCV.sum(dim=(0, 1))
            grad = grad_PCV.to(dtype)
            grad_features[:, part] = grad @ weight
            grad_weight += grad.flatten(0, 1).T @ features[:, part].flatten(0, 1)
        ctx.save_for_backward(grad_features.to(features_PND.dtype), grad_weight, grad_bias)
        ctx.mark_non_differentiable(plain)
        return minimised, plain

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_features, grad_weight, grad_bias = ctx.saved_tensors
        return (
            grad_features * grad.to(grad_features.dtype),
            grad_weight * grad,
            grad_bias * grad,
            None,
            None,
            None,
            None,
        )


def _symmetric_divergence(probability_PCV: Tensor, difference_CV: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of both Kullback-Leibler divergences of two passes, summed over tokens, and its gradient.

    `difference_CV` is the first pass's log-probabilities less the second's; the gradient is by the logits.
    """
    toward_PCV = torch.stack((difference_CV, -difference_CV))
    divergence_PC1 = (probability_PCV * toward_PCV).sum(dim=2, keepdim=True)
    gap_PCV = probability_PCV - probability_PCV.flip(0)
    pull_PCV = toward_PCV.sub_(divergence_PC1).mul_(probability_PCV).add_(gap_PCV).div_(2)
    return divergence_PC1.sum() / 2, pull_PCV


def linear_cross_entropy(
    features: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    target_N: Tensor,
    *,
    smoothing: float = 0.0,
    consistency: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Sums over tokens of what is minimised, which has gradients, and of the plain loss, which has none.

    `features` are [N, D], or [2, N, D] of two passes with different dropout; both results are means over the
    passes. Label smoothing is that of Szegedy et
    al. (2016), section 7: the target keeps 1 - `smoothing`, the rest is spread evenly over the vocabulary.
    `consistency` is R-Drop's alpha (Liang et al. 2021, equations 2 to 4, halved): with it what is minimised
    is the mean over two passes of the smoothed loss, and alpha / 2 times the mean of both divergences between
    them. `dtype` is the matrix products'; all else is float32. Natural logs.
    """
    features_PND = features if features.dim() == 3 else features.unsqueeze(0)
    result: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features_PND, weight_VD, bias_V, target_N, smoothing, consistency, dtype
    )
    return result

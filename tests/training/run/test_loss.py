"""The fused loss where training computes with fewer bits."""

import pytest
import torch

from dragoman_training.run import objective
from dragoman_training.run.objective import linear_cross_entropy


def test_bf16_products_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    # Chunks of 12 tokens in pieces of 5.
    monkeypatch.setattr(objective, "CHUNK_LOGITS", 12 * 30)
    monkeypatch.setattr(objective, "CACHED_LOGITS", 5 * 30)
    torch.manual_seed(0)
    features, weight = torch.randn(20, 8, requires_grad=True), torch.randn(30, 8, requires_grad=True)
    bias, target = torch.zeros(30), torch.randint(30, (20,))
    exact, _ = linear_cross_entropy(features, weight, bias, target)
    rounded, _ = linear_cross_entropy(features, weight, bias, target, dtype=torch.bfloat16)
    torch.testing.assert_close(rounded, exact, rtol=0.01, atol=0)
    for ours, theirs in zip(
        torch.autograd.grad(rounded, [features, weight]),
        torch.autograd.grad(exact, [features, weight]),
        strict=True,
    ):
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


@pytest.mark.parametrize(("dtype", "factor"), [(torch.bfloat16, 1 / 901), (torch.float16, 65536.0)])
def test_gradients_are_scaled_by_an_exact_factor(dtype: torch.dtype, factor: float) -> None:
    torch.manual_seed(0)
    features, weight = torch.randn(20, 8, dtype=dtype, requires_grad=True), torch.randn(30, 8)
    summed, _ = linear_cross_entropy(features, weight, torch.zeros(30), torch.randint(30, (20,)), dtype=dtype)
    (once,) = torch.autograd.grad(summed, features, retain_graph=True)
    (scaled,) = torch.autograd.grad(factor * summed, features)
    assert scaled.dtype == dtype
    torch.testing.assert_close(scaled, (once.float() * factor).to(dtype), rtol=0, atol=0)

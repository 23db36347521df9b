"""The fused loss equals PyTorch's own, in value and in gradients."""

import pytest
import torch
from torch.nn import functional

from dragoman_training.run import loss
from dragoman_training.run.loss import linear_cross_entropy


def test_bf16_products_change_little() -> None:
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


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_cross_entropy(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "CHUNK_TOKENS", 7)
    torch.manual_seed(0)
    features = torch.randn(20, 8, requires_grad=True)
    weight = torch.randn(30, 8, requires_grad=True)
    bias = torch.randn(30, requires_grad=True)
    target = torch.randint(30, (20,))

    smoothed, plain = linear_cross_entropy(features, weight, bias, target, smoothing=smoothing)
    ours = torch.autograd.grad(3 * smoothed, [features, weight, bias])
    logits = features @ weight.T + bias
    expected = functional.cross_entropy(logits, target, label_smoothing=smoothing, reduction="sum")
    theirs = torch.autograd.grad(3 * expected, [features, weight, bias])

    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(plain, functional.cross_entropy(logits, target, reduction="sum"))
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-4, atol=1e-5)

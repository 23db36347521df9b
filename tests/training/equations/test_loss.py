"""The cross-entropy against smoothed labels (Szegedy et al. 2016, section 7), token by token, and rounded.

Shapes: N tokens, D features, V vocabulary.
"""

import numpy as np
import pytest
import torch
from tests.training.equations.plain_loops import softmax

from dragoman_training.run import objective
from dragoman_training.run.objective import linear_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_smoothed_labels(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_tokens, width, vocabulary = 47, 4, 7
    # Chunks of 20 tokens in pieces of 6.
    monkeypatch.setattr(objective, "CHUNK_LOGITS", 20 * vocabulary)
    monkeypatch.setattr(objective, "CACHED_LOGITS", 6 * vocabulary)
    torch.manual_seed(0)
    features_ND = torch.randn(num_tokens, width, requires_grad=True)
    weight_VD = torch.randn(vocabulary, width, requires_grad=True)
    bias_V = torch.randn(vocabulary, requires_grad=True)
    target_N = torch.randint(vocabulary, (num_tokens,))
    smoothed, plain = linear_cross_entropy(features_ND, weight_VD, bias_V, target_N, smoothing=smoothing)
    gradients = torch.autograd.grad(3 * smoothed, [features_ND, weight_VD, bias_V])

    features, weight, bias = (each.detach().double().numpy() for each in (features_ND, weight_VD, bias_V))
    smoothed_loss = plain_loss = 0.0
    features_gradient, weight_gradient = np.zeros_like(features), np.zeros_like(weight)
    bias_gradient = np.zeros_like(bias)
    for n, target in enumerate(target_N.tolist()):
        probability_V = softmax(weight @ features[n] + bias)
        # q'(k) = (1 - ε)·δ(k, y) + ε/K, and the loss H(q', p).
        label_V = np.full(vocabulary, smoothing / vocabulary)
        label_V[target] += 1 - smoothing
        smoothed_loss -= label_V @ np.log(probability_V)
        plain_loss -= np.log(probability_V[target])
        # The gradient of a logit is p(k) - q'(k).
        features_gradient[n] = 3 * (probability_V - label_V) @ weight
        weight_gradient += 3 * np.outer(probability_V - label_V, features[n])
        bias_gradient += 3 * (probability_V - label_V)

    assert smoothed.item() == pytest.approx(smoothed_loss, rel=1e-5)
    assert plain.item() == pytest.approx(plain_loss, rel=1e-5)
    for found, expected in zip(gradients, (features_gradient, weight_gradient, bias_gradient), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


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

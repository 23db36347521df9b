"""The cross-entropy against smoothed labels (Szegedy et al. 2016, section 7), token by token.

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

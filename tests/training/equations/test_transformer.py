"""The Transformer (Vaswani et al. 2017), normalised before sublayers or after them; SSRU (Kim et al. 2019).

Shapes: T source positions, U target positions, N positions looked at, H heads, D width.
"""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from tests.training.equations.plain_loops import (
    Vector,
    Weights,
    assert_follows,
    linear,
    model_of,
    softmax,
    weighted_sum,
    weights_of,
)

from dragoman_training.models import Transformer, TransformerConfig

Rows = list[Vector]


def multi_head(queries: Rows, keys_ND: Rows, values_ND: Rows, num_heads: int) -> tuple[Rows, Rows]:
    """Projected queries look at as many of the keys as they have to (section 3.2.2, without W^O).

    Returns the heads' contexts side by side, [D] each, and the mean of their weights, [N] each.
    """
    contexts, looked = [], []
    for query_D in queries:
        context, weights_N = [], np.zeros(len(keys_ND))
        for head in np.split(np.arange(len(query_D)), num_heads):
            # Equation 1.
            scores_N = [query_D[head] @ key_D[head] / math.sqrt(len(head)) for key_D in keys_ND]
            of_head_N = softmax(scores_N)
            context.append(weighted_sum(of_head_N, [value_D[head] for value_D in values_ND]))
            weights_N += of_head_N / num_heads
        contexts.append(np.concatenate(context))
        looked.append(weights_N)
    return contexts, looked


def position(p: int, width: int) -> Vector:
    """Section 3.5, with all sines before the cosines."""
    angles = [p / 10_000 ** (2 * i / width) for i in range(width // 2)]
    return np.array([*map(math.sin, angles), *map(math.cos, angles)])


class Equations:
    """A Transformer's equations, with the weights of the one that is tested."""

    def __init__(self, weights: Weights, config: TransformerConfig) -> None:
        self.weights = weights
        self.config = config

    def follow(self, source: list[int], target: list[int]) -> tuple[Rows, Rows]:
        """The decoder's features [U, D] and how its last layer looks at the source [U, T]."""
        x_TD = self.embed("source_embedding", source)
        for layer in range(self.config.encoder_layers):
            x_TD = self.encoder_layer(f"encoder_layers.{layer}", x_TD)
        x_TD = self.end("encoder_norm", x_TD)
        y_UD = self.embed("target_embedding", target)
        for layer in range(self.config.decoder_layers):
            y_UD, looked_UT = self.decoder_layer(f"decoder_layers.{layer}", y_UD, x_TD)
        return self.end("decoder_norm", y_UD), looked_UT

    def embed(self, table: str, tokens: list[int]) -> Rows:
        """Embeddings times the root of the width, and positions (sections 3.4 and 3.5)."""
        width = self.config.width
        embedding = self.weights[f"{table}.weight"]
        return [embedding[token] * math.sqrt(width) + position(p, width) for p, token in enumerate(tokens)]

    def encoder_layer(self, name: str, x_TD: Rows) -> Rows:
        def look(x_TD: Rows) -> Rows:
            queries, keys, values = self.project(f"{name}.attention.input", 3, x_TD)
            contexts, _ = multi_head(queries, keys, values, self.config.heads)
            return [linear(self.weights, f"{name}.attention.output", context) for context in contexts]

        x_TD = self.residual(f"{name}.attention_residual", x_TD, look)
        return self.residual(f"{name}.feed_forward_residual", x_TD, lambda x: self.feed_forward(name, x))

    def decoder_layer(self, name: str, y_UD: Rows, x_TD: Rows) -> tuple[Rows, Rows]:
        looked_UT: Rows = []

        def look_at_past(y_UD: Rows) -> Rows:
            queries, keys, values = self.project(f"{name}.self_attention.input", 3, y_UD)
            contexts: Rows = []
            for u, query_D in enumerate(queries, 1):
                # Section 3.2.3: no position sees what comes after it.
                contexts += multi_head([query_D], keys[:u], values[:u], self.config.heads)[0]
            return [linear(self.weights, f"{name}.self_attention.output", context) for context in contexts]

        def recur(y_UD: Rows) -> Rows:
            """Section 3.1 of Kim et al. 2019, with a bias of the candidate too."""
            cell_D, states = np.zeros(self.config.width), []
            for gate_D, candidate_D in zip(*self.project(f"{name}.ssru.input", 2, y_UD), strict=True):
                forget_D = 1 / (1 + np.exp(-gate_D))
                cell_D = forget_D * cell_D + (1 - forget_D) * candidate_D
                states.append(np.maximum(0, cell_D))
            return states

        def look_at_source(y_UD: Rows) -> Rows:
            (queries,) = self.project(f"{name}.cross_attention.query", 1, y_UD)
            keys, values = self.project(f"{name}.cross_attention.memory", 2, x_TD)
            contexts, weights_UT = multi_head(queries, keys, values, self.config.heads)
            looked_UT.extend(weights_UT)
            return [linear(self.weights, f"{name}.cross_attention.output", context) for context in contexts]

        past = recur if self.config.past == "ssru" else look_at_past
        y_UD = self.residual(f"{name}.self_residual", y_UD, past)
        y_UD = self.residual(f"{name}.cross_residual", y_UD, look_at_source)
        y_UD = self.residual(f"{name}.feed_forward_residual", y_UD, lambda y: self.feed_forward(name, y))
        return y_UD, looked_UT

    def project(self, name: str, parts: int, x_ND: Rows) -> list[Rows]:
        """Queries, keys and values, whose matrices lie one behind the other."""
        by_row = [np.split(linear(self.weights, name, x_D), parts) for x_D in x_ND]
        return [[row[part] for row in by_row] for part in range(parts)]

    def feed_forward(self, name: str, x_ND: Rows) -> Rows:
        """max(0, x·W_1 + b_1)·W_2 + b_2 (equation 2)."""
        hidden = [np.maximum(0, linear(self.weights, f"{name}.feed_forward.expand", x_D)) for x_D in x_ND]
        return [linear(self.weights, f"{name}.feed_forward.contract", h) for h in hidden]

    def residual(self, name: str, x_ND: Rows, sublayer: Callable[[Rows], Rows]) -> Rows:
        """LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x)) (Xiong et al. 2020)."""
        if self.config.norm == "post":
            sums = [x_D + change_D for x_D, change_D in zip(x_ND, sublayer(x_ND), strict=True)]
            return [self.normalise(f"{name}.norm", sum_D) for sum_D in sums]
        changes = sublayer([self.normalise(f"{name}.norm", x_D) for x_D in x_ND])
        return [x_D + change_D for x_D, change_D in zip(x_ND, changes, strict=True)]

    def end(self, name: str, x_ND: Rows) -> Rows:
        """What is never normalised after a sublayer is at the end of the stack."""
        return x_ND if self.config.norm == "post" else [self.normalise(name, x_D) for x_D in x_ND]

    def normalise(self, name: str, x_D: Vector) -> Vector:
        """Layer normalisation (Ba et al. 2016, section 3), with PyTorch's 1e-5 against a variance of 0."""
        deviation = math.sqrt(x_D.var() + 1e-5)
        return self.weights[f"{name}.weight"] * (x_D - x_D.mean()) / deviation + self.weights[f"{name}.bias"]


@pytest.mark.parametrize("past", ["self-attention", "ssru"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_layers_follow_the_equations_of_the_transformer(
    norm: Literal["pre", "post"], past: Literal["self-attention", "ssru"]
) -> None:
    config = TransformerConfig(
        width=12, heads=3, feed_forward=10, encoder_layers=2, decoder_layers=2, norm=norm, past=past
    )
    model = model_of(config)
    assert isinstance(model, Transformer)
    equations = Equations(weights_of(model), config)
    assert_follows(model, lambda *pair: equations.follow(*pair))

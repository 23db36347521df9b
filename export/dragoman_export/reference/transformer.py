"""The Transformer (Vaswani et al. 2017) in NumPy, also with SSRU (Kim et al. 2019) in its decoder.

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions so far, N = U + 1, H heads,
A width of a head, D = H · A, X sentences or rows.
"""

from collections.abc import Callable
from math import erf

import numpy as np

from dragoman_export.reference.imported import Activation, Name, TransformerArchitecture
from dragoman_export.reference.model import (
    Array,
    Arrays,
    Ids,
    Reference,
    masked_softmax,
    sigmoid,
    source_mask,
)

_erf = np.vectorize(erf, otypes=[np.float64])
ACTIVATIONS: dict[Activation, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + _erf(x / np.sqrt(2))),
    "gelu-tanh": lambda x: x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu-sigmoid": lambda x: x * sigmoid(1.702 * x),
    "swish": lambda x: x * sigmoid(x),
}


class TransformerReference(Reference):
    """A Transformer of any of the architecture's variants."""

    architecture: TransformerArchitecture

    def encode(self, source_ST: Ids, source_length_S: Ids) -> tuple[Arrays, Arrays]:
        a, sentences = self.architecture, len(source_ST)
        mask_ST = source_mask(source_ST, source_length_S)
        x_STD = self._embed(Name.SOURCE, source_ST, Name.POSITIONS, np.arange(source_ST.shape[1]))
        for number in range(a.encoder_layers):
            layer = f"encoder_layers.{number}"

            def attend(x_STD: Array, name: str = f"{layer}.attention") -> Array:
                query, keys, values = self._heads(self.linear(x_STD, f"{name}.input"), 3)
                context, _ = self._attend(query, keys, values, mask_ST[:, None, None])
                return self.linear(context, f"{name}.output")

            x_STD = self._residual(x_STD, f"{layer}.attention_residual", attend)
            x_STD = self._feed_forward(x_STD, layer)
        x_STD = self._last_norm(x_STD, "encoder_norm")
        memory: Arrays = {"mask": mask_ST}
        state: Arrays = {"age": np.zeros(sentences, np.int64)}
        for number in range(a.decoder_layers):
            projected = self.linear(x_STD, f"decoder_layers.{number}.cross_attention.memory")
            memory[f"keys{number}"], memory[f"values{number}"] = self._heads(projected, 2)
            if a.past == "ssru":
                state[f"cell{number}"] = np.zeros((sentences, a.width))
            else:
                for name in ("keys", "values"):
                    state[f"{name}{number}"] = np.zeros((sentences, a.heads, 0, a.width // a.heads))
        return memory, state

    def step(self, token_SK: Ids, memory: Arrays, state: Arrays) -> tuple[Array, Array, Arrays]:
        a, shape, age_R = self.architecture, token_SK.shape, state["age"]
        new: Arrays = {"age": age_R + 1}
        x_SKD = self._embed(Name.TARGET, token_SK, Name.TARGET_POSITIONS, age_R.reshape(shape))
        attentions: list[Array] = []
        for number in range(a.decoder_layers):
            layer = f"decoder_layers.{number}"

            def recall(x_SKD: Array, number: int = number, layer: str = layer) -> Array:
                rows_R1D = x_SKD.reshape(-1, 1, a.width)
                if a.past == "ssru":
                    both = self.linear(rows_R1D[:, 0], f"{layer}.ssru.input")
                    gate_RD, added_RD = np.split(both, 2, axis=-1)
                    forget_RD = sigmoid(gate_RD)
                    cell_RD = forget_RD * state[f"cell{number}"] + (1 - forget_RD) * added_RD
                    new[f"cell{number}"] = cell_RD
                    return np.maximum(cell_RD, 0).reshape(x_SKD.shape)
                query, *added = self._heads(self.linear(rows_R1D, f"{layer}.self_attention.input"), 3)
                for name, value in zip(("keys", "values"), added, strict=True):
                    new[f"{name}{number}"] = np.concatenate([state[f"{name}{number}"], value], axis=2)
                keys, values = new[f"keys{number}"], new[f"values{number}"]
                past = keys.shape[2] - 1
                mask_RN = np.arange(past + 1) >= past - age_R[:, None]
                context, _ = self._attend(query, keys, values, mask_RN[:, None, None])
                return self.linear(context, f"{layer}.self_attention.output").reshape(x_SKD.shape)

            def look(x_SKD: Array, number: int = number, layer: str = layer) -> Array:
                (query,) = self._heads(self.linear(x_SKD, f"{layer}.cross_attention.query"), 1)
                context, weights_SHKT = self._attend(
                    query, memory[f"keys{number}"], memory[f"values{number}"], memory["mask"][:, None, None]
                )
                attentions.append(weights_SHKT)
                return self.linear(context, f"{layer}.cross_attention.output")

            x_SKD = self._residual(x_SKD, f"{layer}.self_residual", recall)
            x_SKD = self._residual(x_SKD, f"{layer}.cross_residual", look)
            x_SKD = self._feed_forward(x_SKD, layer)
        logits_SKV = self.logits(self._last_norm(x_SKD, "decoder_norm"))
        head = a.alignment_head
        attention = attentions[-1].mean(axis=1) if head is None else attentions[head.layer][:, head.head]
        return logits_SKV.reshape(-1, self.vocabulary_size), attention, new

    def _embed(self, embedding: str, token: Ids, positions: str, position: Ids) -> Array:
        table_LD = self.weights[positions]
        vectors: Array = table_LD[np.minimum(position, len(table_LD) - 1)]
        return self.weights[embedding][token].astype(np.float64) * self.architecture.embedding_scale + vectors

    def _residual(self, x: Array, name: str, sublayer: Callable[[Array], Array]) -> Array:
        """The sublayer's change added to its input; normalised before it, or the sum."""
        if self.architecture.norm == "pre":
            return x + sublayer(self.norm(x, f"{name}.norm"))
        return self.norm(x + sublayer(x), f"{name}.norm")

    def _feed_forward(self, x: Array, layer: str) -> Array:
        def change(x: Array) -> Array:
            hidden = ACTIVATIONS[self.architecture.activation](self.linear(x, f"{layer}.feed_forward.expand"))
            return self.linear(hidden, f"{layer}.feed_forward.contract")

        return self._residual(x, f"{layer}.feed_forward_residual", change)

    def _last_norm(self, x: Array, name: str) -> Array:
        return self.norm(x, name) if f"{name}.weight" in self.weights else x

    def _heads(self, projected_XND: Array, parts: int) -> list[Array]:
        """[X, N, parts · D] -> [X, H, N, A], as many as there are parts."""
        heads = self.architecture.heads
        split = np.split(projected_XND, parts, axis=-1)
        return [part.reshape(*part.shape[:2], heads, -1).swapaxes(1, 2) for part in split]

    def _attend(self, query: Array, keys: Array, values: Array, mask: Array) -> tuple[Array, Array]:
        """Scaled dot products of all heads (section 3.2.1): context [X, Q, D], weights [X, H, Q, N]."""
        scores = query @ keys.swapaxes(2, 3) / np.sqrt(query.shape[-1])
        weights = masked_softmax(scores, mask)
        context = (weights @ values).swapaxes(1, 2)
        return context.reshape(*context.shape[:2], -1), weights

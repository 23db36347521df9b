"""Marian's recurrent encoder-decoder with attention in NumPy (Sennrich et al. 2017; Marian's `s2s`).

Cells are GRUs (Cho et al. 2014) with the reset gate after the product, gates ordered r z n, normalised by
layer where the weights hold norms. In the decoder's first layer attention (Bahdanau et al. 2015) stands
between the first cell and the second: the conditional GRU.

Shapes: S sentences, K beam, R = S·K rows, T source positions, E embedding width, H units, M = 2 · H or H.
"""

import numpy as np

from dragoman_export.reference.imported import Name, S2SArchitecture
from dragoman_export.reference.model import (
    Array,
    Arrays,
    Ids,
    Reference,
    masked_softmax,
    sigmoid,
    source_mask,
)


class S2SReference(Reference):
    """An `s2s` of any of the architecture's depths."""

    architecture: S2SArchitecture

    def encode(self, source_ST: Ids, source_length_S: Ids) -> tuple[Arrays, Arrays]:
        a, mask_ST = self.architecture, source_mask(source_ST, source_length_S)
        embedded_STE = self.weights[Name.SOURCE][source_ST].astype(np.float64)
        stacks = []
        for way in ("forward", "backward"):
            x_STD = embedded_STE
            for number in range(a.encoder_layers if a.both_ways else 1):
                x_STD = self._read(x_STD, mask_ST, f"encoder_{way}.{number}", number)
            stacks.append(x_STD)
        x_STD = np.concatenate(stacks, axis=-1)
        for number in range(0 if a.both_ways else a.encoder_layers - 1):
            # Marian gives these no mask; what they read behind a sentence reaches nothing of it.
            x_STD = self._read(x_STD, np.ones_like(mask_ST), f"encoder_upper.{number}", number)
        mean_SM = (x_STD * mask_ST[:, :, None]).sum(axis=1) / mask_ST.sum(axis=1, keepdims=True)
        start_SH = np.tanh(self._dense(mean_SM, "bridge"))
        keys = self._product(x_STD, "attention.keys")
        memory = {"mask": mask_ST, "values": x_STD, "keys": keys + self.weights["attention.keys.bias"]}
        return memory, {f"hidden{number}": start_SH for number in range(a.decoder_layers)}

    def step(self, token_SK: Ids, memory: Arrays, state: Arrays) -> tuple[Array, Array, Arrays]:
        a, shape = self.architecture, token_SK.shape
        embedded_RE = self.weights[Name.TARGET][token_SK.reshape(-1)].astype(np.float64)
        hidden_RH = self._cell(embedded_RE, state["hidden0"], "decoder.0.0")
        context_RM, attention_SKT = self._attend(hidden_RH, memory, shape)
        for cell in range(1, a.base_cells):
            hidden_RH = self._cell(context_RM if cell == 1 else None, hidden_RH, f"decoder.0.{cell}")
        new: Arrays = {"hidden0": hidden_RH}
        x_RH = hidden_RH
        for number in range(1, a.decoder_layers):
            hidden_RH = state[f"hidden{number}"]
            for cell in range(a.high_cells):
                hidden_RH = self._cell(x_RH if cell == 0 else None, hidden_RH, f"decoder.{number}.{cell}")
            new[f"hidden{number}"] = hidden_RH
            x_RH = hidden_RH + x_RH if a.skip else hidden_RH
        readout_RE = np.tanh(
            self._dense(embedded_RE, "readout.token")
            + self._dense(x_RH, "readout.hidden")
            + self._dense(context_RM, "readout.context")
        )
        return self.logits(readout_RE), attention_SKT, new

    def _read(self, x_STD: Array, mask_ST: Array, name: str, number: int) -> Array:
        """A layer of the encoder over all positions, each sentence from its own end where it is backward."""
        a = self.architecture
        hidden_SH = np.zeros((len(x_STD), a.units))
        outputs_STH = np.zeros((*x_STD.shape[:2], a.units))
        order = range(x_STD.shape[1])
        for place in reversed(order) if "backward" in name else order:
            new_SH = hidden_SH
            for cell in range(a.encoder_cells):
                new_SH = self._cell(x_STD[:, place] if cell == 0 else None, new_SH, f"{name}.{cell}")
            hidden_SH = np.where(mask_ST[:, place, None] > 0, new_SH, hidden_SH)
            outputs_STH[:, place] = hidden_SH
        return outputs_STH + x_STD if a.skip and number > 0 else outputs_STH

    def _cell(self, inputs_RD: Array | None, hidden_RH: Array, name: str) -> Array:
        """A GRU's new state; a cell without inputs is a transition."""
        recurrent = self._product(hidden_RH, f"{name}.recurrent")
        given = np.zeros_like(recurrent)
        if inputs_RD is not None:
            given = self._product(inputs_RD, f"{name}.input")
        r, z, n = np.split(given, 3, axis=-1)
        r_h, z_h, n_h = np.split(recurrent, 3, axis=-1)
        r_b, z_b, n_b = np.split(self.weights[f"{name}.bias"], 3)
        reset, update = sigmoid(r + r_h + r_b), sigmoid(z + z_h + z_b)
        # The decoder's cells behind the first have the bias within the product of the reset gate.
        is_final = name.startswith("decoder.0.") and not name.endswith(".0")
        candidate = np.tanh(n + reset * (n_h + n_b) if is_final else n + reset * n_h + n_b)
        return (1 - update) * candidate + update * hidden_RH

    def _attend(self, hidden_RH: Array, memory: Arrays, shape: tuple[int, ...]) -> tuple[Array, Array]:
        query_SK1M = self._product(hidden_RH, "attention.query").reshape(*shape, 1, -1)
        scores_SKT = np.tanh(query_SK1M + memory["keys"][:, None]) @ self.weights["attention.direction"]
        attention_SKT = masked_softmax(scores_SKT, memory["mask"][:, None])
        return (attention_SKT @ memory["values"]).reshape(len(hidden_RH), -1), attention_SKT

    def _dense(self, rows: Array, name: str) -> Array:
        return self._product(rows, name) + self.weights[f"{name}.bias"]

    def _product(self, rows: Array, name: str) -> Array:
        """Rows times a matrix, normalised by layer where there are weights for it."""
        x = self.product(rows, f"{name}.weight")
        return self.norm(x, f"{name}.norm") if f"{name}.norm.weight" in self.weights else x

"""Marian's models as ours: parameters by our names and in our shapes, whether a file has floats or 8 bits.

Owns what stands where on both sides. Shapes: N outputs, K inputs of a matrix.
"""

from collections.abc import Sequence

import numpy as np

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.marian_items import NOT_TRANSPOSED, Items
from dragoman_export.importers.marian_settings import Settings
from dragoman_export.importers.subjects import MAX_TOKENS, even_sinusoids, spelled
from dragoman_export.reference.imported import (
    Floats,
    Imported,
    Name,
    S2SArchitecture,
    StoredWeight,
    TransformerArchitecture,
    layer_parts,
)

OUTPUT_ALPHA = "none"
"""What an alpha calls the output layer's matrix where that is an embedding."""


class Parameters:
    """Puts what a file holds among the weights of an import, and knows what nobody has read."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._unread = {*items.floats, *items.stored}
        self.weights: dict[str, Floats] = {}
        self.stored: dict[str, StoredWeight] = {}
        self.steps: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._items.floats or name in self._items.stored

    def matrix(self, ours: str, names: Sequence[str], *, outputs: int, inputs: int) -> None:
        """Matrices that read the same rows, one below the other; `outputs` is the number of all."""
        items = self._items
        is_stored = [name in items.stored for name in names]
        if all(is_stored):
            parts = [items.stored[name] for name in names]
            self.stored[ours] = StoredWeight(
                np.concatenate([part.codes_NK for part in parts]),
                np.concatenate([part.scale_N for part in parts]),
            )
            self.weights[ours] = self.stored[ours].floats()
            self._unread -= set(names)
        elif any(is_stored):
            raise FormatError(f"{items.path}: of {', '.join(names)} some are in 8 bits and some are not")
        else:
            arrays = {name: self._floats(name) for name in names}
            rows = [array if NOT_TRANSPOSED in name else array.T for name, array in arrays.items()]
            self.weights[ours] = np.concatenate(rows) if len(rows) > 1 else np.ascontiguousarray(rows[0])
        self._check(ours, names, (outputs, inputs))
        self._step(ours, names)

    def vector(self, ours: str, names: Sequence[str], size: int) -> None:
        """Vectors one behind the other; a name of "" stands for zeros of as many as another has."""
        arrays = {name: self._floats(name).reshape(-1) for name in names if name}
        zeros = np.zeros(size // len(names), np.float32)
        self.weights[ours] = np.concatenate([arrays.get(name, zeros) for name in names])
        self._check(ours, names, (size,))

    def dense(
        self, ours: str, weights: Sequence[str], biases: Sequence[str], outputs: int, inputs: int
    ) -> None:
        """A linear layer, of matrices and vectors one below the other."""
        self.matrix(f"{ours}.weight", weights, outputs=outputs, inputs=inputs)
        self.vector(f"{ours}.bias", biases, outputs)

    def tables(self, settings: Settings, width: int, output: str) -> None:
        """The embeddings of both sides, and the output layer, of which `output` begins the names.

        One of them may stand for others.
        """
        source = "Wemb" if settings.tied_source else "encoder_Wemb"
        target = "Wemb" if settings.tied_source else "decoder_Wemb"
        for ours, name in ((Name.SOURCE, source), (Name.TARGET, target)):
            stored = self._items.stored.get(name)
            table = self._items.floats.get(name, ()) if stored is None else stored.codes_NK
            self.matrix(ours, [name], outputs=len(table), inputs=width)
        if settings.tied_source:
            self._same(Name.TARGET, Name.SOURCE)
        pieces = len(self.weights[Name.TARGET])
        if settings.tied_output:
            self._same(Name.OUTPUT, Name.TARGET)
            # Whatever name a graph has for what is tied.
            for ours in (Name.SOURCE, Name.TARGET, Name.OUTPUT):
                if self.weights[ours] is self.weights[Name.OUTPUT]:
                    self._step(ours, [OUTPUT_ALPHA])
        elif f"{output}_Wt" in self:
            # This one alone is [outputs, inputs] in Marian, too.
            self.weights[Name.OUTPUT] = np.ascontiguousarray(self._floats(f"{output}_Wt"))
            self._check(Name.OUTPUT, [f"{output}_Wt"], (pieces, width))
        else:
            self.matrix(Name.OUTPUT, [f"{output}_W"], outputs=pieces, inputs=width)
        self.vector(Name.BIAS, [f"{output}_b" if settings.has_output_bias else ""], pieces)

    def check_all_read(self) -> None:
        """Raises FormatError for what nobody has read."""
        unread = sorted(name for name in self._unread if not name.startswith("special:"))
        if unread:
            raise FormatError(
                f"{self._items.path} has {unread[0]}, which its configuration says nothing of; such a model "
                "can't be imported"
            )

    def _same(self, ours: str, other: str) -> None:
        self.weights[ours] = self.weights[other]
        if other in self.stored:
            self.stored[ours] = self.stored[other]

    def _step(self, ours: str, names: Sequence[str]) -> None:
        alphas = [self._items.alphas[name] for name in names if name in self._items.alphas]
        if alphas:
            # They read the same rows, of which none is to be cut off.
            self.steps[ours] = 1 / min(alphas)

    def _floats(self, name: str) -> Floats:
        if name in self._items.stored:
            self._unread.discard(name)
            return self._items.stored[name].floats()
        if name not in self._items.floats:
            raise FormatError(f"{self._items.path} has no {name}, which its configuration asks for")
        self._unread.discard(name)
        return self._items.floats[name]

    def _check(self, ours: str, names: Sequence[str], shape: tuple[int, ...]) -> None:
        found = self.weights[ours].shape
        if found != shape:
            raise FormatError(
                f"{self._items.path}: {', '.join(filter(None, names))} come to {list(found)} (outputs "
                f"first), and its configuration asks for {list(shape)}"
            )
        if not np.isfinite(self.weights[ours]).all():
            raise FormatError(f"{self._items.path}: {', '.join(names)} hold what is no number")


def read_model(items: Items, settings: Settings) -> Imported:
    """The model in a file, as if its translations began with any token. Raises FormatError."""
    parameters, architecture = Parameters(items), settings.architecture
    if isinstance(architecture, TransformerArchitecture):
        _read_transformer(parameters, architecture, settings)
    else:
        _read_s2s(parameters, architecture, settings)
    parameters.check_all_read()
    p = parameters
    return Imported(architecture=architecture, weights=p.weights, stored=p.stored, steps=p.steps)


PARTS = {
    "self_attention.input": "self_W{q,k,v}",
    "self_attention.output": "self_Wo",
    "self_residual.norm": "self_Wo_ln",
    "ssru.input": "rnn_W{f,}",
    "cross_attention.query": "context_Wq",
    "cross_attention.memory": "context_W{k,v}",
    "cross_attention.output": "context_Wo",
    "cross_residual.norm": "context_Wo_ln",
    "feed_forward.expand": "ffn_W1",
    "feed_forward.contract": "ffn_W2",
    "feed_forward_residual.norm": "ffn_ffn_ln",
}
"""Our parts of a Transformer's layer and theirs, whose biases have a b for the W."""
SSRU_NORMS = {"pre": "rnn_ln", "post": "rnn_ffn_ln"}
"""The norm around an SSRU."""


def _read_transformer(parameters: Parameters, a: TransformerArchitecture, settings: Settings) -> None:
    parameters.tables(settings, a.width, "decoder_ff_logit_out")
    suffix = "_pre" if a.norm == "pre" else ""
    for part in layer_parts(a):
        is_ssru_norm = (part.side, a.past, part.name) == ("decoder", "ssru", "self_residual.norm")
        their = SSRU_NORMS[a.norm] if is_ssru_norm else PARTS[part.name]
        names = spelled(f"{part.side}_l{part.layer + 1}_{their}")
        if part.inputs:
            # An SSRU's candidate alone has no bias.
            biases = ["" if name.endswith("_rnn_W") else name.replace("_W", "_b") for name in names]
            parameters.dense(part.own_name, names, biases, part.outputs, part.inputs)
        else:
            _read_norm(parameters, part.own_name, names[0], suffix, a.width)
    for side in ("encoder", "decoder") if settings.has_norms else ():
        _read_norm(parameters, f"{side}_norm", f"{side}_top_ln", "", a.width)
    table_LD = even_sinusoids(MAX_TOKENS, a.width, first=0)
    parameters.weights |= {Name.POSITIONS: table_LD, Name.TARGET_POSITIONS: table_LD}


def _read_norm(parameters: Parameters, ours: str, theirs: str, suffix: str, width: int) -> None:
    for name, part in (("weight", "scale"), ("bias", "bias")):
        parameters.vector(f"{ours}.{name}", [f"{theirs}_{part}{suffix}"], width)


def _read_s2s(parameters: Parameters, a: S2SArchitecture, settings: Settings) -> None:
    width, units, memory = a.embedding_size, a.units, 2 * a.units

    def norm(ours: str, theirs: str, size: int) -> None:
        if settings.has_norms:
            parameters.vector(f"{ours}.norm.weight", [theirs], size)

    def cell(ours: str, theirs: str, inputs: int) -> None:
        """A GRU of so many inputs, or with none a transition."""
        for letter, name, size, number in (("W", "input", inputs, 1), ("U", "recurrent", units, 2)):
            if size:
                both = [f"{theirs}_{letter}", f"{theirs}_{letter}x"]
                parameters.matrix(f"{ours}.{name}.weight", both, outputs=3 * units, inputs=size)
                norm(f"{ours}.{name}", f"{theirs}_gamma{number}", 3 * units)
        parameters.vector(f"{ours}.bias", [f"{theirs}_b", f"{theirs}_bx"], 3 * units)

    def cells(ours: str, theirs: str, inputs: int, num_cells: int) -> None:
        """Cells of a layer one after the other, of which the first alone has inputs."""
        for number in range(num_cells):
            cell(f"{ours}.{number}", f"{theirs}_cell{number + 1}", 0 if number else inputs)

    parameters.tables(settings, width, "decoder_ff_logit_l2")
    for way, theirs in (("forward", "encoder_bi"), ("backward", "encoder_bi_r")):
        cell(f"encoder_{way}.0.0", theirs, width)
        for number in range(1, a.encoder_cells):
            cell(f"encoder_{way}.0.{number}", f"{theirs}_cell{number + 1}", 0)
        for layer in range(1, a.encoder_layers if a.both_ways else 1):
            cells(f"encoder_{way}.{layer}", f"{theirs}_l{layer + 1}", units, a.encoder_cells)
    for layer in range(0 if a.both_ways else a.encoder_layers - 1):
        cells(f"encoder_upper.{layer}", f"encoder_l{layer + 2}", memory, a.encoder_cells)
        memory = units
    for number in range(a.base_cells):
        # The second is given what is looked at.
        cell(f"decoder.0.{number}", f"decoder_cell{number + 1}", (width, memory)[number] if number < 2 else 0)
    for layer in range(1, a.decoder_layers):
        cells(f"decoder.{layer}", f"decoder_l{layer + 1}", units, a.high_cells)
    for ours, theirs, inputs, number in (("keys", "Wc", memory, 1), ("query", "W_comb", units, 2)):
        name = f"attention.{ours}"
        parameters.matrix(f"{name}.weight", [f"decoder_{theirs}_att"], outputs=memory, inputs=inputs)
        norm(name, f"decoder_att_gamma{number}", memory)
    parameters.vector("attention.keys.bias", ["decoder_b_att"], memory)
    parameters.vector("attention.direction", ["decoder_U_att"], memory)
    for ours, theirs, place, inputs, outputs in (
        ("bridge", "decoder_ff_state", "", memory, units),
        ("readout.token", "decoder_ff_logit_l1", "0", width, width),
        ("readout.hidden", "decoder_ff_logit_l1", "1", units, width),
        ("readout.context", "decoder_ff_logit_l1", "2", memory, width),
    ):
        parameters.dense(ours, [f"{theirs}_W{place}"], [f"{theirs}_b{place}"], outputs, inputs)
        norm(ours, f"{theirs}_gamma{place}", outputs)

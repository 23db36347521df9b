"""Marian's recurrent encoder-decoders, `s2s`, as ours."""

from typing import TypeVar

from dragoman_export.importers.marian_items import Items
from dragoman_export.importers.marian_parameters import Parameters
from dragoman_export.importers.marian_settings import RecurrentSettings
from dragoman_export.reference.imported import BIAS, Imported, S2SArchitecture

Value = TypeVar("Value")


def read_s2s(items: Items, settings: RecurrentSettings) -> Imported:
    """The model in a file, whose `bos` is one token beyond those it has. Raises FormatError."""
    parameters = Parameters(items)
    width, units = settings.embedding_size, settings.units
    parameters.tables(
        tied_source=settings.tied_source,
        tied_output=settings.tied_output,
        width=width,
        output="decoder_ff_logit_l2",
        bias="decoder_ff_logit_l2_b" if settings.has_output_bias else "",
    )
    reader = _Reader(parameters, settings)
    for ours, theirs in (("forward", "encoder_bi"), ("backward", "encoder_bi_r")):
        for layer in range(settings.encoder_layers if settings.both_ways else 1):
            for cell in range(settings.encoder_cells):
                name = theirs if layer == 0 else f"{theirs}_l{layer + 1}"
                name += "" if layer == cell == 0 else f"_cell{cell + 1}"
                inputs = 0 if cell else width if layer == 0 else units
                reader.cell(f"encoder_{ours}.{layer}.{cell}", name, inputs)
    memory = 2 * units
    for layer in range(0 if settings.both_ways else settings.encoder_layers - 1):
        for cell in range(settings.encoder_cells):
            inputs = 0 if cell else memory
            reader.cell(f"encoder_upper.{layer}.{cell}", f"encoder_l{layer + 2}_cell{cell + 1}", inputs)
        memory = units
    for cell in range(settings.base_cells):
        inputs = (width, memory)[cell] if cell < 2 else 0
        reader.cell(f"decoder.0.{cell}", f"decoder_cell{cell + 1}", inputs)
    for layer in range(1, settings.decoder_layers):
        for cell in range(settings.high_cells):
            reader.cell(
                f"decoder.{layer}.{cell}", f"decoder_l{layer + 1}_cell{cell + 1}", 0 if cell else units
            )
    reader.attention(memory)
    reader.dense("bridge", "decoder_ff_state", "", inputs=memory, outputs=units)
    for place, (name, inputs) in enumerate((("token", width), ("hidden", units), ("context", memory))):
        reader.dense(f"readout.{name}", "decoder_ff_logit_l1", str(place), inputs=inputs, outputs=width)
    parameters.check_all_read()
    pieces = len(parameters.weights[BIAS])
    return Imported(
        architecture=S2SArchitecture(
            embedding_size=width,
            units=units,
            encoder_layers=settings.encoder_layers,
            both_ways=settings.both_ways,
            encoder_cells=settings.encoder_cells,
            decoder_layers=settings.decoder_layers,
            base_cells=settings.base_cells,
            high_cells=settings.high_cells,
            skip=settings.skip,
            bos=pieces,
            never_produced=(pieces,),
        ),
        weights=parameters.weights,
        stored=parameters.stored,
        steps=parameters.steps,
    )


class _Reader:
    """Reads cells and layers."""

    def __init__(self, parameters: Parameters, settings: RecurrentSettings) -> None:
        self._parameters = parameters
        self._units = settings.units
        self._is_normed = settings.layer_normalization

    def cell(self, ours: str, theirs: str, inputs: int) -> None:
        """A GRU of so many inputs, or with none a transition."""
        parameters, units = self._parameters, self._units
        for letter, name, size, number in (("W", "input", inputs, 1), ("U", "recurrent", units, 2)):
            if size:
                both = [f"{theirs}_{letter}", f"{theirs}_{letter}x"]
                parameters.matrix(f"{ours}.{name}.weight", both, outputs=3 * units, inputs=size)
                self._norm(f"{ours}.{name}", f"{theirs}_gamma{number}", 3 * units)
        parameters.vector(f"{ours}.bias", [f"{theirs}_b", f"{theirs}_bx"], 3 * units)

    def attention(self, memory: int) -> None:
        """What is looked at: keys of `memory` width, queries, and the direction of their sum."""
        parameters = self._parameters
        for ours, theirs, inputs, number in (
            ("keys", "Wc_att", memory, 1),
            ("query", "W_comb_att", self._units, 2),
        ):
            name = f"attention.{ours}"
            parameters.matrix(f"{name}.weight", [f"decoder_{theirs}"], outputs=memory, inputs=inputs)
            self._norm(name, f"decoder_att_gamma{number}", memory)
        parameters.vector("attention.keys.bias", ["decoder_b_att"], memory)
        parameters.vector("attention.direction", ["decoder_U_att"], memory)

    def dense(self, ours: str, theirs: str, place: str, *, inputs: int, outputs: int) -> None:
        """A linear layer; `place` counts those whose results are added."""
        self._parameters.matrix(f"{ours}.weight", [f"{theirs}_W{place}"], outputs=outputs, inputs=inputs)
        self._parameters.vector(f"{ours}.bias", [f"{theirs}_b{place}"], outputs)
        self._norm(ours, f"{theirs}_gamma{place}", outputs)

    def _norm(self, ours: str, theirs: str, size: int) -> None:
        if self._is_normed:
            self._parameters.vector(f"{ours}.norm.weight", [theirs], size)

"""How large activations are, found once on samples: steps of int8 that all rows share.

A step of each row's own takes seven passes over the row before a product and two behind it; one that is known
takes one. Neither depends on what shares a batch. The samples are translated by a Transformer's graphs, and
what goes into their products is watched.

Shapes: S sentences, T source positions, N rows, K inputs of a product.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Graphs, constant_array
from dragoman_export.int8.graph import LARGEST, SMALLEST_MAXIMUM
from dragoman_export.int8.linear import matrix_product
from dragoman_export.parity.loss import OwnWords, steps_of_graphs
from dragoman_export.parity.onnx_stepper import OnnxStepper

MAX_NOISE = 4.0
"""How many times the noise power of steps of rows' own a shared step may have.

Weights are rounded to half as many codes as activations, so that their noise has four times the power: the
sum of both is at most eight fifths of what it was.
"""
MARGIN = 1.1
"""How far beyond the largest that was seen the codes reach."""


def shared_step(rows_NK: NDArray[np.float32]) -> float | None:
    """The step in which all of these rows may count; None where some are too small beside others for that."""
    largest_N = np.abs(rows_NK).max(axis=1)
    step = MARGIN * float(largest_N.max()) / LARGEST
    if step <= SMALLEST_MAXIMUM:
        return None
    own_N = np.maximum(largest_N, SMALLEST_MAXIMUM) / LARGEST
    # Each row counts alike, however large it is: a layer's norm makes all of one size, or will.
    power_N = np.maximum(np.square(rows_NK).mean(axis=1), SMALLEST_MAXIMUM)
    both = (np.full_like(own_N, step), own_N)
    noise, own_noise = (float((_noise(rows_NK, steps) / power_N).mean()) for steps in both)
    return step if noise <= MAX_NOISE * own_noise else None


def _noise(rows_NK: NDArray[np.float32], step_N: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean square of what rounding to these steps changes in each row."""
    steps_N1 = step_N[:, None]
    rounded_NK = np.rint(rows_NK / steps_N1) * steps_N1
    return np.square(rounded_NK - rows_NK).mean(axis=1)


MAX_ROWS = 64
"""Most rows of an activation that are kept of one run of a graph."""


@dataclass(frozen=True)
class Steps:
    """What activations count in, by their names in either graph."""

    encoder: Mapping[str, float]
    decoder_step: Mapping[str, float]


def find_steps(graphs: Graphs, words: OwnWords, open_stepper: Callable[[Path], OnnxStepper]) -> Steps:
    """Steps for the activations of fp32 graphs whose rows may share one, found along a model's own words.

    Of every other sentence alone: the gate looks at all, and so at as many that nothing was fitted to.
    """
    shown = Graphs(_showing(graphs.encoder), _showing(graphs.decoder_step))
    with TemporaryDirectory() as folder:
        write_graphs(shown, Path(folder) / "shown")
        rows = [_Rows(_inputs_of_products(model)) for model in (graphs.encoder, graphs.decoder_step)]
        _observe(open_stepper(Path(folder) / "shown"), words, *rows)
    return Steps(*(each.steps() for each in rows))


def with_known_steps(graphs: Graphs, steps: Steps, known: Mapping[str, float]) -> Steps:
    """The steps, but where those of rows are known by the name of the weight that they are multiplied by."""
    encoder, decoder_step = (_known_steps(each, known) for each in (graphs.encoder, graphs.decoder_step))
    return Steps({**steps.encoder, **encoder}, {**steps.decoder_step, **decoder_step})


def _known_steps(model: ir.Model, known: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for product in filter(None, map(matrix_product, model.graph)):
        if product.matrix.name in known:
            name = str(product.rows.name)
            # Of several the largest, which cuts nothing off.
            found[name] = max(found.get(name, 0.0), known[str(product.matrix.name)])
    return found


def _observe(stepper: OnnxStepper, words: OwnWords, encoder_rows: "_Rows", step_rows: "_Rows") -> None:
    length_S = np.array([len(source) for source in words.sources])
    is_inside_ST = np.arange(length_S.max()) < length_S[:, None]
    counts_S = np.arange(len(words.sources)) % 2 == 0
    shown, context = stepper.run_encoder(words.sources)
    encoder_rows.add(shown, is_inside_ST & counts_S[:, None])
    steps = steps_of_graphs(stepper, context, words.read_US, words.read_US)
    for (shown, _), runs_S in zip(steps, words.runs_US, strict=True):
        step_rows.add(shown, runs_S & counts_S)


class _Rows:
    """What was seen of activations, evenly spread, and of each the row with the largest value."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._seen: dict[str, list[NDArray[np.float32]]] = defaultdict(list)

    def add(self, shown: Mapping[str, NDArray[Any]], counts: NDArray[np.bool_]) -> None:
        """Takes what a graph has shown; `counts` says which rows, in their order, are looked at."""
        if not counts.any():
            return
        for name in self._names:
            rows_NK = shown[name].reshape(counts.size, -1)[counts.ravel()]
            spread = np.linspace(0, len(rows_NK) - 1, min(MAX_ROWS, len(rows_NK))).round().astype(np.int64)
            largest = np.abs(rows_NK).max(axis=1).argmax()
            self._seen[name].append(rows_NK[np.union1d(spread, [largest])])

    def steps(self) -> dict[str, float]:
        """The steps of those whose rows may share one, by name."""
        steps = {name: shared_step(np.concatenate(parts)) for name, parts in self._seen.items()}
        return {name: step for name, step in steps.items() if step is not None}


def _showing(model: ir.Model) -> ir.Model:
    """A copy that returns what goes into its products, too."""
    model = model.clone()
    returned = {value.name for value in model.graph.outputs}
    values = {value.name: value for node in model.graph for value in node.outputs}
    model.graph.outputs.extend(values[name] for name in _inputs_of_products(model) if name not in returned)
    return model


def _inputs_of_products(model: ir.Model) -> list[str]:
    """Names of what is multiplied by constant matrices."""
    products = filter(None, map(matrix_product, model.graph))
    return sorted({str(product.rows.name) for product in products if constant_array(product.rows) is None})

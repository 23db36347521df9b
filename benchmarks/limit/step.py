"""One decoder step of a bundle at one batch size, to be run again and again."""

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import onnx
import onnxruntime

from benchmarks.limit.inputs import Array, make_inputs
from benchmarks.limit.products import Product, find_products, load_folded, shapes_of
from dragoman_server.engine.onnx.options import DecoderOptions
from dragoman_server.engine.onnx.session import open_session


class StepGraph:
    """A step graph, opened as the engine opens it."""

    def __init__(self, path: Path, *, vocabulary: int, threads: int) -> None:
        self.path = path
        self._vocabulary = vocabulary
        self._session = open_session(path, DecoderOptions(device="cpu", num_threads=threads))

    def at(self, sizes: Mapping[str, int]) -> "Step":
        """The step at these sizes, as `inputs.step_sizes` names them."""
        inputs = make_inputs(self._session.get_inputs(), sizes, self._vocabulary)
        return Step(self._session, inputs, find_products(self.path, inputs), weight_bytes(self.path, inputs))


class Step:
    """A step whose inputs are where onnxruntime wants them, and whose outputs stay there."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        inputs: Mapping[str, Array],
        products: list[Product],
        weight_bytes: int,
    ) -> None:
        self.products = products
        """Its matrix products."""
        self._session = session
        self._binding = session.io_binding()
        for name, array in inputs.items():
            self._binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for output in session.get_outputs():
            self._binding.bind_output(output.name)
        self.run()
        results = self._binding.get_outputs()
        self.num_bytes = (
            weight_bytes
            + sum(array.nbytes for array in inputs.values())
            + sum(value.tensor_size_in_bytes() for value in results)
        )
        """Bytes that must move: every weight and input once in, every output once out; of a table of which
        rows are looked up, these."""

    def run(self) -> None:
        """Runs the step."""
        self._session.run_with_iobinding(self._binding)


def weight_bytes(path: Path, inputs: Mapping[str, Array]) -> int:
    """Bytes of a graph's weights that a step with these inputs reads."""
    model = load_folded(path)
    users: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in node.input:
            users[name].append(node)
    lookups = {
        value.name: [node.output[0] for node in users[value.name]]
        for value in model.graph.initializer
        if value.dims and users[value.name] and all(_looks_up(node, value.name) for node in users[value.name])
    }
    looked_up = {name for names in lookups.values() for name in names}
    shapes = shapes_of(model, looked_up, inputs) if looked_up else {}
    total = 0
    for value in model.graph.initializer:
        size = math.prod(value.dims)
        if names := lookups.get(value.name):
            size = min(size, sum(math.prod(shapes[name]) for name in names))
        total += size * int(onnx.helper.tensor_dtype_to_np_dtype(value.data_type).itemsize)
    return total


def _looks_up(node: onnx.NodeProto, table: str) -> bool:
    """Whether a node reads rows of a table and nothing else of it."""
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    return node.op_type == "Gather" and axis == 0 and node.input[0] == table and node.input[1] != table

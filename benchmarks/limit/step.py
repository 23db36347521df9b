"""One decoder step of a bundle at one batch size, to be run again and again."""

from collections.abc import Mapping
from pathlib import Path

import onnx
import onnxruntime

from benchmarks.limit.inputs import Array, make_inputs
from benchmarks.limit.products import Product, find_products
from dragoman_server.engine.onnx_session import open_session


class StepGraph:
    """A step graph, opened as the engine opens it."""

    def __init__(self, path: Path, *, vocabulary: int, threads: int) -> None:
        self.path = path
        self._vocabulary = vocabulary
        self._session = open_session(path, device="cpu", num_threads=threads)

    def at(self, sizes: Mapping[str, int]) -> "Step":
        """The step at these sizes, as `inputs.step_sizes` names them."""
        inputs = make_inputs(self._session.get_inputs(), sizes, self._vocabulary)
        return Step(self._session, inputs, find_products(self.path, inputs), _weight_bytes(self.path))


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
        """Bytes that must move: every weight and input once in, every output once out."""

    def run(self) -> None:
        """Runs the step."""
        self._session.run_with_iobinding(self._binding)


def _weight_bytes(path: Path) -> int:
    model = onnx.load(path, load_external_data=False)
    return sum(_tensor_bytes(value) for value in model.graph.initializer)


def _tensor_bytes(value: onnx.TensorProto) -> int:
    size = int(onnx.helper.tensor_dtype_to_np_dtype(value.data_type).itemsize)
    for length in value.dims:
        size *= length
    return size

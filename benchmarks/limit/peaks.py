"""What this machine's matrix product and memory reach, in onnxruntime and with the threads of the step."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.limit.products import Product
from dragoman_server.engine.onnx.options import DecoderOptions
from dragoman_server.engine.onnx.session import open_session

OPSET = 20
FloatArray = npt.NDArray[np.float64]
LARGE_BYTES = 256 * 1024 * 1024
"""Size of a copy that no cache holds."""
_TIMED_SECONDS = 0.1


def best_seconds(run: Callable[[], object]) -> float:
    """The fastest of as many runs as fit a tenth of a second, at least three: what is possible."""
    fastest = float("inf")
    ending = time.perf_counter() + _TIMED_SECONDS
    count = 0
    while count < 3 or time.perf_counter() < ending:
        started = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - started)
        count += 1
    return fastest


class ProductPeak:
    """Products of constant weights, of the sizes that a step's largest have."""

    def __init__(
        self, folder: Path, sizes: Iterable[tuple[int, int]], *, rows: int, is_integer: bool, threads: int
    ) -> None:
        """`sizes` are the weights' (inner, columns); `rows` how many rows each is multiplied with."""
        self._runs = []
        for inner, columns in sorted(set(sizes)):
            path = folder / f"product-{is_integer}-{inner}-{columns}.onnx"
            onnx.save(_product_model(inner, columns, is_integer), path)
            session = open_session(path, DecoderOptions(device="cpu", num_threads=threads))
            generator = np.random.default_rng(0)
            left = (
                generator.integers(0, 256, (rows, inner)).astype(np.uint8)
                if is_integer
                else generator.standard_normal((rows, inner)).astype(np.float32)
            )
            binding = session.io_binding()
            binding.bind_cpu_input("left", left)
            binding.bind_output("result")
            self._runs.append((rows * inner * columns, session, binding))

    def multiply_adds_per_second(self) -> float:
        """The fastest of the products, now."""
        return max(
            multiply_adds / best_seconds(lambda: session.run_with_iobinding(binding))  # noqa: B023
            for multiply_adds, session, binding in self._runs
        )


def weight_sizes(products: Iterable[Product]) -> list[tuple[int, int]]:
    """The (inner, columns) of the products with weights."""
    return [(product.inner, product.columns) for product in products if product.is_weight]


class CopyPeak:
    """A copy by as many threads as the step has."""

    def __init__(self, num_bytes: int, threads: int) -> None:
        """`num_bytes` are read and written in all, half and half."""
        size = max(1, num_bytes // 2 // threads // 8)
        self._pairs = [(np.ones(size), np.zeros(size)) for _ in range(threads)]
        self._num_bytes = 2 * 8 * size * threads
        self._pool = ThreadPoolExecutor(threads)
        # Copies that are too short to be worth waking a thread are repeated within it.
        self._times = max(1, 8 * 1024 * 1024 // self._num_bytes)

    def bytes_per_second(self) -> float:
        """Read and written together, now."""
        seconds = best_seconds(lambda: list(self._pool.map(self._copy, self._pairs)))
        return self._times * self._num_bytes / seconds

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()

    def _copy(self, pair: tuple[FloatArray, FloatArray]) -> None:
        source, target = pair
        for _ in range(self._times):
            np.copyto(target, source)


def _product_model(inner: int, columns: int, is_integer: bool) -> onnx.ModelProto:
    generator = np.random.default_rng(1)
    if is_integer:
        weight = generator.integers(-127, 128, (inner, columns)).astype(np.int8)
        zero = numpy_helper.from_array(np.array(128, np.uint8), "zero")
        node = helper.make_node("MatMulInteger", ["left", "weight", "zero"], ["result"])
        types = (TensorProto.UINT8, TensorProto.INT32)
        initializers = [numpy_helper.from_array(weight, "weight"), zero]
    else:
        weight_fp32 = generator.standard_normal((inner, columns)).astype(np.float32)
        node = helper.make_node("MatMul", ["left", "weight"], ["result"])
        types = (TensorProto.FLOAT, TensorProto.FLOAT)
        initializers = [numpy_helper.from_array(weight_fp32, "weight")]
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("left", types[0], ["rows", inner])],
        [helper.make_tensor_value_info("result", types[1], ["rows", columns])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)

"""The graph that regroups a batch, against numpy, for the tensors of every family."""

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnxruntime import InferenceSession

from dragoman_export.bundle_files import tensor_contract
from dragoman_export.graphs.builder import Graphs
from dragoman_export.graphs.regroup import make_regroup_graph, write_regroup_graph

CUDA_OPERATORS = {"And", "Concat", "Gather", "Unsqueeze", "Where"}
"""Those of which onnxruntime's CUDA provider has kernels for every type that they are used with."""

# A, B, P, TA, TB, UA: all different, so that none is taken for another.
BEFORE = {"A": 3, "B": 2, "P": 7, "T_running": 5, "T_joined": 8, "U": 6}


def example(shape: list[int | str], dtype: np.dtype, seed: int) -> np.ndarray:
    sizes = [
        size if isinstance(size, int) else BEFORE[size.removesuffix("_running") if "U" in size else size]
        for size in shape
    ]
    values = np.random.default_rng(seed).integers(1, 100, sizes)
    return values % 2 == 0 if dtype == np.bool_ else values.astype(dtype)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_it_gathers_and_pads_as_numpy_does(graphs: dict[str, Graphs], precision: str, tmp_path: Path) -> None:
    contract = tensor_contract(graphs)
    write_regroup_graph(contract, precision, tmp_path)
    path = tmp_path / "regroup.onnx"
    onnx.checker.check_model(path, full_check=True)
    session = InferenceSession(path, providers=["CPUExecutionProvider"])
    positions = np.arange(6)
    origin_S, row_R = np.array([4, 1, 3, 0]), np.array([0, 1, 2, 3, 4, 5, 6, 8, 0])
    is_joined_S, is_old_R = origin_S >= 3, row_R < 7
    indices = {
        "origin": origin_S,
        "running_position": np.minimum(positions, 4),
        "joined_position": positions,
        "is_filled": positions < np.where(is_joined_S, 8, 5)[:, None],
        "row": row_R,
        "running_row": np.where(is_old_R, row_R, 0),
        "step": np.array([4, 5]),
        "is_lived": np.repeat(is_old_R[:, None], 2, axis=1),
    }
    specs = {spec.name: spec for spec in (*contract.memory, *contract.state)}
    inputs = {}
    for seed, value in enumerate(session.get_inputs()):
        if value.name in indices:
            inputs[value.name] = indices[value.name]
        else:
            spec = specs[value.name.partition(".")[2]]
            inputs[value.name] = example(value.shape, np.dtype(spec.dtype[precision]), seed)
    names = [value.name for value in session.get_outputs()]
    assert names == list(specs)
    for name, found in zip(names, session.run(names, inputs), strict=True):
        spec, running = specs[name], inputs[f"running.{name}"]
        if spec.growth_axis is not None:
            past = np.take(running, [4, 5], axis=spec.growth_axis)
            past = np.concatenate([past, np.zeros((2, *past.shape[1:]), past.dtype)])
            expected = past[row_R]
        elif name.startswith("state."):
            expected = np.concatenate([running, inputs[f"joined.{name}"]])[row_R]
        else:
            parts = [running, inputs[f"joined.{name}"]]
            if "T" in spec.shape:
                axis = spec.shape.index("T")
                parts = [np.take(with_room(part, axis), positions, axis=axis) for part in parts]
            expected = np.concatenate(parts)[origin_S]
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def with_room(array: np.ndarray, axis: int) -> np.ndarray:
    """The array with zeros behind it."""
    return np.pad(array, [(0, 9 if place == axis else 0) for place in range(array.ndim)])


def test_it_moves_tensors_and_works_out_no_shapes(graphs: dict[str, Graphs]) -> None:
    model = make_regroup_graph(tensor_contract(graphs), "fp32")
    assert {node.op_type for node in model.graph} <= CUDA_OPERATORS
    wheres = [node for node in model.graph if node.op_type == "Where"]
    assert all(node.inputs[2].dtype != ir.DataType.BOOL for node in wheres)

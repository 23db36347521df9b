"""`python -m benchmarks.limit` on the toy model, and how it counts products."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.limit.products import Product, find_products
from benchmarks.limit.step import weight_bytes


def test_every_step_graph_is_held_against_its_limit(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("limit", "--bundle", toy.bundle, "--input", toy.source, "--sentences", "1,4", "--beam", 2),
        *("--source-positions", 8, "--threads", 1, "--repeats", 1, "--profile"),
    )
    graphs = ["fp32", "int8", "fp32, shortlist", "int8, shortlist"]
    rows = {(row["graph"], row["sentences"]): row for row in ran.results["rows"]}
    assert rows.keys() == {(graph, sentences) for graph in graphs for sentences in (1, 4)}
    for row in rows.values():
        assert row["step_ms"] > 0
        assert row["arithmetic_fraction"] > 0
        assert row["limit_fraction"] >= row["arithmetic_fraction"]
    for graph in graphs:
        one, four = rows[graph, 1], rows[graph, 4]
        assert four["million_multiply_adds"] == pytest.approx(4 * one["million_multiply_adds"])
        # The weights are the same.
        assert one["megabytes"] < four["megabytes"] < 4 * one["megabytes"]
    assert rows["fp32", 1]["million_integer_multiply_adds"] == 0
    assert rows["int8", 1]["million_integer_multiply_adds"] > 0
    for profile in ran.results["profile"].values():
        assert sum(row["share"] for row in profile["operators"]) == pytest.approx(1.0)


def test_of_a_table_only_the_rows_that_are_looked_up_are_read(tmp_path: Path) -> None:
    tables = [
        numpy_helper.from_array(np.ones((1000, 3), np.float32), name) for name in ("read", "multiplied")
    ]
    nodes = [
        helper.make_node("Gather", ["read", "token"], ["x"]),
        helper.make_node("Gather", ["multiplied", "token"], ["y"]),
        helper.make_node("Add", ["x", "y"], ["sum"]),
        helper.make_node("Transpose", ["multiplied"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["sum", "turned"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "an embedding of its own and a tied one",
        [helper.make_tensor_value_info("token", TensorProto.INT64, ["R"])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["R", 1000])],
        tables,
    )
    path = tmp_path / "tables.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    # The tied one is also there as it is multiplied.
    assert weight_bytes(path, {"token": np.arange(7)}) == 4 * (2 * 7 * 3 + 1000 * 3)
    # No more than there is.
    assert weight_bytes(path, {"token": np.zeros(2000, np.int64)}) == 4 * (2 * 1000 * 3 + 1000 * 3)


def test_what_is_made_when_a_graph_is_loaded_is_no_work_of_a_step(tmp_path: Path) -> None:
    weights = [
        numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in (("embedding", (1000, 3)), ("matrix", (3, 5)))
    ]
    nodes = [
        helper.make_node("MatMul", ["embedding", "matrix"], ["table"]),
        helper.make_node("Gather", ["table", "token"], ["rows"]),
    ]
    graph = helper.make_graph(
        nodes,
        "a table of products",
        [helper.make_tensor_value_info("token", TensorProto.INT64, ["R"])],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["R", 5])],
        weights,
    )
    path = tmp_path / "table.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    tokens = {"token": np.arange(7)}
    assert find_products(path, tokens) == []
    assert weight_bytes(path, tokens) == 4 * 7 * 5


def test_products_are_counted_at_the_sizes_of_the_inputs(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((5, 3), np.float32), "weight")
    turned = helper.make_node("Transpose", ["weight"], ["turned"], perm=[1, 0])
    nodes = [
        turned,
        helper.make_node("MatMul", ["x", "turned"], ["y"], name="by_weight"),
        helper.make_node("Transpose", ["y"], ["z"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["y", "z"], ["w"], name="by_each_other"),
    ]
    graph = helper.make_graph(
        nodes,
        "two products",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["S", "T", 3])],
        [helper.make_tensor_value_info("w", TensorProto.FLOAT, ["S", "T", "T"])],
        [weight],
    )
    path = tmp_path / "products.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    by_weight, by_each_other = find_products(path, {"x": np.ones((2, 7, 3), np.float32)})
    assert by_weight == Product(
        name="by_weight", is_integer=False, batch=1, rows=14, inner=3, columns=5, is_weight=True
    )
    assert by_weight.multiply_adds == 14 * 3 * 5
    assert (by_each_other.batch, by_each_other.rows, by_each_other.inner) == (2, 7, 5)
    assert by_each_other.multiply_adds == 2 * 7 * 5 * 7

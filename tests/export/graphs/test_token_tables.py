"""Embeddings of tokens are multiplied when a graph is loaded, and looked up at each step."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.as_loaded import as_loaded
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint

from dragoman_export.exporter import make_graphs
from dragoman_export.graph_files import write_graphs
from dragoman_export.graphs import token_tables

PRODUCTS = ("MatMul", "FusedMatMul", "Gemm", "FusedGemm", "MatMulInteger", "MatMulIntegerToFloat")


def depend_on(model: onnx.ModelProto, name: str) -> set[str]:
    """The values that are made of an input of the graph and of constants, and of nothing else."""
    known = {value.name for value in model.graph.initializer}
    found = {name}
    for node in model.graph.node:
        if found & set(node.input) and set(node.input) <= known | found | {""}:
            found.update(node.output)
    return found


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(
    "family", ["luong", "bahdanau-gru", "plain-gru", "luong-local-p", "multi-head", "structured"]
)
def test_nothing_is_multiplied_by_a_token_alone(
    family: str, precision: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    graphs = make_graphs(make_checkpoint(CONFIGS[family], tokenizer, tokenizer).model, [precision])
    write_graphs(graphs[precision], tmp_path / precision)
    step = as_loaded(tmp_path / precision / "decoder_step.onnx")
    of_token = depend_on(step, "token")
    nodes = [node for node in step.graph.node if of_token & set(node.output)]
    assert "Gather" in {node.op_type for node in nodes}
    assert not [node.name for node in nodes if node.op_type in PRODUCTS]
    constants = {value.name for value in step.graph.initializer}
    assert not [node.name for node in step.graph.node if set(node.input) <= constants]


def test_a_table_that_would_be_too_large_is_left(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A model of its own: traces are remembered.
    config = replace(CONFIGS["bahdanau-lstm"], embedding_size=11)
    # The larger of its two products has four gates of 14 units.
    monkeypatch.setattr(token_tables, "MAX_TABLE_BYTES", 4 * 40 * 4 * 14 - 1)
    graphs = make_graphs(make_checkpoint(config, tokenizer, tokenizer).model, ["fp32"])
    write_graphs(graphs["fp32"], tmp_path / "fp32")
    step = as_loaded(tmp_path / "fp32" / "decoder_step.onnx")
    sizes = {value.name: value.dims for value in step.graph.initializer}
    of_token = depend_on(step, "token")
    gathered = [
        sizes[node.input[0]][1]
        for node in step.graph.node
        if node.op_type == "Gather" and of_token & set(node.output)
    ]
    # The embedding itself, and what the readout makes of it: two for each of its units.
    assert sorted(gathered) == [11, 22]


def test_sums_of_a_table_in_int8_are_exact(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Of codes of up to 63 on both sides, as many as an embedding is wide."""
    graphs = make_graphs(make_checkpoint(CONFIGS["luong"], tokenizer, tokenizer).model, ["int8"])
    write_graphs(graphs["int8"], tmp_path / "int8")
    stored = {
        value.name: value.const_value.numpy()
        for value in graphs["int8"].decoder_step.graph.initializers.values()
        if value.const_value is not None
    }
    rows = stored["model.output.embedding.weight.rows.codes"]
    (name,) = (key for key in stored if key.endswith(".columns.codes") and stored[key].shape == (12, 56))
    columns = stored[name]
    exact = rows.astype(np.int64) @ columns.astype(np.int64)
    expected = exact.astype(np.float32) * stored[name.replace("codes", "scale")]
    expected = expected * stored["model.output.embedding.weight.rows.scale"][:, None]
    tables = {
        value.name: onnx.numpy_helper.to_array(value)
        for value in as_loaded(tmp_path / "int8" / "decoder_step.onnx").graph.initializer
        if list(value.dims) == [40, 56]
    }
    (table,) = tables.values()
    assert np.array_equal(table, expected)

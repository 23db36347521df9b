"""Embeddings of tokens are multiplied when a graph is loaded, and looked up at each step."""

from pathlib import Path

import onnx
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.as_loaded import as_loaded
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, make_graphs

from dragoman_export.bundle_files import write_graphs

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
@pytest.mark.parametrize("family", ["luong", "bahdanau-gru"])
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

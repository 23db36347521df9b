"""Graphs are optimised at export: onnxruntime finds next to nothing to take out when it loads them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from tests.export.as_loaded import STANDARD, as_loaded


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Its nodes and those of the loops in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(attribute.g)


def made_of_constants(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Nodes that are worked out once, when a graph is loaded: what follows from the rest is not stored."""
    known = {tensor.name for tensor in graph.initializer} | {""}
    made = []
    for node in graph.node:
        if set(node.input) <= known:
            made.append(node)
            known.update(node.output)
    return made


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("name", ["encoder", "decoder_step"])
def test_onnxruntime_finds_next_to_nothing_to_take_out(
    graphs_folder: Path, precision: str, name: str
) -> None:
    path = graphs_folder / precision / f"{name}.onnx"
    shipped = onnx.load(path, load_external_data=False).graph
    nodes = Counter(node.op_type for node in all_nodes(shipped))
    nodes -= Counter(node.op_type for node in made_of_constants(shipped))
    loaded = Counter(node.op_type for node in all_nodes(as_loaded(path, STANDARD).graph))
    taken_out = nodes - loaded
    assert taken_out.total() <= 0.03 * nodes.total(), taken_out

"""Attention by kernels has the same bits alone, in a beam, and padded as far as the engine pads."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from dragoman_export.graphs.attention import attend_to_source
from dragoman_export.graphs.builder import GraphBuilder
from dragoman_export.parity.onnx_stepper import open_session, run_session
from dragoman_server.engine.decoder import padded_positions

HEADS, HEAD_WIDTH = 16, 64


@pytest.mark.parametrize("queries", [1, 4, 5])
def test_padding_as_the_engine_pads_changes_no_bit_of_a_context(queries: int, tmp_path: Path) -> None:
    build = GraphBuilder("attention", {}, ir.DataType.FLOAT)
    width, memory = HEADS * HEAD_WIDTH, ["S", HEADS, "T", HEAD_WIDTH]
    values = [
        build.input(name, shape, ir.DataType.FLOAT)
        for name, shape in (("queries", ["S", "Q", width]), ("keys", memory), ("values", memory))
    ]
    is_inside = build.input("is_inside", ["S", "T"], ir.DataType.INT32)
    build.output("context", attend_to_source(build, *values, is_inside, HEADS), ["S", "Q", width])
    ir.save(build.model(), tmp_path / "attention.onnx")
    session, random = open_session(tmp_path / "attention.onnx"), np.random.default_rng(4)
    for length in range(1, 40):
        query = random.normal(size=(1, queries, width)).astype(np.float32)
        past = random.normal(size=(2, 1, HEADS, length, HEAD_WIDTH)).astype(np.float32)

        def attend(positions: int, query: np.ndarray = query, past: np.ndarray = past) -> np.ndarray:
            length = past.shape[3]
            keys, values = np.pad(past, [(0, 0)] * 3 + [(0, positions - length), (0, 0)])
            is_inside = (np.arange(positions) < length).astype(np.int32)[None]
            given = {"queries": query, "keys": keys, "values": values, "is_inside": is_inside}
            return run_session(session, given)["context"]

        alone = attend(padded_positions(length))
        # A row of a beam attends as it does by itself.
        for number in range(queries):
            one = query[:, number : number + 1]
            np.testing.assert_array_equal(
                attend(padded_positions(length), one), alone[:, number : number + 1]
            )
        for longest in (length + 1, length + 3, 41, 65, 130):
            np.testing.assert_array_equal(attend(padded_positions(longest)), alone)

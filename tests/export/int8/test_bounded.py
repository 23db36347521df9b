"""What int8 graphs know to lie within -1 and 1, however long a sentence is decoded."""

import numpy as np
import onnx_ir as ir
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from onnx_ir.tape import Tape
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint

from dragoman_export.exporter import make_graphs
from dragoman_export.graphs.initializers import make_constant
from dragoman_export.graphs.output_layer import find_output_product
from dragoman_export.int8.bounded import bounded_states, bounded_values
from dragoman_training.decoding.members import as_one


def graph_of(tape: Tape, inputs: list[ir.Value], outputs: dict[str, ir.Value]) -> ir.Graph:
    for name, value in outputs.items():
        value.name = name
    return ir.Graph(inputs, list(outputs.values()), nodes=tape.nodes, opset_imports={"": 20}, name="bounded")


def source(name: str) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(["R", 4]), type=ir.TensorType(ir.DataType.FLOAT))


def test_values_are_bounded_by_how_they_were_made() -> None:
    tape = Tape()
    x, given = source("x"), source("given")
    tanh, sigmoid = tape.op("Tanh", [x]), tape.op("Sigmoid", [x])
    rows = make_constant("rows", np.array([0, 0]))
    half, zero = make_constant("half", np.float32([0.5])), make_constant("zero", np.float32([0]))
    bounded = {
        "gated": tape.op("Mul", [sigmoid, tanh]),
        "moved": tape.op("Gather", [tape.op("Mul", [given, tanh]), rows]),
        "joined": tape.op("Concat", [tanh, given], {"axis": -1}),
        "chosen": tape.op("Where", [tape.op("Less", [x, half]), given, zero]),
    }
    free = {
        "sum": tape.op("Add", [tanh, sigmoid]),
        "scaled": tape.op("Mul", [tanh, half]),
        "looked_up": tape.op("Gather", [make_constant("table", np.full((2, 4), 0.5, np.float32)), rows]),
        "not_given": tape.op("Gather", [x, rows]),
        "joined_with_free": tape.op("Concat", [tanh, x], {"axis": -1}),
        "chosen_of_free": tape.op("Where", [tape.op("Less", [x, half]), x, sigmoid]),
    }
    graph = graph_of(tape, [x, given], bounded | free)
    found = {value.name for value in bounded_values(graph, ["given"])}
    assert found & (bounded.keys() | free.keys()) == bounded.keys()
    assert "moved" not in {value.name for value in bounded_values(graph)}


def test_a_recurrent_node_bounds_its_states_and_not_its_cell() -> None:
    tape = Tape()
    x = source("x")
    states, last, cell = tape.op_multi_out("LSTM", [x, x, x], {"hidden_size": 4}, num_outputs=3)
    graph = graph_of(tape, [x], {"states": states, "last": last, "cell": cell})
    assert {value.name for value in bounded_values(graph)} == {"states", "last"}


def test_a_state_is_bounded_that_is_so_at_first_and_after_every_step() -> None:
    first, step = Tape(), Tape()
    x = source("x")
    encoder = graph_of(
        first,
        [x],
        {"state.kept": first.op("Tanh", [x]), "state.grows": first.op("Tanh", [x]), "state.free": x},
    )
    kept, grows, free = source("state.kept"), source("state.grows"), source("state.free")
    decoder = graph_of(
        step,
        [kept, grows, free],
        {
            # Bounded for as long as what grows is.
            "next_state.kept": step.op("Mul", [kept, kept]),
            "next_state.grows": step.op("Add", [grows, kept]),
            "next_state.free": step.op("Tanh", [free]),
        },
    )
    assert bounded_states(encoder, decoder) == {"state.kept"}


def test_a_state_falls_with_another_that_it_is_made_of() -> None:
    first, step = Tape(), Tape()
    x = source("x")
    encoder = graph_of(first, [x], {"state.one": first.op("Tanh", [x]), "state.two": first.op("Tanh", [x])})
    one, two = source("state.one"), source("state.two")
    outputs = {"next_state.one": step.op("Mul", [one, two]), "next_state.two": step.op("Add", [one, two])}
    assert bounded_states(encoder, graph_of(step, [one, two], outputs)) == set()


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("luong", {"state.feed", "state.hidden0", "state.hidden1"}),
        ("bahdanau-lstm", {"state.hidden"}),
        ("plain", {"state.hidden0"}),
        ("transformer", set()),
        ("lm-span", {"state.hidden0", "state.hidden1", "state.past"}),
    ],
)
def test_hidden_states_of_families(family: str, expected: set[str], tokenizer: Tokenizer) -> None:
    model = make_checkpoint(CONFIGS[family], tokenizer, tokenizer).model
    graphs = make_graphs(model, ["fp32"])["fp32"]
    assert bounded_states(graphs.encoder.graph, graphs.decoder_step.graph) == expected


@pytest.mark.parametrize("num_members", [1, pytest.param(3, marks=pytest.mark.long)])
def test_what_an_ensemble_scales_down_is_rounded_by_rows(num_members: int, tokenizer: Tokenizer) -> None:
    members = [make_checkpoint(CONFIGS["luong"], tokenizer, tokenizer) for _ in range(num_members)]
    step = make_graphs(as_one(members), ["int8"])["int8"].decoder_step.graph
    assert (find_output_product(step).row_step is not None) is (num_members > 1)

"""The nodes of one layer, repeated: each has its own weights, past and memory, and reads the one before."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch

from dragoman_export.graphs.initializers import make_constant
from dragoman_export.graphs.layers import Layers, repeat_layers

STEP = """<ir_version: 10, opset_import: ["" : 20, "dragoman" : 1]>
    graph (float[S,2] x, float[S,2] state_keys0)
    => (float[S,2] y, float[S,2] attention, float[S,2] next_state_keys0, float[S,2] start_keys0) {
        embedded = Mul (x, x)
        begun = dragoman.FirstLayer (embedded)
        size = Shape ("state_keys0")
        ones = ConstantOfShape <value = float[1] {1}> (size)
        start_keys0 = Neg (ones)
        product = MatMul (begun, weight)
        next_state_keys0 = Add (product, state_keys0)
        total = Add (product, ones)
        ended = dragoman.BehindLastLayer (total)
        y = Mul (ended, ended)
        attention = Neg (product)
    }"""


def with_layers(count: int, attention: int) -> ir.Model:
    """The graph above with so many layers; the weight of each is its number, from 1 on."""
    model = ir.from_onnx_text(STEP)
    prefix = "model.decoder_layers."
    weights = {f"{prefix}{n}.weight": torch.eye(2) * (n + 1) for n in range(count)}
    first = make_constant(f"{prefix}0.weight", weights[f"{prefix}0.weight"].numpy())
    product = next(node for node in model.graph if node.op_type == "MatMul")
    product.replace_input_with(1, first)
    model.graph.register_initializer(first)
    numbers = sorted(range(count), key=str)
    repeat_layers(
        model.graph,
        Layers(weights=weights, encoder=1, decoder=count, attention=attention),
        ["x", *(f"state_keys{n}" for n in numbers)],
        ["y", "attention", *(f"{name}_keys{n}" for name in ("next_state", "start") for n in numbers)],
    )
    return model


@pytest.mark.parametrize(("count", "attention"), [(1, 0), (3, 1), (12, 11)])
def test_layers_are_one_behind_the_other_and_in_the_order_that_is_asked_for(
    count: int, attention: int
) -> None:
    model = with_layers(count, attention)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    names = [value.name for value in session.get_inputs()]
    past = {name: np.full((1, 2), float(name.removeprefix("state_keys"))) for name in names[1:]}
    given = {"x": np.full((1, 2), 0.5)} | past
    outputs = [value.name for value in session.get_outputs()]
    values = session.run(None, {name: value.astype(np.float32) for name, value in given.items()})
    found = {name: float(value[0, 0]) for name, value in zip(outputs, values, strict=True)}
    x, looked = 0.25, []
    for number in range(count):
        product = x * (number + 1)
        assert found[f"next_state_keys{number}"] == pytest.approx(product + number)
        assert found[f"start_keys{number}"] == -1
        looked.append(-product)
        x = product + 1
    assert found["y"] == pytest.approx(x * x)
    assert found["attention"] == pytest.approx(looked[attention])
    numbers = sorted(range(count), key=str)
    assert names == ["x", *(f"state_keys{number}" for number in numbers)]
    assert outputs[2 : count + 2] == [f"next_state_keys{number}" for number in numbers]

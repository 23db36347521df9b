"""A past that is padded on the left changes no bit, however long it is."""

import numpy as np
import pytest
from tests.export.toy_checkpoint import make_checkpoint, open_stepper, random_sources

from dragoman_bundle.tokenizer import Tokenizer
from dragoman_export.exporter import make_graphs
from dragoman_export.graph_files import write_graphs
from dragoman_export.onnx_stepper import Arrays, Context, OnnxStepper
from dragoman_training.models import TransformerConfig

# Around 128 and 256 positions products cut their sums into blocks.
AGES = [0, 1, 7, 60, 127, 128, 200, 257, 300]
PADDING = [1, 3, 64, 131, 300]
HEADS, WIDTH = 2, 64


@pytest.fixture(scope="module")
def steppers(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, OnnxStepper]:
    config = TransformerConfig(
        width=HEADS * WIDTH, heads=HEADS, feed_forward=32, encoder_layers=1, decoder_layers=1
    )
    checkpoint = make_checkpoint(config, tokenizer, tokenizer)
    folder = tmp_path_factory.mktemp("heads")
    steppers = {}
    for precision, graphs in make_graphs(checkpoint.model, ["fp32", "int8"]).items():
        write_graphs(graphs, folder / precision)
        steppers[precision] = open_stepper(folder / precision, checkpoint)
    return steppers


def step(stepper: OnnxStepper, context: Context, state: Arrays, beam: int) -> Arrays:
    ids = np.full((2, beam), 5)
    outputs, new = stepper.run_step(
        Context(memory=context.memory, state=state),
        ids,
        np.arange(2 * beam).reshape(2, beam),
        np.zeros((2, beam), np.float32),
        forced_SK=ids,
    )
    # The newest position stands at the end.
    newest = {name: value[..., -1:, :] for name, value in new.state.items() if value.ndim == 4}
    return outputs | newest | {"age": new.state["state.age"]}


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_padding_before_a_past_changes_no_bit(
    steppers: dict[str, OnnxStepper], precision: str, beam: int
) -> None:
    stepper, random = steppers[precision], np.random.default_rng(1)
    context = stepper.encode(random_sources([3, 8], 40, eos_id=3))
    for age in AGES:
        state: Arrays = {
            name: random.normal(size=(2 * beam, HEADS, age, WIDTH)).astype(np.float32)
            for name in ("state.keys0", "state.values0")
        }
        state["state.age"] = np.full(2 * beam, age)
        expected = step(stepper, context, state, beam)
        assert (expected["age"] == age + 1).all()
        for padding in PADDING:
            # Anything finite may stand there, not only zeros.
            noise = np.full((2 * beam, HEADS, padding, WIDTH), 3.5, np.float32)
            padded = {
                name: value if value.ndim == 1 else np.concatenate([noise, value], axis=2)
                for name, value in state.items()
            }
            for name, value in step(stepper, context, padded, beam).items():
                np.testing.assert_array_equal(value, expected[name], err_msg=f"{name} {age} {padding}")

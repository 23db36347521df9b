"""A past that is padded on the left changes no bit, however long it is."""

import numpy as np
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import make_checkpoint, open_stepper, random_sources

from dragoman_export.exporter import make_graphs
from dragoman_export.graph_files import write_graphs
from dragoman_export.parity.onnx_stepper import Arrays, Context, OnnxStepper
from dragoman_training.models import LanguageModelConfig, ModelConfig, TransformerConfig

# Around 128 and 256 positions products cut their sums into blocks.
AGES = [0, 1, 7, 60, 127, 128, 200, 257, 300]
PADDING = [1, 3, 64, 131, 300]
CONFIGS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(width=128, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=1),
    "lm": LanguageModelConfig(embedding_size=20, layers=1, units=300, attention_units=270),
    "lm-span": LanguageModelConfig(embedding_size=20, layers=1, units=40, attention_units=30, span=150),
}


@pytest.fixture(scope="module", params=CONFIGS)
def steppers(
    request: pytest.FixtureRequest, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, OnnxStepper]:
    checkpoint = make_checkpoint(CONFIGS[request.param], tokenizer, tokenizer)
    folder = tmp_path_factory.mktemp("heads")
    steppers = {}
    for precision, graphs in make_graphs(checkpoint.model, ["fp32", "int8"]).items():
        write_graphs(graphs, folder / precision)
        steppers[precision] = open_stepper(folder / precision, checkpoint)
    return steppers


def growth_axes(context: Context) -> dict[str, int]:
    """Of the states that grow, which have no step yet."""
    return {name: value.shape.index(0) for name, value in context.state.items() if 0 in value.shape}


def of_age(random: np.random.Generator, context: Context, beam: int, age: int) -> Arrays:
    """A random state of rows that have lived through so many steps."""
    state: Arrays = {"state.age": np.full(2 * beam, age)}
    axes = growth_axes(context)
    for name, value in context.state.items():
        if name not in state:
            shape = [age if place == axes.get(name) else size for place, size in enumerate(value.shape)]
            state[name] = random.normal(size=(2 * beam, *shape[1:])).astype(np.float32)
    return state


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
    newest = {name: new.state[name].take(-1, axis=axis) for name, axis in growth_axes(context).items()}
    return outputs | new.state | newest


def with_noise(random: np.random.Generator, past: np.ndarray, axis: int, padding: int) -> np.ndarray:
    """The past with as many positions of noise before it."""
    shape = [padding if place == axis else size for place, size in enumerate(past.shape)]
    return np.concatenate([4 * random.normal(size=shape).astype(np.float32), past], axis=axis)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_padding_before_a_past_changes_no_bit(
    steppers: dict[str, OnnxStepper], precision: str, beam: int
) -> None:
    stepper, random = steppers[precision], np.random.default_rng(1)
    context = stepper.encode(random_sources([3, 8], 40, eos_id=3))
    for age in AGES:
        state = of_age(random, context, beam, age)
        expected = step(stepper, context, state, beam)
        assert (expected["state.age"] == age + 1).all()
        for padding in PADDING:
            # Anything finite may stand there, not only zeros.
            padded = state | {
                name: with_noise(random, state[name], axis, padding)
                for name, axis in growth_axes(context).items()
            }
            for name, value in step(stepper, context, padded, beam).items():
                np.testing.assert_array_equal(value, expected[name], err_msg=f"{name} {age} {padding}")

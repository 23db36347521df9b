"""A past that is padded changes no bit, however long it is, nor on which side."""

from dataclasses import dataclass

import numpy as np
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import make_checkpoint, make_graphs, open_stepper, random_sources

from dragoman_export.bundle_files import tensor_contract, write_graphs
from dragoman_export.parity.onnx_stepper import Arrays, Context, OnnxStepper
from dragoman_training.models import LanguageModelConfig, ModelConfig, TransformerConfig

# Around 128 and 256 positions products cut their sums into blocks.
AGES = [0, 1, 7, 60, 127, 128, 200, 257, 300]
PADDING = [1, 3, 64, 131, 300]
CONFIGS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(width=128, heads=2, feed_forward=32, encoder_layers=1, decoder_layers=1),
    # Of the sizes of `parity/test_invariance.py`: a trace for both.
    "lm": LanguageModelConfig(embedding_size=72, layers=1, units=300, attention_units=270),
    "lm-span": LanguageModelConfig(embedding_size=20, layers=1, units=40, attention_units=30, span=150),
}


@dataclass(frozen=True)
class Made:
    """Graphs of one precision."""

    stepper: OnnxStepper
    padded_behind: bool


@pytest.fixture(scope="module", params=["transformer", "lm", pytest.param("lm-span", marks=pytest.mark.long)])
def made(
    request: pytest.FixtureRequest, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Made]:
    checkpoint = make_checkpoint(CONFIGS[request.param], tokenizer, tokenizer)
    folder = tmp_path_factory.mktemp("heads")
    made = {}
    graphs = make_graphs(checkpoint.model, ["fp32", "int8"])
    growing = [spec for spec in tensor_contract(graphs).state if spec.growth_axis is not None]
    for precision in graphs:
        write_graphs(graphs[precision], folder / precision)
        # All pasts of a model are alike.
        (padded_behind,) = {precision in spec.padded_behind for spec in growing}
        assert padded_behind == (request.param == "transformer" and precision == "int8")
        made[precision] = Made(open_stepper(folder / precision, checkpoint), padded_behind)
    return made


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


def step(made: Made, context: Context, state: Arrays, beam: int) -> Arrays:
    ids = np.full((2, beam), 5)
    outputs, new = made.stepper.run_step(
        Context(memory=context.memory, state=state),
        ids,
        np.arange(2 * beam).reshape(2, beam),
        np.zeros((2, beam), np.float32),
        forced_SK=ids,
    )
    # The newest position stands at the end, or behind those that the row has.
    place = int(state["state.age"][0]) if made.padded_behind else -1
    newest = {name: new.state[name].take(place, axis=axis) for name, axis in growth_axes(context).items()}
    return outputs | new.state | newest


def with_noise(
    random: np.random.Generator, past: np.ndarray, axis: int, padding: int, *, behind: bool
) -> np.ndarray:
    """The past with as many positions of noise before or behind it."""
    shape = [padding if place == axis else size for place, size in enumerate(past.shape)]
    noise = 4 * random.normal(size=shape).astype(np.float32)
    return np.concatenate([past, noise] if behind else [noise, past], axis=axis)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_padding_of_a_past_changes_no_bit(made: dict[str, Made], precision: str, beam: int) -> None:
    graphs, random = made[precision], np.random.default_rng(1)
    context = graphs.stepper.encode(random_sources([3, 8], 40, eos_id=3))
    for age in AGES:
        state = of_age(random, context, beam, age)
        expected = step(graphs, context, state, beam)
        assert (expected["state.age"] == age + 1).all()
        for padding in PADDING:
            # Anything finite may stand there, not only zeros.
            padded = state | {
                name: with_noise(random, state[name], axis, padding, behind=graphs.padded_behind)
                for name, axis in growth_axes(context).items()
            }
            for name, value in step(graphs, context, padded, beam).items():
                np.testing.assert_array_equal(value, expected[name], err_msg=f"{name} {age} {padding}")

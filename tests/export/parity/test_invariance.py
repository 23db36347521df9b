"""A sentence comes out of the graphs the same, bit for bit, whatever shares its batch."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import make_checkpoint, make_graphs, open_gate, open_stepper, random_sources

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Graphs
from dragoman_export.int8.calibration import Steps, find_steps
from dragoman_export.parity.onnx_stepper import Arrays, OnnxStepper
from dragoman_export.parity.torch_reference import TorchReference
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.models import (
    LanguageModelConfig,
    LuongConfig,
    PlainConfig,
    Transformer,
    TransformerConfig,
)

LENGTHS = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 20, 31, 33, 47, 49, 63, 64, 65, 100, 130]
"""Around the sizes at which matrix and vector kernels change their ways."""
NUM_STEPS = 3


def decode(stepper: OnnxStepper, sources: list[list[int]], token_USK: np.ndarray) -> list[Arrays]:
    """Encodes, steps along given tokens, and returns for each sentence all that belongs to it."""
    _, sentences, beam = token_USK.shape
    longest = max(len(source) for source in sources)
    context = stepper.encode(sources)
    collected = [{f"encoder {name}": value for name, value in {**context.memory, **context.state}.items()}]
    parent_SK = np.repeat(np.arange(sentences)[:, None], beam, axis=1)
    score_SK = np.full((sentences, beam), -np.inf, np.float32)
    score_SK[:, 0] = 0
    for step, token_SK in enumerate(token_USK):
        outputs, context = stepper.run_step(context, token_SK, parent_SK, score_SK, forced_SK=token_SK)
        new = context.state.items()
        state = {name: value.reshape(sentences, beam, *value.shape[1:]) for name, value in new}
        collected.append({f"step {step} {name}": value for name, value in {**outputs, **state}.items()})
        # Rows change places from step to step.
        parent_SK = np.arange(sentences)[:, None] * beam + np.arange(beam)[None, ::-1]
        score_SK = np.tile(-np.arange(beam, dtype=np.float32), (sentences, 1))
    return [
        {
            name: _without_padding(name, value[place], len(source), longest)
            for part in collected
            for name, value in part.items()
        }
        for place, source in enumerate(sources)
    ]


def _without_padding(name: str, value: np.ndarray, length: int, longest: int) -> np.ndarray:
    """The value at the sentence's own positions, whichever axis they are on, if any."""
    if longest not in value.shape or not ("attention" in name or "memory." in name):
        return value
    return value.take(range(length), axis=value.shape.index(longest))


def assert_same(one: Arrays, other: Arrays) -> None:
    """Each bit of them."""
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def check_company_changes_no_bit(checkpoint: Checkpoint, graphs: Path, beam: int) -> None:
    """Decodes sentences together, in another order, padded less, and each alone."""
    stepper = open_stepper(graphs, checkpoint)
    vocabulary = checkpoint.target_tokenizer.vocabulary_size
    sources = random_sources(LENGTHS, vocabulary, eos_id=3)
    token_USK = np.random.default_rng(6).integers(4, vocabulary, (NUM_STEPS, len(sources), beam))
    together = decode(stepper, sources, token_USK)
    order = np.random.default_rng(7).permutation(len(sources))
    shuffled = decode(stepper, [sources[place] for place in order], token_USK[:, order])
    # Without the longest ones the batch is padded less.
    fewer = [place for place, source in enumerate(sources) if len(source) <= 33]
    shorter = decode(stepper, [sources[place] for place in fewer], token_USK[:, fewer])
    for place, source in enumerate(sources):
        assert_same(decode(stepper, [source], token_USK[:, [place]])[0], together[place])
        assert_same(shuffled[order.tolist().index(place)], together[place])
        if place in fewer:
            assert_same(shorter[fewer.index(place)], together[place])


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_neighbours_order_and_padding_change_no_bit(
    checkpoint: Checkpoint, graphs_folder: Path, precision: str, beam: int
) -> None:
    check_company_changes_no_bit(checkpoint, graphs_folder / precision, beam)


plain = partial(PlainConfig, embedding_size=72, embedding_scale=4.0, layers=2, units=300)
transformer = partial(TransformerConfig, width=256, feed_forward=512, encoder_layers=1, decoder_layers=1)
WIDE = {
    ("local-p", "int8"): LuongConfig(
        embedding_size=72, encoder_units=40, decoder_units=300, attention="local-p", window=4
    ),
    ("plain-relu", "fp32"): plain(cell="rnn-relu"),
    ("plain-simple", "fp32"): plain(cell="rnn"),
    **dict.fromkeys(
        [("lm", "fp32"), ("lm", "int8")],
        LanguageModelConfig(embedding_size=72, layers=1, units=300, attention_units=270),
    ),
    ("transformer", "int8"): transformer(heads=4),
    ("ssru", "int8"): transformer(heads=8, past="ssru"),
}
"""What of them is float has sums as long as a real model's, longer than a block of 256.

The Transformers attend by kernels and round in steps that rows share. One has heads as wide as a real one's,
the other as many.
"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, id=" in ".join(each), marks=[pytest.mark.long] if each[0] == "ssru" else [])
        for each in WIDE
    ],
)
def wide(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> tuple[Checkpoint, str]:
    _, precision = request.param
    return make_checkpoint(WIDE[request.param], tokenizer, tokenizer), precision


@pytest.fixture(scope="module")
def wide_folder(wide: tuple[Checkpoint, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkpoint, precision = wide
    folder = tmp_path_factory.mktemp("wide") / precision
    find = shared_steps(checkpoint) if isinstance(checkpoint.model, Transformer) else None
    write_graphs(make_graphs(checkpoint.model, [precision], find=find)[precision], folder)
    return folder


def shared_steps(checkpoint: Checkpoint) -> Callable[[Graphs], Steps]:
    """Finds them along the model's own words, as an export does."""
    tokenizers = checkpoint.source_tokenizer, checkpoint.target_tokenizer
    gate = open_gate(TorchReference(checkpoint.model, tokenizers[1].bos_id), checkpoint.recipe.decoding)

    def find(graphs: Graphs) -> Steps:
        steps = find_steps(graphs, gate.words, partial(OnnxStepper.between, *tokenizers))
        assert steps.encoder
        assert steps.decoder_step
        return steps

    return find


@pytest.mark.parametrize("beam", [1, 5, *(pytest.param(beam, marks=pytest.mark.long) for beam in (4, 8))])
def test_nor_do_they_where_sums_are_long(wide: tuple[Checkpoint, str], wide_folder: Path, beam: int) -> None:
    check_company_changes_no_bit(wide[0], wide_folder, beam)

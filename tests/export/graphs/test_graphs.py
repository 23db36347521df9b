"""The fp32 graphs do what the PyTorch model does, at every size: none of the example's is folded in."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.export.toy_checkpoint import first_outputs, make_graphs, open_stepper, random_sources

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.batching import pad_ids
from dragoman_training.models import (
    LanguageModelConfig,
    LuongConfig,
    PlainConfig,
    TransformerConfig,
    build_model,
)
from dragoman_training.models.layers.embedding import VocabularyShape

FEW = {(1, 1), (1, 100), (2, 2), (7, 17), (64, 1), (64, 100)}
"""Sentences and source positions: each number of either, and the extremes of both."""
SIZES = [
    pytest.param(*size, marks=[] if size in FEW else [pytest.mark.long])
    for size in product((1, 2, 7, 64), (1, 2, 17, 100))
]


@pytest.mark.parametrize(("sentences", "positions"), SIZES)
def test_encoder_and_step_equal_pytorch(
    checkpoint: Checkpoint, graphs_folder: Path, sentences: int, positions: int
) -> None:
    generator = np.random.default_rng(sentences * positions)
    vocabulary = checkpoint.target_tokenizer.vocabulary_size
    lengths = [positions, *generator.integers(1, positions + 1, sentences - 1).tolist()]
    sources = random_sources(lengths, vocabulary, eos_id=3)
    stepper = open_stepper(graphs_folder / "fp32", checkpoint)
    context = stepper.encode(sources)
    with torch.inference_mode():
        memory, state = checkpoint.model.encode(pad_ids(sources, 0), torch.tensor(lengths))
    for prefix, expected, found in (("memory", memory, context.memory), ("state", state, context.state)):
        assert {f"{prefix}.{name}" for name in expected} == found.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[f"{prefix}.{name}"], value.numpy(), atol=1e-5)

    for beam in (1, 2, 5, 8) if sentences < 64 else (1, 5):
        # The first step has a state row a sentence, the second one a row of the first.
        token_SK, forced_SK = generator.integers(3, vocabulary, (2, sentences, beam))
        parent_SK = generator.integers(0, sentences, (sentences, beam))
        score_SK = generator.normal(size=(sentences, beam)).astype(np.float32)
        score_SK[:, 1:] = np.where(score_SK[:, 1:] > 0.5, -np.inf, score_SK[:, 1:])
        found_context, expected_state = context, state
        for _ in range(2):
            rows = (token_SK, parent_SK, score_SK)
            outputs, found_context = stepper.run_step(found_context, *rows, forced_SK=forced_SK)
            with torch.inference_mode():
                gathered = {name: value[parent_SK.flatten()] for name, value in expected_state.items()}
                features, attention, expected_state = checkpoint.model.step(
                    torch.from_numpy(token_SK), memory, gathered
                )
            with torch.inference_mode():
                logits = checkpoint.model.output(features)
            token_scores = logits.log_softmax(dim=-1).numpy().reshape(sentences, beam, vocabulary)
            running = (token_scores + score_SK[:, :, None]).reshape(sentences, -1)
            best = -np.sort(-running, axis=1)[:, : 2 * beam]
            picked = np.take_along_axis(running, outputs["top_index"], axis=1)
            forced = np.take_along_axis(token_scores, forced_SK[:, :, None], axis=2)[:, :, 0] + score_SK
            np.testing.assert_allclose(outputs["top_score"], best, atol=1e-4)
            np.testing.assert_allclose(picked, best, atol=1e-4)
            np.testing.assert_allclose(outputs["forced_score"], forced, atol=1e-4)
            np.testing.assert_allclose(outputs["attention"], attention.numpy(), atol=1e-5)
            for name, value in expected_state.items():
                np.testing.assert_allclose(found_context.state[f"state.{name}"], value.numpy(), atol=1e-4)
            parent_SK = generator.permutation(sentences * beam).reshape(sentences, beam)


def test_attention_adds_up_within_the_sentence(checkpoint: Checkpoint, graphs_folder: Path) -> None:
    stepper = open_stepper(graphs_folder / "fp32", checkpoint)
    context = stepper.encode(random_sources([3, 9], checkpoint.target_tokenizer.vocabulary_size, eos_id=3))
    outputs = first_outputs(stepper, context)
    assert (outputs["attention"][0, 0, 3:] == 0).all()
    totals = outputs["attention"].sum(axis=2)
    config = checkpoint.recipe.model
    if isinstance(config, PlainConfig):
        assert (totals == 0).all()
    elif isinstance(config, LanguageModelConfig):
        # Some may be on the zeros and bos, which come before the source.
        assert ((totals > 0) & (totals < 1 + 1e-6)).all()
    elif isinstance(config, LuongConfig) and config.attention == "local-p":
        assert ((totals > 0) & (totals < 1)).all()
    else:
        np.testing.assert_allclose(totals, 1, atol=1e-6)


def test_heads_too_wide_for_sums_in_a_fixed_order_are_refused_with_a_number_that_is_not() -> None:
    shape = VocabularyShape(source_size=20, target_size=20, shared=True, bos=2, never_produced=(0, 1, 2))
    config = TransformerConfig(width=512, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)
    with pytest.raises(ValueError, match=r"its 2 heads are 256 wide, .* model\.heads of at least 4"):
        make_graphs(build_model(config, shape), ["fp32"])

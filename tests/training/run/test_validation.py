"""Perplexity by hand, and which pairs are validated on."""

import math
from pathlib import Path

import pytest
import torch

from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus, spread
from dragoman_training.data.files import read_lines
from dragoman_training.run.validation import perplexity


def test_perplexity_is_that_of_the_mean_token_whatever_the_batches(
    toy_folder: Path, toy_checkpoint: Path
) -> None:
    checkpoint = load_checkpoint(toy_checkpoint)
    tokenizer = checkpoint.source_tokenizer
    corpus = Corpus(
        list(read_lines(toy_folder / "test.de"))[:9], list(read_lines(toy_folder / "test.en"))[:9]
    )
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=None)
    loss, num_tokens = 0.0, 0
    for number in range(9):
        batch = pairs.batch([number])
        with torch.inference_mode():
            features = checkpoint.model(batch.source_ST, batch.source_length_S, batch.target_input_SU)
            output = checkpoint.model.output
            log_probability = (features @ output.embedding.weight.T + output.bias).log_softmax(dim=-1)
        loss -= float(log_probability[0].gather(1, batch.target_output_SU.T).sum())
        num_tokens += batch.target_output_SU.numel()
    expected = math.exp(loss / num_tokens)
    for batch_tokens in (1, 40, 4000):
        found = perplexity(checkpoint.model, pairs, batch_tokens=batch_tokens)
        assert found == pytest.approx(expected, rel=1e-4)


def test_validation_pairs_are_spread_evenly() -> None:
    corpus = Corpus([str(n) for n in range(10)], [str(-n) for n in range(10)])
    assert spread(corpus, 3).sources == ["0", "3", "6"]
    assert spread(corpus, 3).targets == ["0", "-3", "-6"]
    for count in (0, 10, 99):
        assert spread(corpus, count) is corpus

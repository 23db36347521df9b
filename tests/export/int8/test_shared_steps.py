"""Rows that share a step of int8, found on samples: where it costs little, with nothing between products."""

from functools import partial

import numpy as np
import pytest
from dragoman_bundle import Tokenizer
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, random_sources

from dragoman_export.calibration.observing import Steps, find_steps
from dragoman_export.calibration.steps import shared_step
from dragoman_export.exporter import make_graphs
from dragoman_export.parity.loss import OwnWords
from dragoman_export.parity.onnx_stepper import OnnxStepper

NORMAL = np.random.default_rng(1).normal(size=(40, 64)).astype(np.float32)


@pytest.mark.parametrize(
    "rows",
    [
        NORMAL * np.where(np.arange(40) == 7, 100, 1)[:, None].astype(np.float32),
        NORMAL * 10.0 ** np.linspace(-3, 3, 40)[:, None].astype(np.float32),
        np.zeros((40, 64), np.float32),
    ],
    ids=["one is far larger", "of all sizes", "nothing"],
)
def test_rows_keep_steps_of_their_own_where_a_common_one_would_lose_much(rows: np.ndarray) -> None:
    assert shared_step(rows) is None


def test_steps_are_found_on_every_other_sentence_of_those_that_the_gate_checks(tokenizer: Tokenizer) -> None:
    checkpoint = make_checkpoint(CONFIGS["transformer"], tokenizer, tokenizer)
    graphs = make_graphs(checkpoint.model, ["fp32"])["fp32"]
    sources = random_sources([9, 7, 8, 9, 6, 8], tokenizer.vocabulary_size, tokenizer.eos_id)

    def find(change: slice) -> Steps:
        """What steps come to be when some sentences have one token alone."""
        changed = list(sources)
        changed[change] = [[10] * (len(ids) - 1) + ids[-1:] for ids in sources[change]]
        words = OwnWords(
            checkpoint.model,
            changed,
            pad_id=tokenizer.pad_id,
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            max_steps=8,
            follows_draws=False,
        )
        return find_steps(graphs, words, partial(OnnxStepper.between, tokenizer, tokenizer))

    as_they_are, others, same = find(slice(0)), find(slice(0, None, 2)), find(slice(1, None, 2))
    assert as_they_are.encoder
    assert same.encoder == pytest.approx(as_they_are.encoder)
    assert same.decoder_step == pytest.approx(as_they_are.decoder_step)
    assert others.encoder != pytest.approx(as_they_are.encoder)

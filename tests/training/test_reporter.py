"""What a training says of itself."""

from pathlib import Path

import pytest
import torch
from tests.training.toy_pairs import SOURCES, TARGETS, toy_model, toy_tokenizer

from dragoman_training.batching import Pairs
from dragoman_training.corpus import Corpus
from dragoman_training.models import LuongConfig
from dragoman_training.processes import Processes
from dragoman_training.reporter import Reporter


def test_pairs_that_are_left_out_are_counted_by_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = toy_tokenizer()
    corpus = Corpus([*SOURCES, "hund " * 99], [*TARGETS, "dog " * 99], num_one_sided=2)
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=50)
    with Reporter(tmp_path, first_step=0) as reporter:
        reporter.describe(toy_model(LuongConfig(), tokenizer), pairs, 3, Processes(torch.device("cpu")))
    assert "24 pairs (1 too long, 2 with an empty side); 3 batches an epoch; on cpu" in " ".join(
        capsys.readouterr().out.split()
    )

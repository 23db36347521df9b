"""What the page says of models, of the length of the source, and of predicted centres."""

import numpy as np
import pytest
from tests.training.classics.study.made_findings import made_findings, made_set

from dragoman_training.classics.study.examination import centres_of
from dragoman_training.classics.study.inputs import Bucket, StudySet, cut_buckets
from dragoman_training.classics.study.page import centres_section, describe_model, length_section
from dragoman_training.decoding.forced_attention import ForcedAttention
from dragoman_training.models import (
    BahdanauConfig,
    LanguageModelConfig,
    LuongConfig,
    ModelConfig,
    MultiHeadConfig,
    PlainConfig,
    StructuredConfig,
    TransformerConfig,
)

SHORT = [f"the {number} dogs see a bird" for number in range(40)]
LONG = [f"the {number} men and the old women of the town walk over the hills" for number in range(40)]
REFERENCES = [*SHORT, *LONG]


def worse(sentences: list[str]) -> list[str]:
    """With words that are wrong in most of them."""
    return [each if place % 8 == 0 else each.replace("the", "a") for place, each in enumerate(sentences)]


def section(*translations: list[str], num_sentences: int = 80) -> str:
    """Of a model without attention each, beside `good`, which has it; the sentences are their own sources."""
    join = 2 if num_sentences < len(REFERENCES) else 1
    test_set = made_set(REFERENCES, REFERENCES, num_sentences=num_sentences, join=join)
    with_attention = made_findings("good", REFERENCES, REFERENCES)
    without = [
        made_findings(f"plain{number}", each, REFERENCES, attends=False)
        for number, each in enumerate(translations)
    ]
    return length_section([with_attention, *without], test_set, buckets_of(test_set), "lengths.svg")


def buckets_of(test_set: StudySet) -> list[Bucket]:
    return cut_buckets(test_set, words=10, min_sentences=2)


def lines_of(page: str, label: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(f"- `{label}`")]


@pytest.mark.parametrize(
    ("translations", "verdict", "conclusion"),
    [
        (
            [*SHORT, *worse(LONG)],
            "the share falls from 100.0% at 6 words to ",
            "the fixed vector breaks down.",
        ),
        ([*worse(SHORT), *LONG], "the share rises from ", "to 100.0% at 14 (difference +"),
        ([*SHORT, *LONG], "the shares, 100.0% at 6 words and 100.0% at 14, cannot be told apart", "+0.0)."),
    ],
)
def test_the_verdict_is_that_of_the_interval(translations: list[str], verdict: str, conclusion: str) -> None:
    page = section(translations)
    assert "### Does a fixed vector break down on long sentences?" in page
    assert "BLEU of `good`, the best recurrent model with attention" in page
    (line,) = lines_of(page, "plain0")
    assert line.startswith(f"- `plain0`, among the test set's sentences: {verdict}")
    assert conclusion in line
    assert ("the fixed vector breaks down" in line) == (" falls " in line)
    assert ("the fixed vector does not break down" in line) == (" rises " in line)


def test_the_numbers_of_a_verdict_are_those_of_the_table() -> None:
    page = section([*SHORT, *worse(LONG)])
    (_, row) = [line for line in page.splitlines() if line.startswith("| `plain0`")]
    first, last = [cell.split(" ± ")[0].strip() for cell in row.split("|")[2:-1]]
    (line,) = lines_of(page, "plain0")
    assert f"falls from {first} at 6 words to {last} at 14 (difference -" in line
    difference = float(line.split("difference ")[1].split(" points")[0])
    assert difference == pytest.approx(float(last[:-1]) - float(first[:-1]), abs=0.11)
    low, high = line.split("95% interval ")[1].split(")")[0].split(" to ")
    assert float(low) < difference < float(high) < 0


def test_predicted_centres_are_held_against_the_position_and_the_last_third_of_the_source() -> None:
    # A sentence of nine pieces and one of four. What is predicted for the end counts for nothing.
    centres = centres_of(
        [
            ForcedAttention(weights_UT=np.zeros((len(centre_U), length)), centre_U=np.array(centre_U))
            for length, centre_U in ((9, [1.0, 5.0, 7.0, 9.0]), (4, [4.0, 3.0]))
        ],
        reach=2,
    )
    page = centres_section([made_findings("p", SHORT, SHORT, centres=centres)], "centres.svg")
    (row,) = [line for line in page.splitlines() if line.startswith("| `p`")]
    assert [cell.strip() for cell in row.split("|")[2:-1]] == ["2", "4", "2.5", "0.50"]


@pytest.mark.parametrize(
    ("config", "what"),
    [
        (PlainConfig(), "plain, 4 layers, no attention, source reversed"),
        (
            PlainConfig(cell="gru", reverse_source=False),
            "plain, GRU, 4 layers, no attention, source not reversed",
        ),
        (LuongConfig(), "Luong, global attention, general score, input feeding"),
        (
            LuongConfig(attention="local-p", window=4, input_feeding=False),
            "Luong, local-p attention, window 4, general score, no input feeding",
        ),
        (BahdanauConfig(), "Bahdanau, GRU"),
        (MultiHeadConfig(heads=4), "recurrent decoder, 4 heads"),
        (StructuredConfig(annotations=10), "structured self-attention, 10 vectors"),
        (TransformerConfig(encoder_layers=6), "Transformer, pre-norm, 6 + 3 layers, 4 heads"),
        (LanguageModelConfig(), "lm"),
    ],
)
def test_a_model_is_described_by_what_sets_it_apart(config: ModelConfig, what: str) -> None:
    assert describe_model(config) == what

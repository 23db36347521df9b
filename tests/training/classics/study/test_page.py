"""What the page says of the length of the source, and of training."""

import pytest
from tests.training.classics.study.made_findings import made_findings, made_set
from tests.training.toy_pairs import SOURCES, TARGETS

from dragoman_training.classics.study.examination import Findings
from dragoman_training.classics.study.inputs import Bucket, StudySet, cut_buckets
from dragoman_training.classics.study.page import FigureLinks, length_section, study_page
from dragoman_training.models import TransformerConfig

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


def test_joined_sentences_have_a_column_and_a_verdict_of_their_own() -> None:
    page = section([*SHORT, *worse(LONG)], num_sentences=40)
    assert "| words | 6 | 14, joined | length |" in page
    (line,) = lines_of(page, "plain0")
    assert line.startswith("- `plain0`, on to joined ones: the share falls from 100.0% at 6 words to ")
    assert "at 14, joined (difference -" in line
    assert "Joined ones are 2 consecutive sentences each" in page
    assert "No source of the test set itself has more than 6 words. " in page


def test_the_verdict_is_from_the_shortest_to_the_longest_and_to_joined_ones() -> None:
    """Sentences of 6, of 14 and, joined, of 20 words."""
    joined = [f"{one} {other}" for one, other in zip(SHORT, LONG, strict=True)]
    references = [*REFERENCES, *joined]
    test_set = made_set(references, references, num_sentences=80, join=2)
    models = [
        made_findings("good", references, references),
        made_findings("plain", [*SHORT, *worse(LONG), *joined], references, attends=False),
    ]
    own, to_joined = lines_of(length_section(models, test_set, buckets_of(test_set), "a"), "plain")
    assert "sentences: the share falls from 100.0% at 6 words" in own
    assert "ones: the shares, 100.0% at 6 words and 100.0% at 20, joined, cannot be told apart" in to_joined


def test_how_long_sources_the_models_know_is_said_where_it_is_known_of_all() -> None:
    test_set = made_set(REFERENCES, REFERENCES, num_sentences=40, join=2)

    def known(*longest: int | None) -> str:
        models = [
            made_findings(f"{number}", REFERENCES, REFERENCES, longest_trained=each)
            for number, each in enumerate(longest)
        ]
        return length_section(models, test_set, buckets_of(test_set), "a")

    told = "more than 6 words, and none that the models were trained on more than 9."
    assert told in known(7, 9)
    assert "trained on" not in known(7, None)


def test_length_is_that_of_the_last_column() -> None:
    halved = [*SHORT, *(" ".join(each.split()[:7]) for each in LONG)]
    page = section(halved)
    rows = [line for line in page.splitlines() if line.startswith(("| `good`", "| `plain0`"))]
    assert [row.split("|")[-2].strip() for row in rows[:2]] == ["1.00", "0.50"]


def test_the_model_that_all_are_held_against_is_the_best_over_the_whole_test_set() -> None:
    test_set = made_set(REFERENCES, REFERENCES)
    models: list[Findings] = [
        made_findings("long", [*worse(SHORT), *LONG], REFERENCES),
        made_findings("short", [*SHORT, *worse(LONG)], REFERENCES),
        made_findings("plain", worse(REFERENCES), REFERENCES, attends=False),
    ]
    page = length_section(models, test_set, buckets_of(test_set), "a")
    best = max(models[:2], key=lambda each: each.cased.bleu(range(80)))
    assert best.label == "long"
    assert "BLEU of `long`, the best recurrent model with attention" in page


def test_models_without_attention_are_held_against_a_recurrent_one_where_there_is_one() -> None:
    test_set = made_set(REFERENCES, REFERENCES)
    transformer = made_findings("transformer", REFERENCES, REFERENCES, config=TransformerConfig())
    luong = made_findings("luong", worse(REFERENCES), REFERENCES)
    plain = made_findings("plain", worse(REFERENCES), REFERENCES, attends=False)
    buckets = buckets_of(test_set)
    both = length_section([transformer, luong, plain], test_set, buckets, "a")
    assert "BLEU of `luong`, the best recurrent model with attention" in both
    alone = length_section([transformer, plain], test_set, buckets, "a")
    assert "BLEU of `transformer`, the best model with attention" in alone


def test_with_one_column_or_without_a_pair_of_models_there_is_no_verdict() -> None:
    alone = made_set(SHORT, SHORT)
    good = made_findings("good", SHORT, SHORT)
    plain = made_findings("plain", worse(SHORT), SHORT, attends=False)
    one_column = length_section([good, plain], alone, buckets_of(alone), "a")
    assert "| `plain` | " in one_column
    assert not lines_of(one_column, "plain")
    for models in ([good], [plain]):
        assert "Does a fixed vector" not in length_section(models, alone, buckets_of(alone), "a")


def test_of_a_model_that_says_nothing_there_is_no_share_and_no_verdict() -> None:
    test_set = made_set(REFERENCES, REFERENCES)
    silent = made_findings("silent", [*SHORT, *[""] * 40], REFERENCES)
    plain = made_findings("plain", REFERENCES, REFERENCES, attends=False)
    page = length_section([silent, plain], test_set, buckets_of(test_set), "a")
    assert "| `plain` | 100.0% ± 0.0% | none |" in page
    assert not lines_of(page, "plain")


@pytest.mark.parametrize(
    ("other", "comparable"), [((b"other", b"target"), True), ((b"source", b"other"), False)]
)
def test_perplexities_are_comparable_where_the_targets_pieces_are_the_same(
    other: tuple[bytes, bytes], comparable: bool
) -> None:
    progress = {"validations": [], "step": 1, "seconds": 1}
    findings = [
        made_findings("one", TARGETS, TARGETS, progress=progress),
        made_findings("other", TARGETS, TARGETS, progress=progress, vocabularies=other),
    ]
    page = study_page(
        "dragoman study",
        findings,
        cut_buckets(made_set(SOURCES, TARGETS), words=5, min_sentences=5),
        made_set(SOURCES, TARGETS),
        FigureLinks(lengths="a.svg", training="b.svg", heat_maps=(), centres=None),
        beam_size=5,
        length_penalty=1,
    )
    assert ("so their perplexities are comparable" in page) == comparable

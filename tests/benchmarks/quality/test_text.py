"""`python -m benchmarks.text` on a few lines."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman_bundle import Bundle
from tests.server.text.answering import ANSWERS, Answer, shipped, translated

from benchmarks.text.hard_texts import HardText
from benchmarks.text.kind_lines import KINDS, NUM_LINES, Line, lines
from dragoman_server.text.options import TextFormat, TranslationOptions


@pytest.mark.long
def test_it_measures_what_comes_through(benchmark: Callable[..., Any], tmp_path: Path) -> None:
    hard = tmp_path / "hard.jsonl"
    hard.write_text(
        "\n".join(
            json.dumps(line)
            for line in (
                {"text": "Hallo {name}!", "kind": "placeholder", "must": [["{name}"]], "must_not": []},
                {
                    "text": "<b>Hallo</b>",
                    "kind": "markup",
                    "must": [["<b>"]],
                    "must_not": [],
                    "format": "html",
                },
            )
        )
    )
    (tmp_path / "de").write_text("Der Hund ist da.\nIch habe ein Haus.\n")
    (tmp_path / "en").write_text("The dog is there.\nI have a house.\n")
    ran = benchmark(
        "text",
        "--hard-texts",
        hard,
        "--input",
        tmp_path / "de",
        "--reference",
        tmp_path / "en",
        "--repeats",
        1,
    )
    assert [(row["kind"], row["num_on"]) for row in ran.results["hard_texts"]] == [
        ("placeholder", 1),
        ("markup", 1),
        ("all", 2),
    ]
    assert all(row["num_on"] == row["num_lines"] == 2 for row in ran.results["kept"])
    assert [row["num_on"] for row in ran.results["terms"]] == [2, 2]
    assert [(row["kind"], row["num_lines"], row["num_on"]) for row in ran.results["lines"]] == [
        (kind, NUM_LINES, NUM_LINES) for kind in KINDS
    ]
    costs = [(row["texts"], row["protection"]) for row in ran.results["costs"]]
    assert costs == [
        (texts, mode) for texts in ("as they are", "with a placeholder") for mode in ("off", "on")
    ]
    assert all(row["milliseconds"] > 0 for row in ran.results["costs"])


@pytest.mark.long
def test_without_a_file_of_hard_texts_there_are_none(benchmark: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "de").write_text("Der Hund ist da.\n")
    (tmp_path / "en").write_text("The dog is there.\n")
    ran = benchmark("text", "--input", tmp_path / "de", "--reference", tmp_path / "en", "--repeats", 1)
    assert ran.results["hard_texts"] == []


def test_capitals_are_compared_as_capitals() -> None:
    line = HardText(text="", kind="capitals", must=(("GOOD", "FINE"),), must_not=("x",), is_html=False)
    assert line.passes("GOOD.")
    assert not line.passes("good.")
    assert not line.passes("GOOD x")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_lines_of_all_kinds_come_through_whatever_a_model_answers(kind: str, answer: Answer) -> None:
    chosen = list(lines(kind, "de"))
    assert len({line.text for line in chosen}) == NUM_LINES
    assert lost_of(chosen, shipped(), answer) == []


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("en", "es"), ("en", "nl"), ("fr", "de")])
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_lines_come_through_between_other_languages(languages: tuple[str, str], answer: Answer) -> None:
    source, target = languages
    bundle = shipped()
    manifest = replace(bundle.manifest, source_language=source, target_language=target)
    chosen = [line for kind in KINDS for line in list(lines(kind, source))[::14]]
    assert lost_of(chosen, replace(bundle, manifest=manifest), answer) == []


def lost_of(chosen: Sequence[Line], bundle: Bundle, answer: Answer) -> list[tuple[str, str]]:
    """The lines that do not come through, with what came of them."""
    lost = []
    for line in chosen:
        options = TranslationOptions(
            beam_size=1,
            length_penalty=1.0,
            text_format=TextFormat.HTML if line.is_html else TextFormat.PLAIN,
        )
        found = translated(line.text, bundle, options, answer).text
        other = translated(line.same_as, bundle, options, answer).text if line.same_as else None
        if not line.passes(found, other):
            lost.append((line.text, found))
    return lost


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (Line(kind="url", text="Siehe a.de.", spans=("a.de",)), "See."),
        (Line(kind="url", text="Siehe a.de.", spans=("a.de",)), "See a.de a.de."),
        (
            Line(kind="markup", text="<b>a</b> <i>b</i>", spans=("<b>", "</b>", "<i>", "</i>")),
            "<b><i></b></i>",
        ),
        (Line(kind="invisible", text="a\u00ad", same_as="a"), "b"),
    ],
    ids=["lost", "twice", "crossed", "other"],
)
def test_a_line_that_did_not_come_through_is_noticed(line: Line, answer: str) -> None:
    assert not line.passes(answer, "c")

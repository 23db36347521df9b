"""The pieces that all benchmarks share."""

from pathlib import Path

import click
import pytest
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave, ratio, summarize
from benchmarks.report import Column, Report, Table
from benchmarks.sessions import SessionClock


def test_repeats_take_turns() -> None:
    order: list[str] = []
    told: list[tuple[int, str, int]] = []

    def case(name: str) -> int:
        order.append(name)
        return len(order)

    results = interleave(
        {name: lambda name=name: case(name) for name in "abc"},  # type: ignore[misc]
        2,
        lambda repeat, name, result: told.append((repeat, name, result)),
    )
    assert order == ["a", "b", "c", "a", "b", "c"]
    assert results == {"a": [1, 4], "b": [2, 5], "c": [3, 6]}
    assert told[3] == (2, "a", 4)


def test_a_summary_is_the_median_and_how_far_the_repeats_lie_apart() -> None:
    summary = summarize([12.0, 8.0, 10.0])
    assert (summary.median, summary.spread) == (10.0, pytest.approx(0.4))
    assert summarize([5.0]).spread == 0.0
    assert summarize([-0.3, -0.1, -0.2]).spread == pytest.approx(1.0)


def test_a_ratio_is_taken_repeat_by_repeat() -> None:
    # Both were half as fast in the second repeat: the ratio does not show it.
    assert ratio([4.0, 2.0, 4.4], [2.0, 1.0, 2.0]).median == 2.0


def test_runs_of_sessions_are_added_up_steps_apart() -> None:
    clock = SessionClock()
    assert clock.step_seconds == clock.encoder_seconds == 0.0
    clock.note(1.0, is_step=False)
    clock.note(2.0, is_step=True)
    clock.note(2.5, is_step=False)
    assert clock.encoder_seconds == 3.5
    assert clock.step_seconds == 2.0


def test_a_corpus_leaves_out_empty_lines_with_their_references(tmp_path: Path) -> None:
    (tmp_path / "de").write_text("eins zwei\n\ndrei\nvier\n")
    (tmp_path / "en").write_text("one two\nnothing\nthree\nfour\n")
    corpus = read_corpus(tmp_path / "de", tmp_path / "en", limit=2)
    assert corpus.sources == ("eins zwei", "drei")
    assert corpus.references == ("one two", "three")
    assert corpus.num_words == 3


def test_a_reference_of_another_length_is_refused(tmp_path: Path) -> None:
    (tmp_path / "de").write_text("eins\nzwei\n")
    (tmp_path / "en").write_text("one\n")
    with pytest.raises(click.ClickException, match=r"2 lines .* 1"):
        read_corpus(tmp_path / "de", tmp_path / "en", None)


def test_a_report_is_written_as_json_and_as_markdown(tmp_path: Path) -> None:
    columns = (Column(key="name", header="name"), Column(key="speed", header="words/s", format=",.0f"))
    rows = [{"name": "a|b", "speed": 1234.5}, {"name": "none", "speed": None}]
    report = Report(
        command="python -m benchmarks.example",
        results={"machine": describe_machine(), "rows": rows},
        tables=[Table(title="Speed", columns=columns, rows=rows, note="A note.")],
    )
    with (tmp_path / "out").open("w") as out:
        report.publish(
            Console(file=out), json_path=tmp_path / "results.json", markdown_path=tmp_path / "results.md"
        )
    markdown = (tmp_path / "results.md").read_text()
    assert "| name | words/s |\n| --- | ---: |\n| a\\|b | 1,234 |\n| none | – |" in markdown
    assert "`python -m benchmarks.example`" in markdown
    assert "A note." in markdown
    assert '"speed": 1234.5' in (tmp_path / "results.json").read_text()
    assert "1,234" in (tmp_path / "out").read_text()

"""`python -m benchmarks.segmentation`: cuts between sentences that are missed, and cuts within one."""

import time
from pathlib import Path

import click
from rich.console import Console

from benchmarks.machine import describe_machine
from benchmarks.options import CONTEXT, command_line, json_option, markdown_option
from benchmarks.report import Column, Report, Row, Table
from benchmarks.segmentation.corpora import CORPORA, LISTS, read_lines
from benchmarks.segmentation.cuts import count_missed_cuts, wrong_cuts
from dragoman_server.text.sentence_rules import rules_for

_FOLDER = click.Path(file_okay=False, path_type=Path)
_COLUMNS = [
    Column(key="language", header="language"),
    Column(key="rules", header="cut by"),
    Column(key="num_pairs", header="pairs", format="d"),
    Column(key="num_missed", header="cuts missed", format="d"),
    Column(key="num_listed", header="listed sentences", format="d"),
    Column(key="num_wrong", header="of them cut", format="d"),
    Column(key="microseconds", header="µs a pair", format=".0f"),
]


@click.command(context_settings=CONTEXT)
@click.option(
    "--data",
    default=Path("data"),
    show_default=True,
    type=_FOLDER,
    help="Folder of corpora; a language whose corpus it lacks is measured on its list alone.",
)
@click.option(
    "--lists",
    default=LISTS,
    type=_FOLDER,
    help="Folder of sentences that must stay whole, LANGUAGE.txt.  [default: those of the tests]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=2),
    help="Take only so many sentences of a language.  [default: the whole corpus]",
)
@click.option("--show", is_flag=True, help="Print every pair that was not cut and every sentence that was.")
@json_option
@markdown_option
def segmentation(
    data: Path, lists: Path, limit: int | None, show: bool, json_path: Path | None, markdown_path: Path | None
) -> None:
    """Measures how texts are cut into sentences, by language.

    Sentences of a corpus are joined in pairs by one space, and each pair should be cut there.
    """
    machine = describe_machine()
    rows: list[Row] = []
    for language, name in CORPORA.items():
        listed = lists / f"{language}.txt"
        row: dict[str, object] = {
            "language": language,
            "rules": "own rules" if rules_for(language) else "sentencex",
        }
        faults: list[str] = []
        if (data / name).exists():
            sentences = read_lines(data / name)
            began = time.process_time()
            counted = count_missed_cuts(sentences, language, limit=limit)
            seconds = time.process_time() - began
            faults += counted.missed
            row |= {
                "num_pairs": counted.num_pairs,
                "num_missed": len(counted.missed),
                "microseconds": seconds / max(1, counted.num_pairs) * 1e6,
            }
        if listed.exists():
            sentences = read_lines(listed)
            cut = wrong_cuts(sentences, language)
            faults += cut
            row |= {"num_listed": len(sentences), "num_wrong": len(cut)}
        rows.append(row)
        if show:
            click.echo("\n".join(f"{language}: {fault}" for fault in faults), err=True)
    Report(
        command=command_line("benchmarks.segmentation"),
        results={"machine": machine, "limit": limit, "rows": rows},
        tables=[Table(title="Cutting into sentences", columns=_COLUMNS, rows=rows)],
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


if __name__ == "__main__":
    segmentation()

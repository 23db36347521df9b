"""What all scenarios share: their options, and what becomes of their rows.

A scenario is a function that is given its options, prepares, runs, and returns a `Found`. The command around
it describes the machine, prints the tables, and writes them as JSON and as Markdown.
"""

import functools
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from dragoman_bundle import BundleError
from rich.console import Console

from benchmarks.machine import describe_machine
from benchmarks.measuring import MeasurementError
from benchmarks.report import Report, Table
from dragoman_server.engine import EngineError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, kw_only=True)
class Found:
    """All that a scenario found out."""

    tables: Sequence[Table]
    facts: Mapping[str, object] = field(default_factory=dict)
    """What else goes into the JSON."""
    broken: Sequence[str] = ()
    """What should hold and does not: the exit code is 1 then."""


def scenario(*options: Decorator) -> Callable[[Callable[..., Found]], click.Command]:
    """Makes a command of a function that measures, with these options, `--json` and `--markdown`."""

    def make(measure: Callable[..., Found]) -> click.Command:
        def run(*, json_path: Path | None, markdown_path: Path | None, **given: Any) -> None:
            machine = describe_machine()
            try:
                found = measure(**given)
            except (BundleError, EngineError, MeasurementError) as error:
                raise click.ClickException(str(error)) from error
            called = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
            report = Report(command=called, machine=machine, facts=found.facts, tables=found.tables)
            report.publish(Console(), json_path=json_path, markdown_path=markdown_path)
            if found.broken:
                raise click.ClickException("; ".join(found.broken))

        written = [
            option("--json", None, "Write the figures to this file.", to="json_path", type=FILE),
            option("--markdown", None, "Write the tables to this file.", to="markdown_path", type=FILE),
        ]
        command: Callable[..., Any] = functools.update_wrapper(run, measure)
        for add in reversed([*options, *written]):
            command = add(command)
        return click.command(command)

    return make


FILE = click.Path(dir_okay=False, path_type=Path)


def option(name: str, default: Any, help: str, *, to: str = "", type: Any = None) -> Decorator:
    """An option whose type is its default's. Numbers are above 0, and True and False are flags."""
    names = [name, to] if to else [name]
    if isinstance(default, bool):
        return click.option(*names, is_flag=True, default=default, help=help)
    if type is None and isinstance(default, int):
        type = click.IntRange(min=1)
    elif type is None and isinstance(default, float):
        type = click.FloatRange(min=0, min_open=True)
    elif type is None and isinstance(default, Path):
        type = click.Path(path_type=Path)
    return click.option(*names, default=default, show_default=default is not None, type=type, help=help)


def several(
    name: str, default: Sequence[Any], help: str, known: Collection[str] = (), *, to: str = ""
) -> Decorator:
    """An option with commas: names among those that are `known`, or numbers above 0 like the default's."""

    def read(context: click.Context, parameter: click.Parameter, value: str) -> list[Any]:
        parts = [part for part in value.split(",") if part]
        if known:
            if unknown := [part for part in parts if part not in known]:
                raise click.BadParameter(f"there is no {unknown[0]!r}; there are {', '.join(known)}")
            return parts
        kind = type(default[0])
        try:
            numbers = [kind(part) for part in parts]
        except ValueError:
            raise click.BadParameter(f"{value!r} is not a list of numbers such as 1,5") from None
        if not numbers or min(numbers) <= 0:
            raise click.BadParameter(f"{value!r} needs numbers above 0")
        return numbers

    names = [name, to] if to else [name]
    shown = ",".join(map(str, default))
    return click.option(*names, default=shown, show_default=True, callback=read, help=help)


BUNDLE = click.option(
    "--bundle",
    default=Path("models/de-en/3"),
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Bundle to measure, NAME/VERSION in a folder of models.",
)
DEFAULT_INPUT = Path("data/multi30k/test2016.de")
"""What is translated unless the caller names another file."""
INPUT = option("--input", DEFAULT_INPUT, "Sentences to translate, one a line.", to="source", type=FILE)
LIMIT = option("--limit", None, "Take only so many sentences.", type=click.IntRange(min=1))
BEAM = option("--beam", 5, "Hypotheses kept while searching; 1 is greedy.")
THREADS = option("--threads", 2, "CPU threads of the engine.")
REPEATS = option(
    "--repeats", 5, "How often each thing is measured, in turn with the others; the median counts."
)

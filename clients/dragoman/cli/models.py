"""`dragoman models`: what a server can translate."""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dragoman.cli.failure import load, printable
from dragoman.cli.options import open_client, server_option, timeout_option
from dragoman.model import Model, Quality

MAX_WIDTH = 100_000
"""More columns than a line of any table has."""
MAX_DESCRIPTION = 120
"""Characters of what a model is good for in the list of all."""

BUNDLES = "dragoman.bundles"
"""The group of entry points that know bundles: "list", and each other one a command."""


class _BundleCommands(click.Group):
    """Subcommands that register as entry points, each loaded when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(entry_points(group=BUNDLES).names - {"list"})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = _load(cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_BundleCommands, invoke_without_command=True)
@server_option
@click.option("--from", "source", default="", metavar="LANG", help="Only models from this language.")
@click.option("--to", "target", default="", metavar="LANG", help="Only models to this language.")
@click.option("--model", metavar="NAME[/VERSION]", help="Only this model, with all there is to say of it.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON object for each model, with all there is."
)
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="List and check the bundles of a folder of models instead, without a server.",
)
@timeout_option("Most time the server may take to answer.")
@click.pass_context
def models(
    context: click.Context,
    *,
    server: str,
    source: str,
    target: str,
    model: str | None,
    as_json: bool,
    folder: Path | None,
    timeout_seconds: float,
) -> None:
    """List the models that a server serves."""
    if context.invoked_subcommand is not None:
        return
    if folder is not None:
        if as_json or source or target or model:
            raise click.UsageError("--folder lists and checks all bundles; leave the other options out")
        _list_folder(_load("list")(folder))
        return
    with open_client(server, timeout_seconds=timeout_seconds) as client:
        listed = client.models(source=source, target=target)
    if model:
        listed = [each for each in listed if model in (str(each.reference), each.reference.name)]
    if as_json:
        for each in listed:
            click.echo(json.dumps(asdict(each), ensure_ascii=False))
    elif listed:
        for table in map(_facts, listed) if model else [_table(listed)]:
            console_of_lines().print(table)
    else:
        click.echo("The server has no such model.", err=True)


def console_of_lines(*, highlight: bool = True) -> Console:
    """A console for tables; what reads a pipe reads lines."""
    console = Console(highlight=highlight)
    if not console.is_terminal:
        console.width = MAX_WIDTH
    return console


def _list_folder(found: Iterator[tuple[str, str]]) -> None:
    """A line for each bundle; exit code 1 where one does not check out, or there is none."""
    problems = []
    for key, problem in found:
        click.echo(f"{key}  {problem or 'ok'}")
        problems.append(problem)
    if not problems:
        raise click.ClickException("there is no bundle at NAME/VERSION in it")
    if any(problems):
        raise click.exceptions.Exit(1)


def _load(name: str) -> Any:
    """The object that an entry point names. Raises ClickException where it, or its extra, is not
    installed."""
    entry_point: EntryPoint | None = next(iter(entry_points(group=BUNDLES, name=name)), None)
    if entry_point is None:
        raise click.ClickException("this installation knows no bundles: run `make install` in the checkout")
    return load(entry_point, "what knows bundles")


def _table(models: list[Model]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("MODEL", "FROM", "TO", "SIZE", "RUNS ON"):
        table.add_column(heading, no_wrap=True)
    for heading in ("QUALITY", "GOOD FOR"):
        table.add_column(heading, overflow="fold")
    for model in models:
        cells = (
            str(model.reference),
            model.source_language,
            f"{len(model.languages)} languages" if model.languages else model.target_language,
            f"{model.parameters / 1e6:.1f} M",
            _runs_on(model),
            next((f"{each.metric} {each.score:.1f} on {each.test_set}" for each in _measured(model)), ""),
            textwrap.shorten(model.description, MAX_DESCRIPTION, placeholder=" …"),
        )
        # As text: rich would read [red] as a style.
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _facts(model: Model) -> Table:
    """Everything of one model that a person may want to read."""
    facts = {
        "model": str(model.reference),
        "languages": ", ".join(model.languages) or f"{model.source_language} to {model.target_language}",
        "good for": model.description,
        "family": f"{model.architecture}, {model.parameters:,} parameters",
        "runs on": _runs_on(model),
        "sentences": f"of at most {model.max_source_tokens} tokens; a longer one is split",
        "quality": "\n".join(map(_quality, _measured(model))),
        "licence": model.licence,
        "credit": model.credit,
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, fact in facts.items():
        table.add_row(Text(name, style="bold"), Text(printable(fact or "not stated")))
    return table


def _runs_on(model: Model) -> str:
    providers = sorted({name.removesuffix("ExecutionProvider") for name in model.providers.values()})
    return ", ".join([model.precision, *providers]) if model.loaded else "not loaded"


def _measured(model: Model) -> list[Quality]:
    """The measurements in the precision in use, those of a model that is not loaded in any."""
    return [each for each in model.quality if not model.loaded or each.precision == model.precision]


def _quality(quality: Quality) -> str:
    made = [f"{quality.metric} {quality.score:.1f} on {quality.test_set}", f"beam {quality.beam_size}"]
    if quality.shortlist is not None:
        made.append("with shortlist" if quality.shortlist else "without shortlist")
    if quality.length_penalty is not None:
        made.append(f"length penalty {quality.length_penalty:g}")
    return ", ".join([*made, quality.precision])

"""`dragoman models`: what a server can translate."""

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table

from dragoman.cli.options import open_client, server_option, timeout_option
from dragoman.model import Model

MAX_WIDTH = 100_000
"""More columns than a line of any table has."""


@click.command()
@server_option
@click.option("--from", "source", default="", metavar="LANG", help="Only models from this language.")
@click.option("--to", "target", default="", metavar="LANG", help="Only models to this language.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON object for each model, with all there is."
)
@timeout_option("Most time the server may take to answer.")
def models(*, server: str, source: str, target: str, as_json: bool, timeout_seconds: float) -> None:
    """List the models that a server serves."""
    with open_client(server, timeout_seconds=timeout_seconds) as client:
        listed = client.models(source=source, target=target)
    if as_json:
        for model in listed:
            click.echo(json.dumps(asdict(model), ensure_ascii=False))
    elif listed:
        console = Console()
        # What reads a pipe reads lines.
        if not console.is_terminal:
            console.width = MAX_WIDTH
        console.print(_table(listed))
    else:
        click.echo("The server has no such model.", err=True)


def _table(models: list[Model]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("MODEL", "FROM", "TO", "FAMILY"):
        table.add_column(heading, no_wrap=True)
    table.add_column("PARAMETERS", justify="right", no_wrap=True)
    for heading in ("PRECISION", "RUNS ON"):
        table.add_column(heading, no_wrap=True)
    table.add_column("QUALITY", overflow="fold")
    for model in models:
        table.add_row(
            str(model.reference),
            model.source_language,
            model.target_language,
            model.architecture,
            f"{model.parameters / 1e6:.1f} M",
            model.precision,
            ", ".join(
                sorted({provider.removesuffix("ExecutionProvider") for provider in model.providers.values()})
            ),
            _quality(model),
        )
    return table


def _quality(model: Model) -> str:
    """What was measured in the precision in use: the scores of each measurement, and how it was made."""
    scores: dict[str, list[str]] = {}
    for quality in model.quality:
        if quality.precision != model.precision:
            continue
        made = [f"on {quality.test_set}, beam {quality.beam_size}"]
        if quality.shortlist is not None:
            made.append("with shortlist" if quality.shortlist else "without shortlist")
        if quality.length_penalty is not None:
            made.append(f"length penalty {quality.length_penalty:g}")
        scores.setdefault(", ".join(made), []).append(f"{quality.metric} {quality.score:.1f}")
    return "; ".join(f"{', '.join(each)} {how}" for how, each in scores.items())

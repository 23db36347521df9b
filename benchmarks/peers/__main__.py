"""`python -m benchmarks.peers`: options in, tables out."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import click
from click.core import ParameterSource
from dragoman_bundle import BundleError, open_bundle
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.machine import describe_machine
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    input_option,
    json_option,
    limit_option,
    markdown_option,
    repeats_option,
    threads_option,
)
from benchmarks.peers.comparison import compare_toolkits
from benchmarks.peers.same_weights.comparison import MEASURED, SERVED, SPEED, compare_on_same_weights
from benchmarks.peers.same_weights.marian_models import SIZES
from benchmarks.peers.toolkits import TOOLKITS
from benchmarks.report import Report

Names = Callable[[click.Context, click.Parameter, str], list[str]]


def _names_among(known: Collection[str], what: str) -> Names:
    """Reads names with commas between."""

    def read(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
        names = [name for name in value.split(",") if name]
        if unknown := [name for name in names if name not in known]:
            raise click.BadParameter(f"there is no {what} {unknown[0]!r}; there are {', '.join(known)}")
        return names

    return read


def _refuse(parameters: Iterable[str], reason: str) -> None:
    """Raises UsageError where one of these is given: it would change nothing."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in parameters and (
            context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        ):
            option = "/".join((*parameter.opts, *parameter.secondary_opts))
            raise click.UsageError(f"{option} changes nothing {reason}")


@click.command(context_settings=CONTEXT)
@bundle_option
@input_option
@limit_option
@beam_option
@threads_option
@click.option(
    "--peers",
    default=",".join(TOOLKITS),
    show_default=True,
    callback=_names_among(TOOLKITS, "peer"),
    help="What to compare with. Each is installed by pip into .venv-peers/ when it is first used.",
)
@click.option(
    "--same-weights",
    default="",
    callback=_names_among(SIZES, "size"),
    help="Instead of all that, compare with CTranslate2 on checkpoints of these sizes, with random weights: "
    f"any of {', '.join(SIZES)}, with commas between.",
)
@click.option(
    "--measure",
    "what",
    default=SPEED,
    show_default=True,
    type=click.Choice(MEASURED),
    help="With --same-weights: target tokens a second of a file and of sentences alone, beams 4 and 1; "
    "latency of callers at 25, 50 and 75% of the load that our server bears, beam 4; or memory of both "
    "servers, of one thread and of --threads, beam 4.",
)
@click.option(
    "--shortlist",
    is_flag=True,
    help="With --same-weights, both decode with a shortlist of the same lexicon, a random one.",
)
@click.option(
    "--seconds",
    default=15.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="With --measure served, length of one run at one load.",
)
@click.option(
    "--models",
    default=Path("runs/same-weights"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="With --same-weights, where the checkpoints are kept.",
)
@click.option(
    "--export/--no-export",
    "exports",
    default=True,
    help="With --same-weights, export them anew, or measure the bundles that a run before has exported.",
)
@repeats_option
@json_option
@markdown_option
def peers(
    *,
    bundle: Path,
    source: Path,
    limit: int | None,
    beam: int,
    threads: int,
    peers: list[str],
    same_weights: list[str],
    what: str,
    shortlist: bool,
    seconds: float,
    models: Path,
    exports: bool,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Compare the engine with other toolkits: the same input, beam and number of threads, in turn.

    The toolkits get models with random weights and of a vocabulary as large as the bundle's; each is made to
    decode as many tokens a sentence as the engine does on average.

    \b
      python -m benchmarks.peers --bundle models/de-en/1 --json peers.json --markdown peers.md
      python -m benchmarks.peers --bundle models/de-en/1 --peers ctranslate2 --limit 100
      python -m benchmarks.peers --same-weights small,base,opus --limit 120
      python -m benchmarks.peers --same-weights opus --limit 120 --shortlist
      python -m benchmarks.peers --same-weights small --measure served --threads 1
    """
    if not same_weights:
        _refuse(("what", "shortlist", "seconds", "models", "exports"), "without --same-weights")
    else:
        _refuse(("bundle", "beam", "peers"), "with --same-weights")
        if what != SERVED:
            _refuse(("seconds",), "without --measure served")
    machine = describe_machine()
    corpus = read_corpus(source, None, limit)
    if same_weights:
        found, tables = compare_on_same_weights(
            what,
            same_weights,
            corpus,
            source,
            models,
            threads=threads,
            repeats=repeats,
            seconds=seconds,
            exports=exports,
            shortlist=shortlist,
        )
    else:
        try:
            opened = open_bundle(bundle)
        except BundleError as error:
            raise click.ClickException(str(error)) from error
        found, tables = compare_toolkits(opened, corpus, peers, beam=beam, threads=threads, repeats=repeats)
    Report(
        command=command_line("benchmarks.peers"), results={"machine": machine, **found}, tables=tables
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


if __name__ == "__main__":
    peers()

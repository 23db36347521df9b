"""The options that the benchmarks share."""

import shlex
import sys
from pathlib import Path

import click

CONTEXT = {"help_option_names": ["-h", "--help"]}
"""Settings of every command."""

DEFAULT_INPUT = Path("data/multi30k/test2016.de")
"""What is translated unless the caller names another file."""
_FILE = click.Path(dir_okay=False, path_type=Path)

bundle_option = click.option(
    "--bundle",
    default=Path("models/de-en/1"),
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Bundle to measure, NAME/VERSION in a folder of models.",
)
input_option = click.option(
    "--input",
    "source",
    default=DEFAULT_INPUT,
    show_default=True,
    type=_FILE,
    help="Sentences to translate, one a line.",
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), help="Take only so many sentences.  [default: the whole file]"
)
beam_option = click.option(
    "--beam",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="Hypotheses kept while searching; 1 is greedy.",
)
threads_option = click.option(
    "--threads", default=2, show_default=True, type=click.IntRange(min=1), help="CPU threads of the engine."
)
json_option = click.option("--json", "json_path", type=_FILE, help="Write the figures to this file.")
repeats_option = click.option(
    "--repeats",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="How often each thing is measured, in turn with the others; the median counts.",
)
markdown_option = click.option(
    "--markdown", "markdown_path", type=_FILE, help="Write the tables to this file."
)


def whole_numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """Reads "1,2,5" from the command line."""
    try:
        numbers = [int(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers such as 1,5") from None
    if min(numbers) < 1:
        raise click.BadParameter(f"{min(numbers)} is too small; the least is 1")
    return numbers


def command_line(module: str) -> str:
    """How the running command was called."""
    return shlex.join(["python", "-m", module, *sys.argv[1:]])

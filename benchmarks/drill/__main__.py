"""`python -m benchmarks.drill NAME`: a drill against real servers; exit code 1 where a promise is broken."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from dragoman_bundle import BundleError, open_bundle
from rich.console import Console

from benchmarks.drill.drill import Drill
from benchmarks.options import CONTEXT, bundle_option, command_line, json_option

DRILLS = {
    "soak": "calls and streams of all kinds, each accounted for, and memory",
    "reload": "models that come, go and come damaged under traffic",
    "overload": "far more calls than a server has room for",
    "kills": "a SIGKILL each second to one of three servers under one job",
    "freeze": "one of three servers under one job that hangs, and says nothing",
    "fuzz": "nonsense at a server's ports beside ordinary callers",
    "bundles": "bundles with flipped bytes, files cut, emptied and missing",
    "disk": "a job whose disk is full at whichever byte",
}
OF_JOBS = ("kills", "freeze", "disk")
"""Those in a folder of their own."""


@click.command(
    context_settings=CONTEXT,
    epilog="\b\n" + "\n".join(f"{name:9} {text}" for name, text in DRILLS.items()),
)
@click.argument("name", type=click.Choice(list(DRILLS)))
@bundle_option
@click.option(
    "--seconds",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=1),
    help="How long there are faults, about; starting and stopping come on top.",
)
@click.option(
    "--lines", "num_lines", type=click.IntRange(min=1), help="Of kills and freeze: lines of the job."
)
@json_option
def main(name: str, bundle: Path, seconds: float, num_lines: int | None, json_path: Path | None) -> None:
    """Put servers of a bundle through a fault, on loopback, and check that every promise holds.

    Says what it checked and what it counted. Exit code 1: a promise is broken.
    """
    try:
        manifest = open_bundle(bundle).manifest
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    console = Console(highlight=False)
    run: Callable[..., None] = import_module(f"benchmarks.drill.{_module(name)}").run
    with _signals_that_raise(), TemporaryDirectory(prefix="dragoman-drill-") as folder:
        models = Path(folder) / "models"
        (models / manifest.name).mkdir(parents=True)
        (models / manifest.key).symlink_to(bundle.resolve(), target_is_directory=True)
        drill = Drill(
            models=models,
            model=manifest.key,
            source=manifest.source_language,
            target=manifest.target_language,
            seconds=seconds,
            folder=Path(folder),
            console=console,
        )
        if name in ("kills", "freeze"):
            run(drill, num_lines=num_lines)
        else:
            run(drill)
    if json_path is not None:
        checks = [vars(check) for check in drill.checks]
        results = {"command": command_line("benchmarks.drill"), "figures": drill.figures, "checks": checks}
        json_path.write_text(json.dumps(results, indent=1) + "\n")
    broken = [check for check in drill.checks if not check.holds]
    console.print(f"{len(drill.checks)} promises checked, {len(broken)} broken")
    sys.exit(0 if drill.holds else 1)


def _module(name: str) -> str:
    return f"jobs.{name}" if name in OF_JOBS else name


@contextmanager
def _signals_that_raise() -> Iterator[None]:
    """However the drill is ended, no server is left behind."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


if __name__ == "__main__":
    main()

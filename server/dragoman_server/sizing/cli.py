"""`dragoman size`: options in, a table out. Only wiring."""

import json
from pathlib import Path

import click

from dragoman_server.config import Precision


@click.command(context_settings={"show_default": True})
@click.option(
    "--bundle",
    "bundle_path",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The bundle that is to be served.",
)
@click.option(
    "--load",
    "load_path",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Texts as callers send them, one a line, in UTF-8. Each is a call of its own.",
)
@click.option(
    "--per-second",
    required=True,
    type=click.FloatRange(min=0, min_open=True),
    help="How many texts come in a second, at the busiest time; at random moments.",
)
@click.option(
    "--p99-ms",
    default=1000.0,
    type=click.FloatRange(min=0, min_open=True),
    help="Milliseconds in which 99 of 100 texts are to be answered.",
)
@click.option(
    "--max-share",
    default=0.75,
    type=click.FloatRange(min=0, max=0.95, min_open=True),
    help="Largest share of their capacity that servers are to be loaded to.",
)
@click.option(
    "--cores", type=click.IntRange(min=1), help="Cores of each server.  [default: all of this machine]"
)
@click.option("--beam", type=click.IntRange(min=1), help="Beam size.  [default: the bundle's]")
@click.option(
    "--precision", default="auto", type=click.Choice(["auto", "fp32", "int8"]), help="Which graphs run."
)
@click.option(
    "--seconds",
    default=30.0,
    type=click.FloatRange(min=1, max=3600),
    help="How long is measured, about.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def size(
    *,
    bundle_path: Path,
    load_path: Path,
    per_second: float,
    p99_ms: float,
    max_share: float,
    cores: int | None,
    beam: int | None,
    precision: Precision,
    seconds: float,
    as_json: bool,
) -> None:
    """Say how many servers a load takes: cores, memory, what callers wait, and what to set in deploy/.

    An engine of the bundle and a real server are measured for some seconds, with texts of the load. What
    comes of it under the load is then worked out: the engine's own scheduler runs in virtual time. So use a
    machine like those that will serve, with nothing else to do. Linux only, and for servers on the CPU.

    \b
      dragoman size --bundle models/de-en/1 --load texts.de --per-second 200 --p99-ms 500 --cores 2
    """
    # Loaded here: `dragoman size --help` needs neither onnxruntime nor grpc.
    from dragoman_bundle import open_bundle

    from dragoman_server.engine.pool.processors import count_processors
    from dragoman_server.sizing import table
    from dragoman_server.sizing.measuring import measure
    from dragoman_server.sizing.plan import Objective, make_plan

    available = count_processors()
    if cores is not None and cores > available:
        raise click.BadParameter(
            f"this machine has {available}; measure on one like those that will serve", param_hint="'--cores'"
        )
    lines = [line for line in load_path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines:
        raise click.BadParameter(f"{load_path} has no text", param_hint="'--load'")
    objective = Objective(per_second=per_second, p99_seconds=p99_ms / 1000, max_share=max_share)

    def tell(what: str) -> None:
        click.echo(f"measuring {what}", err=True)

    measured = measure(
        open_bundle(bundle_path),
        lines,
        cores=cores or available,
        beam_size=beam,
        precision=precision,
        seconds=seconds,
        on_progress=tell,
    )
    plan = make_plan(measured, objective, cores=cores or available)
    if as_json:
        click.echo(json.dumps(table.as_json(plan, measured), indent=2))
    else:
        click.echo(table.as_text(plan, objective, measured))

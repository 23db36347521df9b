"""`dragoman export` and `dragoman record-quality`: wiring alone."""

from pathlib import Path

import click

from dragoman_bundle.manifest import PRECISIONS


def _parse_precisions(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """`fp32,int8` to its parts, each once, in the order of the manifest's names."""
    given = {part.strip() for part in value.split(",") if part.strip()}
    if unknown := sorted(given - set(PRECISIONS)):
        raise click.BadParameter(f"{unknown[0]!r} is unknown; known are {', '.join(PRECISIONS)}")
    if not given:
        raise click.BadParameter(f"give at least one of {', '.join(PRECISIONS)}")
    return tuple(precision for precision in PRECISIONS if precision in given)


@click.command()
@click.argument(
    "checkpoint_path", metavar="CHECKPOINT", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--out",
    required=True,
    metavar="models/NAME/VERSION",
    type=click.Path(file_okay=False, path_type=Path),
    help="The bundle's folder; its last two parts are the model's name and version.",
)
@click.option(
    "--precisions",
    default="fp32,int8",
    show_default=True,
    callback=_parse_precisions,
    help="Which graphs to make: fp32, int8 (for CPUs), fp16 (for GPUs), with commas between.",
)
@click.option("--force", is_flag=True, help="Replace a bundle that is already there.")
def export(checkpoint_path: Path, out: Path, precisions: tuple[str, ...], force: bool) -> None:
    """Turn a checkpoint into a bundle that can be served.

    The graphs must decode as PyTorch does, or nothing is written.

    \b
    Examples:
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/1
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/2 --precisions int8,fp16
    """
    from rich.console import Console

    from dragoman_export.exporter import export_bundle
    from dragoman_training.checkpoint import load_checkpoint

    out = out.absolute()
    console = Console(stderr=True, highlight=False)
    try:
        checkpoint = load_checkpoint(checkpoint_path)
        with console.status("") as status:

            def report(line: str) -> None:
                status.update(line)
                console.print(line)

            bundle = export_bundle(
                checkpoint,
                out,
                name=out.parent.name,
                version=out.name,
                precisions=precisions,
                overwrite=force,
                report=report,
            )
    except KeyboardInterrupt:
        click.echo("Stopped; nothing was written.", err=True)
        raise SystemExit(130) from None
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for file, entry in bundle.manifest.files.items():
        click.echo(f"{entry.size / 1e6:9.3f} MB  {file}")
    total = sum(entry.size for entry in bundle.manifest.files.values())
    click.echo(f"{total / 1e6:9.3f} MB  {bundle.path}")


@click.command("record-quality")
@click.argument("bundle", metavar="BUNDLE", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument(
    "results", metavar="RESULTS.json", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--test-set", required=True, metavar="NAME", help="What was translated, such as multi30k/test2016."
)
@click.option("--precision", required=True, type=click.Choice(PRECISIONS), help="Which graphs translated it.")
def record_quality(bundle: Path, results: Path, test_set: str, precision: str) -> None:
    """Write what `dragoman evaluate --json` measured into a bundle's manifest and card.

    \b
    Example:
      dragoman evaluate --bundle models/de-en/1 --precision int8 \\
        --source val.de --reference val.en --json > val.json
      dragoman record-quality models/de-en/1 val.json --test-set tatoeba-de-en/val --precision int8
    """
    from dragoman_export.quality import read_results, record_qualities

    try:
        measured = read_results(results, test_set=test_set, precision=precision)
        record_qualities(bundle, measured)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for quality in measured:
        click.echo(
            f"{quality.test_set}, {quality.precision}, beam {quality.beam_size}: "
            f"{quality.metric} {quality.score:.2f}"
        )

"""`dragoman export` and `dragoman record-quality`: wiring alone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from dragoman_bundle.manifest import PRECISIONS

from dragoman_export.foreign.options import Foreign, foreign_options
from dragoman_export.shortlist.request import ShortlistRequest, shortlist_options

if TYPE_CHECKING:
    from dragoman_bundle.bundle import Bundle

    from dragoman_export.parity.sentences import CheckText


def _parse_precisions(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """`fp32,int8` to its parts, each once, in the order of the manifest's names."""
    precisions = {part.strip() for part in value.split(",") if part.strip()}
    if unknown := sorted(precisions - set(PRECISIONS)):
        raise click.BadParameter(f"{unknown[0]!r} is unknown; known are {', '.join(PRECISIONS)}")
    if not precisions:
        raise click.BadParameter(f"give at least one of {', '.join(PRECISIONS)}")
    return tuple(precision for precision in PRECISIONS if precision in precisions)


def _check_folder(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    """A folder that says the model's name and version itself, not by where the command is run."""
    if not value.parent.name or not any(character.isdigit() for character in value.name):
        raise click.BadParameter(
            f"{value} does not end in NAME/VERSION, a version having a number: "
            f"take models/{value.name or 'NAME'}/1, for example"
        )
    return value.absolute()


@click.command()
@click.argument(
    "paths",
    metavar="[CHECKPOINT]...",
    nargs=-1,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@foreign_options
@click.option(
    "--out",
    required=True,
    metavar="models/NAME/VERSION",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_check_folder,
    help="The bundle's folder; its last two parts are the model's name and version.",
)
@click.option(
    "--precisions",
    default="fp32,int8",
    show_default=True,
    callback=_parse_precisions,
    help="Which graphs to make: fp32, int8 (for CPUs), fp16 (for GPUs), with commas between.",
)
@shortlist_options
@click.option(
    "--recipe-folder",
    type=click.Path(path_type=Path),
    help="Where the recipe's relative paths start now.  [default: where they did in training, which the "
    "checkpoint remembers, or training/recipes]",
)
@click.option(
    "--sample-pairs",
    default=500_000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Training pairs that shortlist and alignments are learnt from; of a larger corpus so many, evenly "
    "spread.",
)
@click.option(
    "--check-text",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Source sentences, one a line, on which the graphs of lower precisions are held against PyTorch.  "
    "[default: those of the training corpus or --shortlist-text, or else samples of the model's own]",
)
@click.option(
    "--max-memory",
    metavar="GB",
    type=click.FloatRange(min=0, min_open=True),
    help="Refuse a checkpoint whose export would take more.  [default: what is available]",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads of PyTorch and onnxruntime.  [default: OMP_NUM_THREADS, or the processors "
    "that this process may use, at most 4]",
)
@click.option("--force", is_flag=True, help="Replace a bundle that is already there.")
def export(
    *,
    paths: tuple[Path, ...],
    foreign: Foreign,
    out: Path,
    precisions: tuple[str, ...],
    shortlist: ShortlistRequest,
    recipe_folder: Path | None,
    sample_pairs: int,
    check_text: Path | None,
    max_memory: float | None,
    threads: int | None,
    force: bool,
) -> None:
    """Turn a checkpoint into a bundle that can be served, or several into one of an ensemble.

    The graphs must decode as PyTorch does, or nothing is written. The members of an ensemble are of any
    families, with one vocabulary; the recipe of the first has the decoding and what the card says.

    \b
    Examples:
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/2
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/3 --precisions int8,fp16
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/4 --shortlist-from runs/align
      dragoman export runs/luong/best.safetensors runs/transformer/best.safetensors --out models/both/1
      dragoman export --from-hf Helsinki-NLP/opus-mt-de-en --out models/opus-de-en/1
      dragoman export --from-hf Helsinki-NLP/opus-mt-en-ROMANCE --out models/en-fr/1 \\
        --target-language fr --language-token '>>fr<<'
      dragoman export --from-ctranslate2 translate-en_de-1_3.argosmodel --out models/argos-en-de/1 \\
        --shortlist-text some.en some.de
    """
    if bool(paths) == foreign.is_given:
        raise click.UsageError("give either a CHECKPOINT, --from-hf or --from-ctranslate2")
    foreign.check()
    shortlist.check(is_foreign=foreign.is_given)
    # Threads that wait in a loop would take the cores from those that work, and from whatever else runs.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch
    from rich.console import Console

    from dragoman_export.machine import available_memory, count_threads
    from dragoman_export.memory import check_memory
    from dragoman_export.parity.sentences import CheckText

    console = Console(stderr=True, highlight=False)
    torch.set_num_threads(threads or count_threads())
    try:
        available = available_memory() if max_memory is None else int(max_memory * 1e9)
        check_memory([*paths, *foreign.local_paths()], available)
        text = None if check_text is None else CheckText.read(check_text)
        with console.status("") as status:

            def report(line: str) -> None:
                status.update(line)
                # What reads a pipe reads lines, of any length.
                console.print(line, soft_wrap=True)

            report("reading the checkpoint")
            if foreign.is_given:
                bundle = _export_foreign(
                    foreign,
                    out,
                    precisions=precisions,
                    overwrite=force,
                    shortlist=shortlist,
                    check_text=text,
                    available_memory=available,
                    report=report,
                )
            else:
                bundle = _export_checkpoints(
                    paths,
                    out,
                    precisions=precisions,
                    overwrite=force,
                    shortlist=shortlist,
                    recipe_folder=recipe_folder,
                    sample_pairs=sample_pairs,
                    check_text=text,
                    report=report,
                )
    except KeyboardInterrupt:
        click.echo("Stopped; nothing was written.", err=True)
        raise SystemExit(130) from None
    except OSError as error:
        raise click.ClickException(f"{error}; nothing was written") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    for file, entry in bundle.manifest.files.items():
        click.echo(f"{entry.size / 1e6:9.3f} MB  {file}")
    total = sum(entry.size for entry in bundle.manifest.files.values())
    click.echo(f"{total / 1e6:9.3f} MB  {bundle.path}")


def _export_foreign(
    foreign: Foreign,
    out: Path,
    *,
    precisions: tuple[str, ...],
    overwrite: bool,
    shortlist: ShortlistRequest,
    check_text: "CheckText | None",
    available_memory: int | None,
    report: Callable[[str], None],
) -> "Bundle":
    from dragoman_export.exporter import export_foreign

    return export_foreign(
        foreign.load(available_memory),
        out,
        name=out.parent.name,
        version=out.name,
        precisions=precisions,
        overwrite=overwrite,
        shortlist_files=shortlist.files(),
        shortlist_options=shortlist.options(),
        check_text=check_text,
        report=report,
    )


def _export_checkpoints(
    paths: tuple[Path, ...],
    out: Path,
    *,
    precisions: tuple[str, ...],
    overwrite: bool,
    shortlist: ShortlistRequest,
    recipe_folder: Path | None,
    sample_pairs: int,
    check_text: "CheckText | None",
    report: Callable[[str], None],
) -> "Bundle":
    from dragoman_export.corpus import corpus_for_export, learns_shortlist
    from dragoman_export.exporter import export_bundle
    from dragoman_training.decoding.members import load_members

    members, wanted = load_members(paths), shortlist.is_wanted
    has_shortlist = not shortlist.has_files and learns_shortlist(members, wanted, report)
    corpus = corpus_for_export(
        members,
        recipe_folder,
        max_pairs=sample_pairs,
        has_shortlist=has_shortlist,
        is_needed=wanted is True and not shortlist.has_files,
        has_check_text=check_text is not None,
        report=report,
    )
    return export_bundle(
        members,
        out,
        name=out.parent.name,
        version=out.name,
        precisions=precisions,
        overwrite=overwrite,
        corpus=corpus,
        shortlist_files=shortlist.files(),
        shortlist_options=shortlist.options() if has_shortlist or shortlist.has_files else None,
        check_text=check_text,
        shortlist_aligner=shortlist.shortlist_aligner,
        report=report,
    )


@click.command("record-quality")
@click.argument("bundle", metavar="BUNDLE", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument(
    "results", metavar="RESULTS.json", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--test-set", required=True, metavar="NAME", help="What was translated, such as multi30k/test2016."
)
def record_quality(bundle: Path, results: Path, test_set: str) -> None:
    """Write what `dragoman evaluate --json` measured of a bundle into its manifest and card.

    Precision, shortlist, beam and length penalty are those that were measured. A server may go on serving the
    bundle, and shows the quality when it is started again.

    \b
    Example:
      dragoman evaluate --bundle models/de-en/1 --precision int8 \\
        --source val.de --reference val.en --json > val.json
      dragoman record-quality models/de-en/1 val.json --test-set tatoeba-de-en/val
    """
    from dragoman_export.card.quality import record_results

    try:
        measured = record_results(bundle, results, test_set=test_set)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for quality in measured:
        click.echo(
            f"{quality.test_set}, {quality.precision}, beam {quality.beam_size}: "
            f"{quality.metric} {quality.score:.2f}"
        )

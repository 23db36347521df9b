"""`dragoman export` and `dragoman record-quality`: wiring alone."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman_export.options import (
    FILE,
    FOLDER,
    NEW_FOLDER,
    ExportRequest,
    Report,
    check_folder,
    export_options,
)

if TYPE_CHECKING:
    from dragoman_bundle.bundle import Bundle


@click.command()
@click.argument("paths", metavar="CHECKPOINT...", nargs=-1, required=True, type=FILE)
@click.option(
    "--out",
    required=True,
    metavar="models/NAME/VERSION",
    type=NEW_FOLDER,
    callback=check_folder,
    help="The bundle's folder; its last two parts are the model's name and version.",
)
@export_options("fp32,int8")
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
def export(
    *,
    paths: tuple[Path, ...],
    out: Path,
    request: ExportRequest,
    recipe_folder: Path | None,
    sample_pairs: int,
) -> None:
    """Turn a checkpoint into a bundle that can be served, or several into one of an ensemble.

    The graphs must decode as PyTorch does, or nothing is written. The members of an ensemble are of any
    families, with one vocabulary; the recipe of the first has the decoding and what the card says. The
    confidence of translations is fitted to its validation set. Models that others trained come by `dragoman
    get`.

    \b
    Examples:
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/3
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/4 --precisions int8,fp16
      dragoman export runs/tatoeba-de-en/best.safetensors --out models/de-en/5 --shortlist-from runs/align
      dragoman export runs/luong/best.safetensors runs/transformer/best.safetensors --out models/both/1
    """
    request.shortlist.check(is_foreign=False)

    def make(report: Report) -> "Bundle":
        import torch

        from dragoman_export.assembly import WITH_PYTORCH, check_memory
        from dragoman_export.exporter import calibrated, corpus_for_export, export_bundle
        from dragoman_export.parity.onnx_stepper import count_threads
        from dragoman_training.checkpoint import load_members

        torch.set_num_threads(count_threads())
        check_memory(paths, request.available_memory(), WITH_PYTORCH)
        report("reading the checkpoint")
        check_text, shortlist = request.text(), request.shortlist
        members, has_text = load_members(paths), check_text is not None
        corpus, has_shortlist = corpus_for_export(
            members, shortlist, recipe_folder, max_pairs=sample_pairs, has_check_text=has_text, report=report
        )
        bundle = export_bundle(
            members,
            out,
            precisions=request.precisions,
            overwrite=request.force,
            corpus=corpus,
            shortlist=shortlist if has_shortlist or shortlist.has_files else None,
            check_text=check_text,
            report=report,
        )
        return calibrated(bundle, members[0], recipe_folder, report)

    request.run(make)


@click.command("record-quality")
@click.argument("bundle", metavar="BUNDLE", type=FOLDER)
@click.argument("results", metavar="RESULTS.json", type=FILE)
@click.option(
    "--test-set", required=True, metavar="NAME", help="What was translated, such as multi30k/test2016."
)
def record_quality(bundle: Path, results: Path, test_set: str) -> None:
    """Write what `dragoman evaluate --json` measured of a bundle into its manifest and card.

    Precision, shortlist, beam and length penalty are those that were measured. A server may go on serving the
    bundle, and shows the quality when it is started again.

    \b
    Example:
      dragoman evaluate --bundle models/de-en/3 --precision int8 \\
        --source val.de --reference val.en --json > val.json
      dragoman record-quality models/de-en/3 val.json --test-set tatoeba-de-en/val
    """
    from dragoman_export.model_card import record_results

    try:
        measured = record_results(bundle, results, test_set=test_set)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for quality in measured:
        click.echo(
            f"{quality.test_set}, {quality.precision}, beam {quality.beam_size}: "
            f"{quality.metric} {quality.score:.2f}"
        )

"""`dragoman study`: from trained checkpoints to the page that compares them."""

from functools import partial
from pathlib import Path

import click

from dragoman_training.time_left import progress_lines

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings={"show_default": True})
@click.argument("checkpoints", metavar="[LABEL=]CKPT...", nargs=-1, required=True)
@click.option("--source", required=True, type=EXISTING_FILE, help="The test set: one sentence per line.")
@click.option("--reference", required=True, type=EXISTING_FILE, help="Its translation, line by line.")
@click.option(
    "--out",
    required=True,
    metavar="PAGE.md",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write, such as runs/attention.md; one that is there is replaced. Its figures go to the "
    "folder `figures` beside it, as PAGE-NAME.svg and .png.",
)
@click.option(
    "--sentences",
    metavar="LINE,...",
    help="Lines of the test set, from 1, that heat maps are drawn of.  [default: three, by length]",
)
@click.option(
    "--beam",
    "beam_size",
    type=click.IntRange(min=1),
    default=5,
    help="Hypotheses kept while searching; 1 is greedy.",
)
@click.option(
    "--recipe-folder",
    type=click.Path(path_type=Path),
    help="Where the recipes' relative paths start now.  [default: where they did in training, as each "
    "checkpoint remembers, or training/recipes]",
)
@click.option("--device", default="auto", help="cpu, cuda, cuda:1, …; auto takes a GPU.")
def study(
    *,
    checkpoints: tuple[str, ...],
    source: Path,
    reference: Path,
    out: Path,
    sentences: str | None,
    beam_size: int,
    recipe_folder: Path | None,
    device: str,
) -> None:
    """Compare what trained models do with a test set, on one page with pictures.

    BLEU by source length, attention heat maps of the same sentences, what local-p attention predicts, and
    training curves. A model is called after its recipe unless a LABEL is given.

    \b
    Example:
      dragoman study runs/multi30k-plain/best.safetensors runs/multi30k-luong/best.safetensors \\
        --source data/multi30k/test2016.de --reference data/multi30k/test2016.en --out runs/attention.md
    """
    from dragoman_training.classics.study import cut_buckets, examine, labelled_checkpoints, read_study_set
    from dragoman_training.classics.study_page import write_page
    from dragoman_training.device import choose_device

    paths = labelled_checkpoints(checkpoints)
    test_set = read_study_set(source, reference, sentences)
    where = choose_device(device)
    findings = [
        examine(
            label,
            path,
            test_set,
            beam_size=beam_size,
            recipe_folder=recipe_folder,
            device=where,
            report=progress_lines(len(test_set.sources), label, "sentences", partial(click.echo, err=True)),
        )
        for label, path in paths.items()
    ]
    write_page(out, findings, test_set, cut_buckets(test_set))
    click.echo(f"Written to {out}; its figures are in {out.parent / 'figures'}.")

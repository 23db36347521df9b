"""`dragoman study`: from trained checkpoints to the page that compares them."""

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from dragoman_training.time_left import progress_lines

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_at_least_1 = click.IntRange(min=1)


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
@click.option("--bucket-words", type=_at_least_1, default=5, help="Source lengths in a bucket.")
@click.option(
    "--bucket-sentences",
    type=_at_least_1,
    default=30,
    help="Fewest sentences of a bucket; smaller ones are merged.",
)
@click.option(
    "--join",
    type=_at_least_1,
    default=4,
    help="Consecutive sentences that are joined to one, source and reference alike, for a column of long "
    "ones; 1 for none.",
)
@click.option(
    "--beam", "beam_size", type=_at_least_1, default=5, help="Hypotheses kept while searching; 1 is greedy."
)
@click.option(
    "--length-penalty",
    type=click.FloatRange(min=0, max=10),
    default=1.0,
    help="Length penalty, the same for every model, whatever its recipe has.",
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
    bucket_words: int,
    bucket_sentences: int,
    join: int,
    beam_size: int,
    length_penalty: float,
    recipe_folder: Path | None,
    device: str,
) -> None:
    """Compare what trained models do with a test set, on one page with plots.

    BLEU by source length, and whether a fixed vector breaks down on long sentences; attention heat maps of
    the same sentences, what local-p attention predicts, and training curves. A model is called after its
    recipe unless a LABEL is given.

    \b
    Example:
      dragoman study runs/multi30k-plain/best.safetensors runs/multi30k-luong/best.safetensors \\
        --source data/multi30k/test2016.de --reference data/multi30k/test2016.en --out runs/attention.md
    """
    from dragoman_training.classics.study.examination import examine, find_witness, with_witness
    from dragoman_training.classics.study.inputs import cut_buckets, labelled_checkpoints, read_study_set
    from dragoman_training.classics.study.page import study_page
    from dragoman_training.classics.study.plots import draw_figures
    from dragoman_training.device import choose_device

    paths = labelled_checkpoints(checkpoints)
    test_set = read_study_set(source, reference, sentences, join=join)
    buckets = cut_buckets(test_set, words=bucket_words, min_sentences=bucket_sentences)
    where = choose_device(device)
    findings = []
    for label, path in paths.items():
        findings.append(
            examine(
                label,
                path,
                test_set,
                beam_size=beam_size,
                length_penalty=length_penalty,
                recipe_folder=recipe_folder,
                device=where,
                report=_reporting(label, len(test_set.sources)),
            )
        )
    for index, finding in enumerate(findings):
        if finding.centres and (witness := find_witness(finding, findings, test_set)):
            label, report = (
                witness.label,
                _reporting(f"{witness.label} along {finding.label}", len(test_set.own)),
            )
            findings[index] = with_witness(
                finding, label, paths[label], test_set, device=where, report=report
            )
    links = draw_figures(findings, test_set, buckets, out)
    page = study_page(
        _command(), findings, buckets, test_set, links, beam_size=beam_size, length_penalty=length_penalty
    )
    out.write_text(page, encoding="utf-8")
    click.echo(f"Written to {out}; its figures are in {out.parent / 'figures'}.")


def _reporting(label: str, num_sentences: int) -> Callable[[int], None]:
    return progress_lines(num_sentences, label, "sentences", partial(click.echo, err=True))


def _command() -> str:
    """The command as it was given, one line per option."""
    context = click.get_current_context()
    options = dict(context.params)
    words = ["dragoman study", *(shlex.quote(checkpoint) for checkpoint in options.pop("checkpoints"))]
    for option in context.command.params:
        value = options.get(option.name or "")
        if isinstance(option, click.Option) and value is not None and value != option.default:
            words.append(f"{option.opts[0]} {shlex.quote(str(value))}")
    return " \\\n  ".join(words)

"""`dragoman study`: from trained checkpoints to the page that compares them."""

import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import torch

    from dragoman_training.classics.study.findings import Findings
    from dragoman_training.classics.study.inputs import StudySet

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("checkpoints", metavar="[LABEL=]CKPT...", nargs=-1, required=True)
@click.option("--source", required=True, type=EXISTING_FILE, help="The test set: one sentence per line.")
@click.option("--reference", required=True, type=EXISTING_FILE, help="Its translation, line by line.")
@click.option(
    "--out",
    required=True,
    metavar="PAGE.md",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write, such as runs/attention.md; one that is there is replaced.",
)
@click.option(
    "--figures",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where its figures go, as PAGE-NAME.svg and .png.  [default: figures, beside the page]",
)
@click.option(
    "--sentences",
    metavar="LINE,...",
    help="Lines of the test set, from 1, that heat maps are drawn of.  [default: three, by length]",
)
@click.option(
    "--bucket-words",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Source lengths in a bucket.",
)
@click.option(
    "--bucket-sentences",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Fewest sentences of a bucket; smaller ones are merged.",
)
@click.option(
    "--join",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Consecutive sentences that are joined to one, source and reference alike, for a column of long "
    "ones; 1 for none.",
)
@click.option(
    "--beam",
    "beam_size",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Hypotheses kept while searching; 1 is greedy.",
)
@click.option(
    "--length-penalty",
    type=click.FloatRange(min=0, max=10),
    default=1.0,
    show_default=True,
    help="Length penalty, the same for every model, whatever its recipe has.",
)
@click.option(
    "--recipe-folder",
    type=click.Path(path_type=Path),
    help="Where the recipes' relative paths start now.  [default: where they did in training, as each "
    "checkpoint remembers, or training/recipes]",
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1, …; auto takes a GPU.")
def study(
    *,
    checkpoints: tuple[str, ...],
    source: Path,
    reference: Path,
    out: Path,
    figures: Path | None,
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
    from dragoman_training.classics.study.buckets import cut_buckets, joined_bucket
    from dragoman_training.classics.study.inputs import labelled_checkpoints, read_study_set
    from dragoman_training.classics.study.page import FigureLinks, study_page
    from dragoman_training.classics.study.plots import (
        plot_centres,
        plot_heat_maps,
        plot_lengths,
        plot_training,
    )
    from dragoman_training.device import choose_device

    paths = labelled_checkpoints(checkpoints)
    test_set = read_study_set(source, reference, sentences, join=join)
    own_sources = test_set.sources[: len(test_set.own)]
    buckets = cut_buckets(own_sources, words=bucket_words, min_sentences=bucket_sentences)
    if join > 1:
        buckets.append(joined_bucket(test_set.sources, test_set.joined, min_sentences=bucket_sentences))
    findings = _examine(paths, test_set, beam_size, length_penalty, recipe_folder, choose_device(device))
    folder = figures or out.parent / "figures"

    def figure(name: str) -> Path:
        return folder / f"{out.stem}-{name}"

    def link(path: Path) -> str:
        return Path(os.path.relpath(path, out.parent)).as_posix()

    lengths, training = figure("lengths.svg"), figure("training.svg")
    plot_lengths(findings, buckets, lengths)
    plot_training(findings, training)
    heat_maps = []
    attentive = [finding for finding in findings if finding.examples]
    for rank, number in enumerate(test_set.examples if attentive else ()):
        heat_maps.append(figure(f"sentence-{number + 1}.png"))
        plot_heat_maps([(finding.label, finding.examples[rank]) for finding in attentive], heat_maps[-1])
    predicted = [(finding.label, finding.centres) for finding in findings if finding.centres is not None]
    if predicted:
        plot_centres(predicted, figure("local-p.png"))
    page = study_page(
        _command(),
        findings,
        buckets,
        test_set,
        FigureLinks(
            lengths=link(lengths),
            training=link(training),
            heat_maps=tuple(map(link, heat_maps)),
            centres=link(figure("local-p.png")) if predicted else None,
        ),
        beam_size=beam_size,
        length_penalty=length_penalty,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    click.echo(f"Written to {out}; its figures are in {folder}.")


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


def _examine(
    paths: dict[str, Path],
    test_set: "StudySet",
    beam_size: int,
    length_penalty: float,
    recipe_folder: Path | None,
    device: "torch.device",
) -> "list[Findings]":
    """Examines one model after the other, under a progress bar, and then local-p beside another."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from dragoman_training.classics.study.examination import examine
    from dragoman_training.classics.study.witness import find_witness, with_witness

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("sentences, left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    findings = []
    with bar:
        task = bar.add_task("", total=len(paths) * len(test_set.sources))
        for label, path in paths.items():
            bar.update(task, description=label)
            findings.append(
                examine(
                    label,
                    path,
                    test_set,
                    beam_size=beam_size,
                    length_penalty=length_penalty,
                    recipe_folder=recipe_folder,
                    device=device,
                    advance=partial(bar.advance, task),
                )
            )
        for index, finding in enumerate(findings):
            if finding.centres and (witness := find_witness(finding, findings, test_set)):
                name = f"{witness.label} along {finding.label}"
                task = bar.add_task(name, total=len(test_set.own))
                findings[index] = with_witness(
                    finding,
                    witness.label,
                    paths[witness.label],
                    test_set,
                    device=device,
                    advance=partial(bar.advance, task),
                )
    return findings

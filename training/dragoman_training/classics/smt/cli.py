"""`dragoman smt`: statistical machine translation with words or phrases."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dragoman_training.alignment import cli as aligning
from dragoman_training.alignment.cli import existing_file
from dragoman_training.alignment.links import Method
from dragoman_training.alignment.training import CHAIN
from dragoman_training.classics.smt import system as systems
from dragoman_training.classics.smt.decoder import FEATURES, SearchOptions, Weights, parse_weights
from dragoman_training.classics.smt.tuning import bootstrap, tune_system
from dragoman_training.data.files import read_lines, read_pairs
from dragoman_training.saved_folder import check_free
from dragoman_training.time_left import progress_lines

_folder = click.argument("folder", metavar="DIR", type=aligning.existing_folder)
_threads = click.option(
    "--threads",
    type=click.IntRange(1),
    default=lambda: min(4, os.cpu_count() or 1),
    show_default="up to 4",
    help="Sentences translated at a time.",
)
_weights = click.option(
    "--weights",
    help="Of features, all others having none, such as phrase_backward=1,language_model=1, "
    "the noisy channel.  [default: as tuned]",
)


@click.group(context_settings={"show_default": True})
def smt() -> None:
    """Translate by phrases and an n-gram language model, as was done before neural networks.

    A translation e of f is the one with the largest sum of weighted features: probabilities of its phrases in
    both directions, of its words, of itself as a sentence, and how much it changes the order (Koehn et al.
    2003; Och & Ney 2002). No GPU is needed. Texts have a sentence a line.

    \b
    Examples:
      dragoman smt train --source train.de --target train.en --valid-source val.de --valid-target val.en \\
          --out runs/smt-de-en
      dragoman smt evaluate runs/smt-de-en --source test2016.de --reference test2016.en
      echo "Ein Mann schläft." | dragoman smt translate runs/smt-de-en
    """


@smt.command()
@click.option("--source", type=existing_file, required=True, help="Text of the source language.")
@click.option("--target", type=existing_file, required=True, help="Its translation, line by line.")
@click.option("--valid-source", type=existing_file, help="Text that the weights are tuned on.")
@click.option("--valid-target", type=existing_file, help="Its translation.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the system.")
@click.option(
    "--language-model-text",
    type=existing_file,
    help="More text of the target language, for the language model alone.",
)
@click.option("--aligner", type=click.Choice(CHAIN), default="hmm", help="Links the words.")
@aligning.with_symmetrize
@click.option(
    "--max-phrase-words",
    type=click.IntRange(1, 20),
    default=7,
    help="Words of a phrase; 1 makes a word-based system.",
)
@click.option("--order", type=click.IntRange(1, 10), default=4, help="Words of the language model's n-grams.")
@click.option(
    "--min-counts",
    default="1",
    help="How often n-grams of 1, 2, … words occur at least; the last number holds for longer ones, too.",
)
@aligning.with_max_words
@click.option("--stack", type=click.IntRange(1), default=100, help="Hypotheses a stack.")
@click.option(
    "--distortion-limit",
    type=click.IntRange(0, 40),
    default=6,
    help="Words jumped over at most; 0 keeps the order.",
)
@click.option("--rounds", type=click.IntRange(1), default=6, help="Rounds of tuning at most.")
@click.option("--seed", type=int, default=1, help="Of the tuning's random directions.")
@_threads
def train(
    source: Path,
    target: Path,
    valid_source: Path | None,
    valid_target: Path | None,
    out: Path,
    language_model_text: Path | None,
    aligner: str,
    symmetrize: Method,
    max_phrase_words: int,
    order: int,
    min_counts: str,
    max_words: int,
    stack: int,
    distortion_limit: int,
    rounds: int,
    seed: int,
    threads: int,
) -> None:
    """Train a system on sentence pairs, and tune its weights on others.

    Words are linked in both directions, phrases are what links allow, the language model has Kneser-Ney's
    smoothing, and weights are tuned for BLEU by minimum error rate training (Och 2003). Without
    --valid-source they stay as they begin. Nothing is written before the end.
    """
    if (valid_source is None) != (valid_target is None):
        raise click.UsageError("--valid-source and --valid-target belong together")
    options = systems.SystemOptions(
        aligner=aligner,
        symmetrize=symmetrize,
        max_phrase_words=max_phrase_words,
        order=order,
        min_counts=aligning.whole_numbers(min_counts, "--min-counts"),
        max_words=max_words,
        search=SearchOptions(stack_size=stack, distortion_limit=distortion_limit),
    )
    check_free(out)
    lines = list(read_pairs(source, target))
    valid = list(read_pairs(valid_source, valid_target)) if valid_source and valid_target else []
    if valid_source and not valid:
        raise ValueError(f"{valid_source} is empty: there is nothing to tune the weights on")
    more = list(read_lines(language_model_text)) if language_model_text else []
    system = systems.train_system(lines, options, more_target=more, say=_say)
    if valid:
        sources, references = zip(*valid, strict=True)
        system = tune_system(system, sources, references, rounds=rounds, threads=threads, seed=seed, say=_say)
    systems.save_system(system, out)
    _say(f"Saved to {out}.")


@smt.command()
@_folder
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path), default="-"
)
@_weights
@_threads
def translate(folder: Path, file: Path, weights: str | None, threads: int) -> None:
    """Translate the lines of FILE, or of standard input.

    An empty line stays empty. Words that were never seen are passed through. A sentence may have any length;
    the time grows with it.
    """
    lines = _input_lines(file)
    system = _load(folder, weights)
    report = progress_lines(len(lines), "Translated", "lines", _say)
    for found in system.candidates(lines, 1, threads=threads, report=report):
        click.echo(found[0][0])


@smt.command()
@_folder
@click.option("--source", type=existing_file, required=True, help="The test set.")
@click.option("--reference", type=existing_file, required=True, help="Its translation, line by line.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Keep the translations here.")
@_weights
@_threads
def evaluate(
    folder: Path, source: Path, reference: Path, output: Path | None, weights: str | None, threads: int
) -> None:
    """Measure a system on a test set: BLEU with its 95% interval, lower-cased, and chrF."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    pairs = list(read_pairs(source, reference))
    if not pairs:
        raise ValueError(f"{source} is empty: there is nothing to measure")
    if output is not None and not output.absolute().parent.is_dir():
        raise click.UsageError(f"--output: there is no folder {output.parent}")
    system = _load(folder, weights)
    sources, references = zip(*pairs, strict=True)
    began = time.monotonic()
    report = progress_lines(len(pairs), "Translated", "lines", _say)
    translations = system.translate(sources, threads=threads, report=report)
    seconds = time.monotonic() - began
    if output is not None:
        output.write_text("".join(f"{line}\n" for line in translations), "utf-8")
    low, _, high = bootstrap([translations], references)[0]
    metrics = BLEU(), BLEU(lowercase=True), CHRF()
    bleu, lower_cased, chrf = (metric.corpus_score(translations, [references]).score for metric in metrics)
    click.echo(
        f"BLEU {bleu:.2f} (95%: {low:.2f} to {high:.2f})  lower-cased {lower_cased:.2f}  "
        f"chrF {chrf:.2f}  sentences {len(pairs)}  seconds {seconds:.1f}"
    )


def _load(folder: Path, weights: str | None) -> systems.System:
    system = systems.load_system(folder)
    return system if weights is None else replace(system, weights=Weights(**parse_weights(weights, FEATURES)))


def _input_lines(file: Path) -> Sequence[str]:
    if str(file) != "-":
        return list(read_lines(file))
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"standard input is not UTF-8: {error}") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _say(line: str) -> None:
    click.echo(line, err=True)

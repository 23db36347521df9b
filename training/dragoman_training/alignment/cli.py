"""`dragoman align`: word alignment by statistical models."""

import sys
from itertools import islice
from pathlib import Path

import click

from dragoman_training.alignment import links, training
from dragoman_training.alignment.aligner import Search, load_aligner
from dragoman_training.alignment.bitext import WordRule
from dragoman_training.data.files import read_pairs, unequal
from dragoman_training.saved_folder import check_free

BLOCK_PAIRS = 10_000
"""Sentence pairs that are aligned at once."""

existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)
existing_folder = click.Path(exists=True, file_okay=False, path_type=Path)
with_symmetrize = click.option(
    "--symmetrize",
    type=click.Choice(links.METHODS),
    default=links.METHODS[0],
    help="How the links of both directions become one alignment.",
)
with_max_words = click.option(
    "--max-words",
    type=click.IntRange(1),
    default=100,
    help="A pair with a longer sentence is not learnt from.",
)
_links = click.option(
    "--links",
    "link",
    type=click.Choice(["posterior", "viterbi"]),
    default="posterior",
    help="Each word's likeliest link, or the sentence's likeliest alignment.",
)


@click.group(context_settings={"show_default": True})
def align() -> None:
    """Link words of translated texts: IBM models and the HMM.

    Texts have a sentence a line, the same in both files. Words lie between white space (or, with --tokenize,
    punctuation stands apart, too). Links are written as `0-0 1-2`: source and target position from 0 on.

    \b
    Examples:
      dragoman align train --model hmm --tokenize --source train.de --target train.en --out runs/align-de-en
      dragoman align apply runs/align-de-en --source new.de --target new.en > new.pharaoh
      dragoman align score new.pharaoh gold.pharaoh
      dragoman align show runs/align-de-en "Das ist mein Haus ." "This is my house ."
    """


@align.command()
@click.option("--model", type=click.Choice(training.CHAIN), default="hmm", help="The last one trained.")
@click.option("--source", type=existing_file, required=True, help="Text of the source language.")
@click.option("--target", type=existing_file, required=True, help="Its translation, line by line.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the aligner.")
@click.option(
    "--iterations",
    help="Of each model in the chain, up to the one that is trained; 0 leaves one out.  "
    "[default: 5,0,5,3,3,3, and 5 of model 2 where it is the one that is trained]",
)
@click.option("--diagonal", is_flag=True, help="Model 2 with the diagonal of Dyer et al. 2013, not a table.")
@click.option(
    "--agreement/--no-agreement",
    default=True,
    help="From the HMM on, both directions learn what both believe.",
)
@click.option("--alpha", type=click.FloatRange(0), default=0.01, help="Prior of a word pair.")
@click.option("--spelling", type=click.FloatRange(0), default=1.0, help="Prior of words spelt alike.")
@with_max_words
@click.option(
    "--tokenize",
    is_flag=True,
    help="Punctuation stands apart, and each character of a script without spaces, in later texts too.",
)
@click.option("--keep-case", is_flag=True, help="Words that differ by case are different words.")
def train(
    model: str,
    source: Path,
    target: Path,
    out: Path,
    iterations: str | None,
    diagonal: bool,
    agreement: bool,
    alpha: float,
    spelling: float,
    max_words: int,
    tokenize: bool,
    keep_case: bool,
) -> None:
    """Train an aligner, in both directions, on sentence pairs.

    Perplexity of each iteration is reported for both directions. Nothing is written before the end.
    """
    options = training.TrainingOptions(
        model=model,
        iterations=whole_numbers(iterations, "--iterations") if iterations is not None else (),
        diagonal=diagonal,
        agreement=agreement,
        alpha=alpha,
        spelling=spelling,
        max_words=max_words,
    )
    check_free(out)
    rule = WordRule(tokenize=tokenize, lowercase=not keep_case)
    pairs = [(rule.normalize(one), rule.normalize(other)) for one, other in read_pairs(source, target)]

    def report(iteration: training.Iteration) -> None:
        click.echo(f"{iteration}; {iteration.seconds:.0f} s", err=True)

    aligner = training.train_aligner(pairs, options, rule, report)
    if unused := len(pairs) - len(training.usable_pairs(pairs, max_words)):
        reason = "empty, or longer than --max-words"
        click.echo(f"{unused} of {len(pairs)} pairs were not learnt from: {reason}.", err=True)
    aligner.save(out)
    click.echo(f"Saved to {out}.", err=True)


def whole_numbers(text: str, option: str) -> list[int]:
    """The numbers of an option that is a list. Raises click.BadParameter for what is none."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        reason = f"{text!r} is no list of whole numbers, such as 5,0,5"
        raise click.BadParameter(reason, param_hint=option) from None


@align.command()
@click.argument("folder", metavar="DIR", type=existing_folder)
@click.option("--source", type=existing_file, required=True, help="Text of the source language.")
@click.option("--target", type=existing_file, required=True, help="Its translation, line by line.")
@with_symmetrize
@_links
def apply(folder: Path, source: Path, target: Path, symmetrize: links.Method, link: Search) -> None:
    """Link the words of two files; a line of links for each pair of lines.

    An empty line has no links. Sentences may be of any length; the time grows with the cube of it. Models 3,
    4 and 5 give a sentence of more than 100 words, or more than the longest that they learnt from, the links
    of the model that they start from.
    """
    aligner = load_aligner(folder)
    # All is read once before anything is written.
    for _ in read_pairs(source, target):
        pass
    lines = read_pairs(source, target)
    checked = False
    while block := list(islice(lines, BLOCK_PAIRS)):
        pairs = [(aligner.rule.normalize(one), aligner.rule.normalize(other)) for one, other in block]
        if not checked and aligner.swapped(pairs):
            raise ValueError(
                f"{source} has more words of {folder}'s target language, and {target} of its source "
                "language: the files belong the other way round"
            )
        checked = True
        for matrix in aligner.align(pairs, symmetrize, link):
            click.echo(links.format_links(zip(*(axis.tolist() for axis in matrix.nonzero()), strict=True)))


@align.command()
@click.argument("links_path", metavar="LINKS", type=existing_file)
@click.argument("gold_path", metavar="GOLD", type=existing_file)
@click.option("--source", type=existing_file, help="Text that the links are checked against.")
@click.option("--target", type=existing_file, help="Its translation.")
@click.option("--tokenize", is_flag=True, help="Count the words of the texts as an aligner trained with it.")
def score(
    links_path: Path, gold_path: Path, source: Path | None, target: Path | None, tokenize: bool
) -> None:
    """Precision, recall and alignment error rate against gold links: `3-4` sure, `3p4` possible."""
    if (source is None) != (target is None):
        raise click.UsageError("--source and --target belong together")
    found, gold = links.read_links(links_path), links.read_gold(gold_path)
    if len(found) != len(gold):
        raise unequal((links_path, gold_path), (len(found), len(gold)))
    if source is not None and target is not None:
        rule = WordRule(tokenize=tokenize)
        sizes = [(len(rule.split(one)), len(rule.split(other))) for one, other in read_pairs(source, target)]
        if len(sizes) != len(found):
            raise unequal((source, links_path), (len(sizes), len(found)))
        links.check_range(links_path, found, sizes)
        links.check_range(gold_path, [pair.possible for pair in gold], sizes)
    result = links.score_links(found, gold)
    rows = {"precision": result.precision, "recall": result.recall, "AER": result.aer}
    click.echo("  ".join(f"{name} {100 * share:.1f}" for name, share in rows.items()))


@align.command()
@click.argument("folder", metavar="DIR", type=existing_folder)
@click.argument("source")
@click.argument("target")
@with_symmetrize
@_links
def show(folder: Path, source: str, target: str, symmetrize: links.Method, link: Search) -> None:
    """Draw the links of a sentence pair: source words across, target words down."""
    aligner = load_aligner(folder)
    pair = aligner.rule.normalize(source), aligner.rule.normalize(target)
    (matrix,) = aligner.align([pair], symmetrize, link)
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    words = aligner.rule.split(source), aligner.rule.split(target)
    click.echo(links.draw_links(*words, matrix, ascii_only=ascii_only))

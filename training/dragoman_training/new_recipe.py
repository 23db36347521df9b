"""`dragoman new-recipe`: from two files of sentences to a recipe for them, this machine and one's time."""

import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman_training.data.corpus import Corpus
    from dragoman_training.recipe.settings import Recipe

TEMPLATE = Path(__file__).with_suffix(".toml")
FEWEST_PIECES = 40
"""A vocabulary of fewer is none."""
MAX_HELD_OUT = 1000
"""Pairs of the validation set, and of the test set, at most; a hundredth of all where that is less."""
SAMPLE_PAIRS = 20_000
"""Pairs by which text and speed are judged, evenly spread over all."""
MEASURED_STEPS = 8
TRAINING_SHARE = 0.8
"""Steps' share of the time; vocabulary, token ids and validations take the rest."""
FEWEST_EPOCHS, MOST_EPOCHS = 8, 30
"""A size is taken if there is time for the first; beyond the second there is little to learn."""
MUCH_TEXT = 100_000
"""Pairs from which on a vocabulary is larger, and dropout weaker."""


@dataclasses.dataclass(frozen=True)
class Size:
    """A Transformer that reads, and two layers of simpler simple recurrent units that write."""

    name: str
    fewest_pairs: int
    """The number of pairs with fewer of which it learns them by heart."""
    width: int
    feed_forward: int
    encoder_layers: int
    learning_rate: float


SIZES = (
    Size("large", 1_000_000, 512, 2048, 6, 1e-3),
    Size("middle", MUCH_TEXT, 256, 1536, 6, 2e-3),
    Size("small", 10_000, 256, 1024, 3, 2e-3),
    Size("tiny", 0, 128, 512, 2, 3e-3),
)


@click.command()
@click.argument("source_path", metavar="SOURCE", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("target_path", metavar="TARGET", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--from", "source", metavar="LANG", help="SOURCE's language.  [default: found by its text]")
@click.option("--to", "target", metavar="LANG", help="TARGET's language.  [default: found by its text]")
@click.option(
    "--minutes",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="The time that training may take on this machine.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the recipe and the parted text.  [default: data/LANG-LANG]",
)
def new_recipe(
    source_path: Path,
    target_path: Path,
    *,
    source: str | None,
    target: str | None,
    minutes: float,
    out: Path | None,
) -> None:
    """Write a recipe for the lines of SOURCE and TARGET, which match.

    It says what is in the files, sets lines apart to validate and to test with, runs some steps of models of
    several sizes, and takes the largest for which there is text and time.

    \b
    Example:
      dragoman new-recipe our.de our.en --minutes 30
    """
    from dragoman_training.data.corpus import hold_out
    from dragoman_training.data.files import read_parallel, write_parallel
    from dragoman_training.recipe.reader import load_recipe
    from dragoman_training.saved_folder import written_whole

    corpus = read_parallel(source_path, target_path)
    found = _language(corpus.sources), _language(corpus.targets)
    source, target = source or found[0], target or found[1]
    if source == target:
        raise ValueError(f"both files look like {source}: say with --from and --to what they are")
    folder = out or Path("data") / f"{source}-{target}"
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: choose another folder with --out")
    # To train on, to validate on and to test with.
    train, held_out = hold_out(corpus, 2 * min(MAX_HELD_OUT, len(corpus) // 100))
    valid, test = (held_out.part(range(first, len(held_out), 2)) for first in (0, 1))
    parts = {"train": train, "valid": valid, "test": test}
    # Languages that are found are among those that a filter can tell.
    languages = f'source_language = "{source}"\ntarget_language = "{target}"\n'

    # Whoever interrupts it finds nothing that looks like all of it.
    with written_whole(folder) as partial:
        for split, pairs in parts.items():
            write_parallel(pairs, partial / f"{split}.{source}", partial / f"{split}.{target}")

        def written(size: Size, *, pieces: int, epochs: int, warmup: int) -> "Recipe":
            text = TEMPLATE.read_text("utf-8").format(
                size=size,
                source=source,
                target=target,
                minutes=minutes,
                languages=languages if (source, target) == found else "",
                dropout=0.1 if len(train) >= MUCH_TEXT else 0.3,
                pieces=pieces,
                epochs=epochs,
                warmup=warmup,
            )
            (partial / "recipe.toml").write_text(text, encoding="utf-8")
            return load_recipe(partial / "recipe.toml")

        pieces = 16000 if len(train) >= MUCH_TEXT else 8000
        sizes = [size for size in SIZES if len(train) >= size.fewest_pairs]
        _describe(corpus, written(sizes[0], pieces=pieces, epochs=MOST_EPOCHS, warmup=1))
        for size in sizes:
            recipe = written(size, pieces=pieces, epochs=MOST_EPOCHS, warmup=1)
            pieces, steps, seconds = _pace(recipe, train, valid)
            epochs = minutes * 60 * TRAINING_SHARE / (steps * seconds)
            click.echo(f"{size.name}: {seconds:.2f} s a step, {epochs:,.1f} passes in {minutes:g} minutes")
            if epochs >= FEWEST_EPOCHS:
                break
        if epochs < 1:
            click.echo("One pass takes longer than that: training will end before it.")
        num_epochs = max(1, min(MOST_EPOCHS, int(epochs)))
        written(size, pieces=pieces, epochs=num_epochs, warmup=max(1, min(1000, steps * num_epochs // 10)))
    path = folder / "recipe.toml"
    click.echo(
        f"{path}: a {size.name} model; {len(train):,} pairs to train, {len(valid):,} to validate, "
        f"{len(test):,} to test with.\nNext: dragoman train {path}"
    )


def _language(lines: list[str]) -> str:
    from dragoman_training.data.corpus import evenly_spaced
    from dragoman_training.recipe.data import rank_languages

    some = " ".join(lines[number] for number in evenly_spaced(len(lines), 500))
    return rank_languages(some.lower())[0][0]


def _describe(corpus: "Corpus", recipe: "Recipe") -> None:
    """Says what a person should know of the text before an hour is spent on it."""
    from dragoman_training.data.corpus import spread
    from dragoman_training.data.pair_filter import DUPLICATES, ONE_SIDED, reasons_to_leave_out, show_left_out

    click.echo(f"{len(corpus):,} pairs, {recipe.data.direction}.")
    languages = recipe.data.source_language, recipe.data.target_language
    for language, side in zip(languages, (corpus.sources, corpus.targets), strict=True):
        words = sorted(len(line.split()) for line in side)
        click.echo(
            f"{language}: {sum(words):,} words; half of the lines have {words[len(words) // 2]} or fewer, "
            f"one of a hundred more than {words[len(words) * 99 // 100]}."
        )
    sample = spread(corpus, SAMPLE_PAIRS)
    reasons = Counter(filter(None, reasons_to_leave_out(sample.sources, sample.targets, recipe.filter)))
    duplicates = len(corpus) - len(set(zip(corpus.sources, corpus.targets, strict=True)))
    whole = show_left_out({ONE_SIDED: corpus.num_one_sided, DUPLICATES: duplicates})
    click.echo(f"Left out of all pairs: {whole or 'none'}.")
    click.echo(f"Left out of {len(sample):,} that were looked at: {show_left_out(reasons) or 'none'}.")


def _pace(recipe: "Recipe", train: "Corpus", valid: "Corpus") -> tuple[int, int, float]:
    """The pieces that the text has for a vocabulary, the steps of an epoch, and the seconds of a step."""
    from dragoman_training.data.corpus import spread
    from dragoman_training.data.vocabulary import VocabularyError, train_tokenizers
    from dragoman_training.processes import join_processes
    from dragoman_training.run.run_folder import StopRequest
    from dragoman_training.run.trainer import Trainer

    sample, vocabulary = spread(train, SAMPLE_PAIRS), recipe.vocabulary
    while True:
        try:
            tokenizers = train_tokenizers(sample, vocabulary)
            break
        except VocabularyError:
            if vocabulary.size < FEWEST_PIECES:
                raise
            vocabulary = dataclasses.replace(vocabulary, size=vocabulary.size * 3 // 4)
    with join_processes("auto") as processes:
        given = recipe, tokenizers, sample, valid
        trainer = Trainer(*given, folder=Path(), processes=processes, reporter=None, stop=StopRequest())
        seconds = trainer.seconds_a_step(MEASURED_STEPS)
    return vocabulary.size, max(1, trainer.steps_per_epoch * len(train) // len(sample)), seconds

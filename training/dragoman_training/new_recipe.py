"""`dragoman new-recipe`: from two files of sentences to a recipe for them, this machine and one's time."""

import dataclasses
import statistics
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman_training.data.corpus import Corpus
    from dragoman_training.recipe.settings import Recipe

FEWEST_PAIRS = 100
"""Fewer would teach nothing, and measure nothing."""
FEWEST_PIECES = 40
"""A vocabulary of fewer is none."""
MAX_HELD_OUT = 1000
"""Pairs of the validation set, and of the test set, at most; a hundredth of all where that is less."""
SAMPLE_PAIRS = 20_000
"""Pairs by which text and speed are judged, evenly spread over all."""
MEASURED_SECONDS, FEWEST_STEPS = 5.0, 5
"""For so long, and at least so many, steps of a size are run."""
TRAINING_SHARE = 0.8
"""Steps' share of the time; vocabulary, token ids and validations take the rest."""
FEWEST_EPOCHS, MOST_EPOCHS = 8, 30
"""A size is taken if there is time for the first; beyond the second there is little to learn."""


@dataclasses.dataclass(frozen=True)
class Size:
    """A Transformer that reads, and two layers of simpler simple recurrent units that write."""

    name: str
    fewest_pairs: int
    """With fewer it learns them by heart."""
    width: int
    feed_forward: int
    encoder_layers: int
    learning_rate: float


SIZES = (
    Size("large", 1_000_000, 512, 2048, 6, 1e-3),
    Size("middle", 100_000, 256, 1536, 6, 2e-3),
    Size("small", 10_000, 256, 1024, 3, 2e-3),
    Size("tiny", 0, 128, 512, 2, 3e-3),
)

_RECIPE = """\
# Written by `dragoman new-recipe`: a {size.name} model, for {minutes:g} minutes where it was measured.
name = "{source}-{target}"

[data]
source_language = "{source}"
target_language = "{target}"
train_source = "train.{source}"
train_target = "train.{target}"
valid_source = "valid.{source}"
valid_target = "valid.{target}"

[filter]
max_length_ratio = 4
leave_out_copies = true
leave_out_duplicates = true
{languages}
[vocabulary]
size = {pieces}

[model]
family = "transformer"
past = "ssru"             # fast to translate with
width = {size.width}
heads = 4
feed_forward = {size.feed_forward}
encoder_layers = {size.encoder_layers}
decoder_layers = 2
dropout = {dropout}             # more where there is less text

[training]
max_epochs = {epochs}           # as many as there is time for
max_minutes = {minutes:g}
decay = "linear"
learning_rate = {size.learning_rate}
warmup_steps = {warmup}
validate_sentences = 200
patience = 0

[card]                    # what a user of the model should know
description = ""
data = ""
licence = ""
credit = ""
"""


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
@click.option("--device", default="auto", show_default=True, help="As of `dragoman train`.")
def new_recipe(
    source_path: Path,
    target_path: Path,
    *,
    source: str | None,
    target: str | None,
    minutes: float,
    out: Path | None,
    device: str,
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

    corpus = read_parallel(source_path, target_path)
    if len(corpus) < FEWEST_PAIRS:
        raise ValueError(f"there are {len(corpus)} pairs; training takes {FEWEST_PAIRS} at the least")
    source, target = source or _language(corpus.sources), target or _language(corpus.targets)
    if source == target:
        raise ValueError(f"both files look like {source}: say with --from and --to what they are")
    folder = out or Path("data") / f"{source}-{target}"
    path = folder / "recipe.toml"
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: choose another folder with --out")
    train, held_out = hold_out(corpus, 2 * min(MAX_HELD_OUT, len(corpus) // 100))
    splits = {
        "train": train,
        "valid": held_out.part(range(0, len(held_out), 2)),
        "test": held_out.part(range(1, len(held_out), 2)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in splits.items():
        write_parallel(pairs, folder / f"{split}.{source}", folder / f"{split}.{target}")
    values = {
        "source": source,
        "target": target,
        "minutes": minutes,
        "languages": "".join(
            f'{side}_language = "{language}"\n'
            for side, language in (("source", source), ("target", target))
            if _is_told(language)
        ),
        "pieces": 16000 if len(train) >= SIZES[1].fewest_pairs else 8000,
        "dropout": 0.1 if len(train) >= SIZES[1].fewest_pairs else 0.3,
        "epochs": MOST_EPOCHS,
        "warmup": 400,
    }
    sizes = [size for size in SIZES if len(train) >= size.fewest_pairs]

    def written(size: Size) -> "Recipe":
        path.write_text(_RECIPE.format(size=size, **values), encoding="utf-8")
        return load_recipe(path)

    _describe(corpus, written(sizes[0]))
    for size in sizes:
        values["pieces"], steps, seconds = _pace(written(size), train, splits["valid"], device)
        epochs = minutes * 60 * TRAINING_SHARE / (steps * seconds)
        click.echo(f"{size.name}: {seconds:.2f} s a step, {epochs:,.1f} passes in {minutes:g} minutes")
        if epochs >= FEWEST_EPOCHS:
            break
    values["epochs"] = max(1, min(MOST_EPOCHS, int(epochs)))
    values["warmup"] = max(1, min(1000, int(steps * values["epochs"] / 10)))
    written(size)
    if epochs < 1:
        click.echo(
            f"One pass takes {minutes / TRAINING_SHARE / epochs:,.0f} minutes: there is time for a part."
        )
    shares = ", ".join(f"{len(pairs):,} to {split}" for split, pairs in splits.items())
    click.echo(
        f"{path}: {size.name}, epochs {values['epochs']}; pairs: {shares}.\nNext: dragoman train {path}"
    )


def _language(lines: list[str]) -> str:
    from dragoman_training.data.corpus import evenly_spaced
    from dragoman_training.recipe.data import rank_languages

    some = " ".join(lines[number] for number in evenly_spaced(len(lines), 500))
    return rank_languages(some.lower())[0][0]


def _is_told(language: str) -> bool:
    """Whether the filter can tell the language from others."""
    from dragoman_bundle.languages import primary_language

    from dragoman_training.recipe.data import rank_languages

    return primary_language(language) in dict(rank_languages(""))


def _describe(corpus: "Corpus", recipe: "Recipe") -> None:
    """Says what a person should know of the text before an hour is spent on it."""
    from dragoman_training.data.corpus import spread
    from dragoman_training.data.pair_filter import DUPLICATES, reasons_to_leave_out
    from dragoman_training.data.tokenized_corpus import ONE_SIDED, show_left_out

    click.echo(f"{len(corpus):,} pairs, {recipe.data.direction}.")
    for language, side in (
        (recipe.data.source_language, corpus.sources),
        (recipe.data.target_language, corpus.targets),
    ):
        words = sorted(len(line.split()) for line in side)
        click.echo(
            f"{language}: {sum(words):,} words; half of the lines have {words[len(words) // 2]} or fewer, "
            f"one of a hundred more than {words[len(words) * 99 // 100]}."
        )
    sample = spread(corpus, SAMPLE_PAIRS)
    reasons = Counter(filter(None, reasons_to_leave_out(sample.sources, sample.targets, recipe.filter)))
    whole = {
        ONE_SIDED: corpus.num_one_sided,
        DUPLICATES: len(corpus) - len(set(zip(corpus.sources, corpus.targets, strict=True))),
    }
    for which, found in (("all pairs", whole), (f"{len(sample):,} that were looked at", reasons)):
        click.echo(f"Left out of {which}: {show_left_out(found) or 'none'}.")


def _pace(recipe: "Recipe", train: "Corpus", valid: "Corpus", device: str) -> tuple[int, int, float]:
    """The pieces that the text has for a vocabulary, the steps of an epoch, and the seconds of a step.

    A few steps are run, by the loop that trains.
    """
    from dragoman_training.data.corpus import spread
    from dragoman_training.data.pair_filter import filtered
    from dragoman_training.data.vocabulary import VocabularyError, train_tokenizers
    from dragoman_training.processes import join_processes
    from dragoman_training.run.trainer import Trainer

    sample = filtered(
        spread(train, SAMPLE_PAIRS), dataclasses.replace(recipe.filter, leave_out_duplicates=False)
    )
    vocabulary = recipe.vocabulary
    while True:
        try:
            tokenizers = train_tokenizers(sample, vocabulary)
            break
        except VocabularyError:
            if vocabulary.size < FEWEST_PIECES:
                raise
            vocabulary = dataclasses.replace(vocabulary, size=vocabulary.size * 3 // 4)
    endless = dataclasses.replace(recipe.training, max_epochs=10**6, max_minutes=0, validate_every_epochs=1e6)
    clock = _Clock()
    with tempfile.TemporaryDirectory() as folder, join_processes(device) as processes:
        trainer = Trainer(
            dataclasses.replace(recipe, training=endless),
            tokenizers,
            sample,
            valid,
            folder=Path(folder),
            processes=processes,
            reporter=None,
            stop=clock,
        )
        try:
            trainer.run()
        except KeyboardInterrupt:
            if not clock.is_over:
                raise
    steps = max(1, trainer.steps_per_epoch * len(train) // len(sample))
    return vocabulary.size, steps, statistics.median(after - end for end, after in pairwise(clock.ends[1:]))


class _Clock:
    """Stops a training after some steps, and knows when each of them ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        """The beginning, and the end of each step. The first one makes ready what the others use."""

    @property
    def is_over(self) -> bool:
        """Whether enough steps were run."""
        return len(self.ends) > FEWEST_STEPS and self.ends[-1] - self.ends[1] > MEASURED_SECONDS

    @property
    def requested(self) -> bool:
        """Asked at the beginning and after each step."""
        self.ends.append(time.monotonic())
        return self.is_over

"""`dragoman words`: which words a model holds to be alike, and which a text does."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman_training.classics.words import Answer, Space

FORMATS = (".png", ".svg")
_existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_file = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"show_default": True})
@click.argument("checkpoint", metavar="CHECKPOINT", type=_existing_file)
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option("--minus", multiple=True, metavar="WORD", help="Taken away from the sum of WORD. Repeatable.")
@click.option("--number", default=10, type=click.IntRange(min=1), help="How many words are shown.")
@click.option("--vectors", type=_file, help="Skip-gram vectors, whose nearest words are shown, too.")
@click.option(
    "--text",
    "texts",
    type=_existing_file,
    multiple=True,
    help="Text to train --vectors on first, a sentence a line. Repeatable.",
)
@click.option("--picture", type=_file, help="Draw the words as points of a plane to this file.")
def words(
    checkpoint: Path,
    words: tuple[str, ...],
    minus: tuple[str, ...],
    number: int,
    vectors: Path | None,
    texts: tuple[Path, ...],
    picture: Path | None,
) -> None:
    """Show the words that are nearest to WORD in a model's embeddings, by their cosine.

    Of several, those nearest to their sum. A model has embeddings of pieces. Where source and target have
    vocabularies of their own, they are those of the target; where they share one, words of both languages are
    listed. With --vectors the nearest words of skip-gram vectors follow.

    \b
      dragoman words runs/tatoeba-de-en/best.safetensors Haus
      dragoman words runs/tatoeba-de-en/best.safetensors König Frau --minus Mann
      dragoman words runs/tatoeba-de-en/best.safetensors Bruder Frau --minus Mann \\
          --vectors runs/tatoeba.vectors --text train.de --text train.en --picture words.svg
    """
    from dragoman_training.classics.words import ask, draw_words, open_pieces, open_vectors

    if texts and vectors is None:
        raise click.UsageError("--text trains vectors: --vectors names the file that they are written to")
    if picture is not None:
        _check_picture(picture)
    if vectors is not None:
        _check_extra("gensim", "vectors of a text need", "vectors")
        if not texts and not vectors.is_file():
            raise ValueError(f"{vectors} is not there: --text names what to train it on")
    answers: list[Answer] = []
    missing: list[str] = []

    def ask_in(space: "Space") -> None:
        try:
            answers.append(ask(space, words, minus, number=number))
        except ValueError as error:
            # What one space has not, the other may have.
            missing.append(f"{space.title}: {error}")

    # Before vectors are trained, which takes long.
    ask_in(open_pieces(checkpoint))
    if vectors is not None:
        if texts:
            _train(texts, vectors)
        ask_in(open_vectors(vectors))
    if not answers:
        raise ValueError("\n".join(missing))
    for answer in answers:
        if vectors is not None:
            click.echo(answer.space.title)
        for neighbour in answer.neighbours:
            click.echo(f"{neighbour.cosine:6.3f}  {neighbour.word}")
    for reason in missing:
        click.echo(reason, err=True)
    if picture is not None:
        draw_words(answers, picture)


def _train(texts: tuple[Path, ...], vectors: Path) -> None:
    from dragoman_training.classics.words import SkipGramOptions, train_vectors

    options = SkipGramOptions()

    def report(epoch: int) -> None:
        click.echo(f"epoch {epoch} of {options.epochs} is done", err=True)

    train_vectors(texts, vectors, options, report)


def _check_picture(path: Path) -> None:
    """Raises ValueError, before anything takes long, where no picture can be written."""
    if path.suffix not in FORMATS:
        raise ValueError(f"--picture is {path}, but its name must end in {', '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--picture is {path}, but there is no folder {path.parent}")
    _check_extra("matplotlib", "--picture needs", "plot")


def _check_extra(module: str, needs: str, extra: str) -> None:
    """Raises ValueError, before anything takes long, where a library is not installed."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{needs} {error.name}, which is not installed: install the extra `{extra}`"
        ) from error

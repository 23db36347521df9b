"""`dragoman words`: which words a model holds to be alike, and which a text does."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman_training.classics.words.answer import Answer
    from dragoman_training.classics.words.space import Space

FORMATS = (".png", ".svg")
_existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_file = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT", type=_existing_file)
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option("--minus", multiple=True, metavar="WORD", help="Taken away from the sum of WORD. Repeatable.")
@click.option(
    "--number", default=10, show_default=True, type=click.IntRange(min=1), help="How many words are shown."
)
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
    told. Beside them, with --vectors, the nearest words of skip-gram vectors.

    \b
      dragoman words runs/tatoeba-de-en/best.safetensors Haus
      dragoman words runs/tatoeba-de-en/best.safetensors König Frau --minus Mann
      dragoman words runs/tatoeba-de-en/best.safetensors Bruder Frau --minus Mann \\
          --vectors runs/tatoeba.vectors --text train.de --text train.en --picture words.svg
    """
    from dragoman_training.classics.words.answer import ask
    from dragoman_training.classics.words.pieces import open_pieces

    if texts and vectors is None:
        raise click.UsageError("--text trains vectors: --vectors names the file that they are written to")
    if picture is not None:
        _check_picture(picture)
    if vectors is not None:
        _check_vectors(vectors, texts)
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
        ask_in(_open_vectors(vectors, texts))
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
        from dragoman_training.classics.words.picture import draw_words

        draw_words(answers, picture)


def _check_vectors(vectors: Path, texts: tuple[Path, ...]) -> None:
    """Before anything takes long. Raises ValueError where there will be none."""
    from dragoman_training.classics.words.skip_gram import check_gensim

    check_gensim()
    if not texts and not vectors.is_file():
        raise ValueError(f"{vectors} is not there: --text names what to train it on")


def _open_vectors(vectors: Path, texts: tuple[Path, ...]) -> "Space":
    """Trains them first where there is text. Raises ValueError."""
    from dragoman_training.classics.words.skip_gram import SkipGramOptions, open_vectors, train_vectors

    if texts:
        options = SkipGramOptions()

        def report(epoch: int) -> None:
            click.echo(f"epoch {epoch} of {options.epochs} is done", err=True)

        train_vectors(texts, vectors, options, report)
    return open_vectors(vectors)


def _check_picture(path: Path) -> None:
    """Before anything takes long. Raises ValueError where none can be written."""
    if path.suffix not in FORMATS:
        raise ValueError(f"--picture is {path}, but its name must end in {', '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--picture is {path}, but there is no folder {path.parent}")
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError(
            f"--picture needs {error.name}, which is not installed: install the extra `plot`"
        ) from error

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
@click.option(
    "--vectors",
    type=_existing_file,
    help="Vectors of words, as word2vec, fastText and gensim write them, whose nearest are shown, too.",
)
@click.option("--picture", type=_file, help="Draw the words as points of a plane to this file.")
def words(
    checkpoint: Path,
    words: tuple[str, ...],
    minus: tuple[str, ...],
    number: int,
    vectors: Path | None,
    picture: Path | None,
) -> None:
    """Show the words that are nearest to WORD in a model's embeddings, by their cosine.

    Of several, those nearest to their sum. A model has embeddings of pieces. Where source and target have
    vocabularies of their own, they are those of the target; where they share one, words of both languages are
    listed. With --vectors the nearest words of such vectors follow.

    \b
      dragoman words runs/tatoeba-de-en/best.safetensors Haus
      dragoman words runs/tatoeba-de-en/best.safetensors König Frau --minus Mann
      dragoman words runs/tatoeba-de-en/best.safetensors Bruder Frau --minus Mann \\
          --vectors runs/tatoeba.vectors --picture words.svg
    """
    from dragoman_training.classics.words import ask, draw_words, open_pieces, open_vectors

    if picture is not None:
        _check_picture(picture)
    answers: list[Answer] = []
    missing: list[str] = []

    def ask_in(space: "Space") -> None:
        try:
            answers.append(ask(space, words, minus, number=number))
        except ValueError as error:
            # What one space has not, the other may have.
            missing.append(f"{space.title}: {error}")

    ask_in(open_pieces(checkpoint))
    if vectors is not None:
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


def _check_picture(path: Path) -> None:
    """Raises ValueError, before anything takes long, where no picture can be written."""
    if path.suffix not in FORMATS:
        raise ValueError(f"--picture is {path}, but its name must end in {', '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--picture is {path}, but there is no folder {path.parent}")
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as error:
        reason = f"{error.name}, which is not installed: install the extra `plot`"
        raise ValueError(f"--picture needs {reason}") from error

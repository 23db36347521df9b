"""`dragoman words`: which pieces a model holds to be alike, by its embeddings.

Shapes: V pieces, D width.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dragoman_bundle.tokenizers.tokenizer import Tokenizer

SPACE = "▁"


@dataclass(frozen=True)
class Neighbour:
    """A piece and how alike it is."""

    piece: str
    cosine: float


def nearest(
    embedding_VD: NDArray[np.float32],
    tokenizer: "Tokenizer",
    plus: list[int],
    minus: list[int],
    *,
    number: int,
) -> list[Neighbour]:
    """The pieces whose embeddings have the largest cosine with a sum of others', which are left out.

    Each of the sum has length one, as in Mikolov et al. (2013), "Linguistic Regularities in Continuous Space
    Word Representations", section 4.
    """
    length_V1 = np.linalg.norm(embedding_VD, axis=1, keepdims=True)
    unit_VD = embedding_VD / np.maximum(length_V1, 1e-12)
    wanted_D = unit_VD[plus].sum(axis=0) - unit_VD[minus].sum(axis=0)
    cosine_V = unit_VD @ wanted_D / max(float(np.linalg.norm(wanted_D)), 1e-12)
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    cosine_V[[*plus, *minus, *(id_ for id_ in special if id_ >= 0)]] = -np.inf
    best = np.argsort(-cosine_V, kind="stable")[:number]
    return [
        Neighbour(tokenizer.piece(id_), float(cosine_V[id_]))
        for id_ in best.tolist()
        if np.isfinite(cosine_V[id_])
    ]


def piece_of(word: str, tokenizer: "Tokenizer") -> int:
    """The token that a word is. Raises ValueError where it is none, or several, and says which."""
    ids = tokenizer.encode_ids([word])[0]
    whole = [id_ for id_ in ids if tokenizer.piece(id_) != SPACE]
    if len(whole) == 1 and whole[0] != tokenizer.unk_id:
        return whole[0]
    pieces = " ".join(tokenizer.piece(id_) for id_ in ids) or "nothing"
    raise ValueError(
        f"{word!r} is no piece of the vocabulary, which writes it as {pieces}: take a more frequent word, or "
        "one of these"
    )


@click.command()
@click.argument(
    "checkpoint", metavar="CHECKPOINT", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option("--minus", multiple=True, metavar="WORD", help="Taken away from the sum of WORD. Repeatable.")
@click.option(
    "--number", default=10, show_default=True, type=click.IntRange(min=1), help="How many pieces are shown."
)
def words(checkpoint: Path, words: tuple[str, ...], minus: tuple[str, ...], number: int) -> None:
    """Show the pieces that are nearest to WORD in a model's embeddings, by their cosine.

    Of several, those nearest to their sum. Where source and target have vocabularies of their own, the
    embeddings are those of the target; where they share one, words of both languages are told.

    \b
      dragoman words runs/tatoeba-de-en/best.safetensors Haus
      dragoman words runs/tatoeba-de-en/best.safetensors König Frau --minus Mann
    """
    from dragoman_training.checkpoint import load_checkpoint

    loaded = load_checkpoint(checkpoint)
    tokenizer = loaded.target_tokenizer
    embedding_VD = loaded.model.output.embedding.weight.detach().float().numpy()
    plus_ids, minus_ids = ([piece_of(word, tokenizer) for word in side] for side in (words, minus))
    for neighbour in nearest(embedding_VD, tokenizer, plus_ids, minus_ids, number=number):
        click.echo(f"{neighbour.cosine:6.3f}  {neighbour.piece.replace(SPACE, ' ').strip() or SPACE}")

"""A random lexicon as large as a trained one, in the form that both systems read: CTranslate2's vmap."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

NUM_COMMON = 100
"""Pieces that every sentence may use: the first, which sentencepiece found to be the most frequent."""
NUM_TARGETS = 50
"""Target pieces of each source piece, beside itself."""
_DRAWS = 4 * NUM_TARGETS
"""Enough that nearly always so many of them differ."""


def write_lexicon(path: Path, pieces: Sequence[str], specials: Sequence[int]) -> None:
    """Writes a line for the common pieces and one for each piece but the `specials`, ids that none is given.

    Targets are drawn with a chance of one over their rank: sentences share many, as in a language.
    """
    words = [id_ for id_ in range(len(pieces)) if id_ not in specials]
    chances = 1 / np.arange(1, len(words) + 1)
    drawn = np.random.default_rng(1).choice(words, size=(len(words), _DRAWS), p=chances / chances.sum())
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t" + " ".join(pieces[id_] for id_ in words[:NUM_COMMON]) + "\n")
        for own, row in zip(words, drawn.tolist(), strict=True):
            targets = list(dict.fromkeys([own, *row]))[: NUM_TARGETS + 1]
            file.write(pieces[own] + "\t" + " ".join(pieces[id_] for id_ in targets) + "\n")

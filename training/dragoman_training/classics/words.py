"""Spaces of words, those of a model's embeddings and others' vectors, and which words are alike in them.

Shapes: V words, D width, W words of a picture.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray

from dragoman_training.checkpoint import load_checkpoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPACE = "▁"
PANEL_INCHES = 4.2


class Neighbour(NamedTuple):
    """A word and how alike it is."""

    row: int
    word: str
    cosine: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Space:
    """Words and their vectors."""

    title: str
    vector_VD: NDArray[np.float32]
    words: Sequence[str]
    """The word of each row."""
    row_of: Callable[[str], int]
    """The row of a word. Raises ValueError where it has none."""
    no_words: Sequence[int] = ()
    """Rows that are no answer, such as those of a vocabulary's special pieces."""

    def unit(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """Vectors at length one. [rows, D]"""
        vectors = self.vector_VD[list(rows)]
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
        return unit

    def nearest(self, plus: Sequence[int], minus: Sequence[int], *, number: int) -> list[Neighbour]:
        """The words whose vectors have the largest cosine with a sum of others', which are left out.

        Each of the sum has length one, as in Mikolov et al. (2013), "Linguistic Regularities in Continuous
        Space Word Representations", section 4.
        """
        wanted_D = self.unit(plus).sum(axis=0) - self.unit(minus).sum(axis=0)
        length = max(float(np.linalg.norm(wanted_D)), 1e-12)
        cosine_V = self.unit(range(len(self.vector_VD))) @ wanted_D / length
        cosine_V[[*plus, *minus, *self.no_words]] = -np.inf
        best = np.argsort(-cosine_V, kind="stable")[:number]
        cosines = [(row, float(cosine_V[row])) for row in best.tolist()]
        return [Neighbour(row, self.words[row], one) for row, one in cosines if np.isfinite(one)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """The words nearest to a sum of others."""

    space: Space
    plus: Sequence[int]
    minus: Sequence[int]
    neighbours: Sequence[Neighbour]


def ask(space: Space, plus: Sequence[str], minus: Sequence[str], *, number: int) -> Answer:
    """Raises ValueError for a word that the space has not."""
    plus_rows, minus_rows = ([space.row_of(word) for word in side] for side in (plus, minus))
    neighbours = space.nearest(plus_rows, minus_rows, number=number)
    return Answer(space=space, plus=plus_rows, minus=minus_rows, neighbours=neighbours)


def open_pieces(checkpoint: Path) -> Space:
    """The target's embeddings, which are the source's, too, where both share a vocabulary."""
    loaded = load_checkpoint(checkpoint)
    tokenizer = loaded.target_tokenizer
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    pieces = [tokenizer.piece(id_) for id_ in range(tokenizer.vocabulary_size)]
    return Space(
        title=f"embeddings of {loaded.recipe.name}",
        vector_VD=loaded.model.output.embedding.weight.detach().float().numpy(),
        words=[piece.replace(SPACE, " ").strip() or SPACE for piece in pieces],
        row_of=lambda word: piece_of(word, tokenizer),
        no_words=[id_ for id_ in special if id_ >= 0],
    )


def piece_of(word: str, tokenizer: Tokenizer) -> int:
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


def open_vectors(path: Path) -> Space:
    """Reads word2vec's text format: a line with two numbers, words and width, then a line for each word.

    Raises ValueError for what is none.
    """
    with path.open(encoding="utf-8", newline="\n") as lines:
        try:
            count, width = map(int, next(lines).split())
            rows = [line.rstrip().rsplit(" ", width) for line in lines]
            vector_VD = np.array([row[1:] for row in rows], dtype=np.float32).reshape(count, width)
        except (ValueError, StopIteration) as error:
            raise ValueError(f"{path} holds no vectors in word2vec's text format: {error}") from error
    words = [row[0] for row in rows]

    def row_of(word: str) -> int:
        if word not in words:
            raise ValueError(f"{word!r} has no vector: the text has it too seldom, or written otherwise")
        return words.index(word)

    return Space(title=path.name, vector_VD=vector_VD, words=words, row_of=row_of)


def draw_words(answers: Sequence[Answer], path: Path) -> None:
    """The words asked for and their neighbours as points of a plane, a panel for each space.

    Writes SVG or PNG, by the name. The same answers give the same bytes. Needs the extra `plot`.
    """
    from dragoman_training.classics.figures import drawn

    with drawn(path, (PANEL_INCHES * len(answers), PANEL_INCHES)) as figure:
        for axes, answer in zip(figure.subplots(1, len(answers), squeeze=False)[0], answers, strict=True):
            draw_panel(axes, answer)


def draw_panel(axes: "Axes", answer: Answer) -> None:
    """The words of one space; of an analogy, such as king - man + woman, arrows show its two steps."""
    from dragoman_training.classics.figures import COLOURS

    rows = [*answer.plus, *answer.minus, *(one.row for one in answer.neighbours)]
    unit_WD = answer.space.unit(rows)
    centred_WD = unit_WD - unit_WD.mean(axis=0)
    # The two directions in which these words differ most.
    directions_DD = np.linalg.svd(centred_WD, full_matrices=False)[2]
    place_W2 = centred_WD @ directions_DD[:2].T
    num_asked = len(answer.plus) + len(answer.minus)
    for number, (row, place) in enumerate(zip(rows, place_W2.tolist(), strict=True)):
        colour = COLOURS[0] if number < num_asked else COLOURS[7]
        axes.plot(*place, marker="o", color=colour)
        word = answer.space.words[row]
        axes.annotate(word, place, (4, 4), textcoords="offset points", color=colour, parse_math=False)
    if (len(answer.plus), len(answer.minus)) == (2, 1) and answer.neighbours:
        # As one is to the word taken away, so is the answer to the other.
        for start, end in ((2, 1), (0, 3)):
            arrow = {"arrowstyle": "->", "color": COLOURS[1]}
            axes.annotate("", place_W2[end].tolist(), place_W2[start].tolist(), arrowprops=arrow)
    axes.set_title(answer.space.title, parse_math=False)
    axes.margins(0.2)
    axes.set_xticks([])
    axes.set_yticks([])

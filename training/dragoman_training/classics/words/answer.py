"""What is asked of a space, and what it says."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_training.classics.words.space import Neighbour, Space


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

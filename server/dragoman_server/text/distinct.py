"""Which of the hypotheses of a sentence are worth returning beside the best one.

A search keeps sequences of tokens apart, and several may be one text, cut into tokens in other ways. Nearly
always it also finds that nothing is said, with a small probability.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from dragoman_server.engine import Hypothesis


class _HasText(Protocol):
    @property
    def text(self) -> str: ...


TextT = TypeVar("TextT", bound=_HasText)


class ReadHypothesis(NamedTuple):
    """A hypothesis with its text."""

    hypothesis: Hypothesis
    text: str


def distinct(
    ranked: Iterable[Hypothesis], read: Callable[[Sequence[int]], str], *, most: int
) -> list[ReadHypothesis]:
    """At most so many of the hypotheses, in their order, no two with the same text and none without any.

    The first always stays, even if it is empty: the best translation is the same however many are asked for.
    """
    found: dict[str, ReadHypothesis] = {}
    for hypothesis in ranked:
        text = read(hypothesis.tokens)
        if not found or (text.strip() and text not in found):
            found[text] = ReadHypothesis(hypothesis, text)
            if len(found) == most:
                break
    return list(found.values())


def first_of_each_text(ranked: Iterable[TextT]) -> tuple[TextT, ...]:
    """In their order, each one whose text none before it has."""
    first: dict[str, TextT] = {}
    for hypothesis in ranked:
        first.setdefault(hypothesis.text, hypothesis)
    return tuple(first.values())

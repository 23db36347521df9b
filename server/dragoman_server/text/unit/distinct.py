"""Which of the hypotheses of a sentence are worth returning beside the best one.

A search keeps sequences of tokens apart, and several may be one text, cut into tokens in other ways. Nearly
always it also finds that nothing is said, with a small probability.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar


class _HasText(Protocol):
    @property
    def text(self) -> str: ...


TextT = TypeVar("TextT", bound=_HasText)


def distinct(ranked: Iterable[TextT], *, most: int) -> Iterator[TextT]:
    """At most so many of the hypotheses, in their order, no two with the same text and none without any.

    The first always stays, even if it is empty: the best translation is the same however many are asked for.
    """
    texts: set[str] = set()
    for hypothesis in ranked:
        text = hypothesis.text
        if not texts or (text.strip() and text not in texts):
            texts.add(text)
            yield hypothesis
            if len(texts) == most:
                return


def first_of_each_text(ranked: Iterable[TextT]) -> tuple[TextT, ...]:
    """The items in their order, without those whose text came before."""
    first: dict[str, TextT] = {}
    for hypothesis in ranked:
        first.setdefault(hypothesis.text, hypothesis)
    return tuple(first.values())

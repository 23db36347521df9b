"""Words that stand for marks while a sentence is translated: such as models copy.

Measured with models/de-en/1 and en-de/1, beam 4, a word put anywhere into 160 sentences: London, Peter,
Berlin and Anna are copied once in 85 to 93% of the beams; numbers of two digits in 86 to 94%, and in 81 to
88% of those where a name is not; Google and Bob in 1% out of German; made-up symbols such as "XX" in 0 to 2%.
Which of them a model copies is not asked beforehand, since every answer is checked.
"""

import re
from collections.abc import Sequence

from dragoman_bundle.languages import HANGUL, UNSPACED_CHARACTERS

from dragoman_server.text.marks import Kind, Mark

_NAMES = (
    *("London", "Peter", "Berlin", "Anna", "Paris", "Emily"),
    *("David", "Tom", "John", "Boston", "Facebook", "Mary"),
)
_NUMBERS = tuple(map(str, (37, 41, 53, 29, 67, 83, 71, 59, 43, 97, 61, 73)))
_QUANTITY = re.compile(
    r"[^\w]*(?:\d+\$?)?(?:\.?\d*)?[di]|\W*n\W*|\W*(?:count|num|number|total|size|quantity|amount|anzahl)\w*\W*|\W*\d+\W*|.*%%",
    re.IGNORECASE,
)

_OF_WORD = rf"[^\W{UNSPACED_CHARACTERS}{HANGUL}]"
"""A letter next to which a mask is part of another word: in "我在Boston工作" and "Boston에서" it is none."""

NUM_VARIANTS = 3
"""Ways to choose masks, of which the first is tried before the others."""


def masks_for(
    marks: Sequence[Mark], texts: Sequence[str], sentence: str, *, variant: int
) -> list[str] | None:
    """A word for each of the spans, whose own `texts` are given, none of which is in the sentence or another.

    None where there are not as many.
    """
    names, numbers = (iter(_unused(words, sentence, variant)) for words in (_NAMES, _NUMBERS))
    chosen = []
    for mark, text in zip(marks, texts, strict=True):
        is_number = mark.kind in (Kind.NUMBER, Kind.QUANTITY) or (
            mark.kind is Kind.PLACEHOLDER and is_quantity(text)
        )
        # The last variant is the other way round.
        word = next(numbers if is_number == (variant < NUM_VARIANTS - 1) else names, None)
        if word is None:
            return None
        chosen.append(word)
    return chosen


def is_quantity(placeholder: str) -> bool:
    """Whether a number takes the place of a placeholder, by how it is written."""
    return _QUANTITY.fullmatch(placeholder) is not None


def occurrences(word: str, answer: str) -> list[tuple[int, int]]:
    """Where a mask stands in an answer as a word of its own."""
    digits = rf"(?<!{_OF_WORD})(?<![.,:/\-−]){word}(?!{_OF_WORD}|[.,:/]\d)"
    pattern = digits if word.isdigit() else rf"(?<!{_OF_WORD}){word}(?!{_OF_WORD})"
    return [found.span() for found in re.finditer(pattern, answer)]


def _unused(words: Sequence[str], sentence: str, variant: int) -> list[str]:
    folded = sentence.casefold()
    return [word for word in (*words[variant:], *words[:variant]) if word.casefold() not in folded]

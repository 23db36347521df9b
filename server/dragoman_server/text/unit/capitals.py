"""Text in capitals, as a model reads it: models learn few words in them.

Where it is translated to is in capitals again.
"""

import re

MIN_LETTERS = 5
"""Fewest letters of a single word that counts as written in capitals: shorter ones are abbreviations, as
"NATO"."""

_WORD = re.compile(r"[^\W\d_]+")


def is_in_capitals(text: str) -> bool:
    """Whether all its letters are capitals, and there are enough to be more than an abbreviation."""
    if not text.isupper():
        return False
    found = _WORD.findall(text)
    return (len(found) > 1 and sum(map(len, found)) >= MIN_LETTERS) or any(
        len(word) >= MIN_LETTERS for word in found
    )


def readings(text: str) -> list[str]:
    """The text in small letters in the ways that it may be written, each as long as it: with the first letter
    large, and with that of every word."""
    small = "".join(_small(character) for character in text)
    first = next((place for place, character in enumerate(small) if character.isalpha()), 0)
    sentence = small[:first] + _large(small[first : first + 1]) + small[first + 1 :]
    title = _WORD.sub(lambda word: _large(word[0][0]) + word[0][1:], small)
    return [sentence] if title == sentence else [sentence, title]


def _small(character: str) -> str:
    small = character.lower()
    return small if len(small) == 1 else character


def _large(character: str) -> str:
    large = character.upper()
    return large if len(large) == 1 else character

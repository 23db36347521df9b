"""Text in capitals, as a model reads it: models learn few words in them.

Where it is translated to is in capitals again.
"""

import re
from collections.abc import Callable, Sequence

from dragoman_server.text.words import capitalised, in_small_letters

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
    """The text in small letters, each way as long as it: with the first letter large, and with every
    word's."""
    small = in_small_letters(text)
    sentence = _begun(small)
    title = _WORD.sub(lambda word: capitalised(word[0]), small)
    return [sentence] if title == sentence else [sentence, title]


def by_vocabulary(text: str, count_pieces: Callable[[Sequence[str]], Sequence[int]]) -> str:
    """The text in small letters, but for first letters of words that a vocabulary has with a large one.

    Those are the words that are fewer pieces with it, as German nouns are. As long as the text.
    """
    small = in_small_letters(text)
    words = list(dict.fromkeys(_WORD.findall(small)))
    num_pieces = count_pieces([*words, *map(capitalised, words)])
    is_large = {word: num_pieces[len(words) + rank] < num_pieces[rank] for rank, word in enumerate(words)}
    return _begun(_WORD.sub(lambda word: capitalised(word[0]) if is_large[word[0]] else word[0], small))


def _begun(text: str) -> str:
    """The text with its first letter large."""
    return capitalised(text, next((index for index, letter in enumerate(text) if letter.isalpha()), 0))

"""Words that a model can't read: its vocabulary lacks them in part, or they are of a foreign script.

Latin is at home in texts of every language.
"""

import functools
import itertools
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from importlib.resources import files

from dragoman_bundle.languages import primary_language

from dragoman_server.text.mapped import Span, moved
from dragoman_server.text.marks import Kind, Mark
from dragoman_server.text.words import words

_EVERYWHERE = (
    *("LATIN", "FULLWIDTH", "FEMININE", "MASCULINE", "MODIFIER", "MICRO", "SUPERSCRIPT", "SUBSCRIPT"),
    "DOUBLE-STRUCK",
)


def unreadable_words(text: str, span: Span, unknown: Sequence[Span], *, language: str) -> Iterator[Mark]:
    """The words of a unit at `span` of `text` that hold any of the `unknown` ranges, neighbours as one.

    A sign that is unknown is left out of the sentence and set in afterwards, as emoji are; one that is
    doubled, such as "**", stays together.
    """
    start, end = span
    unit = text[start:end]
    found: list[Span] = []
    for first, last in words(unit):
        is_unknown = _overlaps(unknown, first, last)
        word = unit[first:last]
        if not (is_unknown or is_foreign(word, language)):
            continue
        if not any(map(str.isalnum, word)):
            for position, end_of_run in _runs_of_one_sign(word, first):
                if _overlaps(unknown, position, position + 1):
                    yield Mark(span=moved((position, end_of_run), start), kind=Kind.EMOJI)
        elif found and not unit[found[-1][1] : first].strip():
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    for word_span in found:
        yield Mark(span=moved(word_span, start), kind=Kind.UNKNOWN)


def _overlaps(spans: Sequence[Span], first: int, last: int) -> bool:
    """Whether a range has anything of the spans, which are in order and don't overlap."""
    place = bisect_right(spans, first, key=lambda span: span[1])
    return place < len(spans) and spans[place][0] < last


def _runs_of_one_sign(word: str, offset: int) -> Iterator[Span]:
    """Where in a unit each run of the same sign begins and ends."""
    position = offset
    for _, run in itertools.groupby(word):
        end = position + len(list(run))
        yield position, end
        position = end


def is_foreign(word: str, language: str) -> bool:
    """Whether it has letters of a script that the language is not written in, and that is not Latin.

    False for a language whose script is not known here, or that has several, as Japanese has.
    """
    if word.isascii():
        return False
    script = script_of(language)
    return script is not None and any(
        character.isalpha() and not _script(character).startswith((script, *_EVERYWHERE))
        for character in word
    )


def has_no_letter_of(text: str, language: str) -> bool:
    """Whether it has letters, and none of the language's script; False where that is not known."""
    script = script_of(language)
    if script is None or (script == "LATIN" and text.isascii()):
        return False
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and not any(_script(letter).startswith((script, "MODIFIER")) for letter in letters)


@functools.cache
def script_of(language: str) -> str | None:
    """The script of a language; None where it is not known."""
    listed = tomllib.loads(files("dragoman_server.text.find").joinpath("scripts.toml").read_text("utf-8"))
    primary = primary_language(language)
    return next((script for script, languages in listed.items() if primary in languages.split()), None)


@functools.lru_cache(4096)
def _script(character: str) -> str:
    return unicodedata.name(character, "UNNAMED")

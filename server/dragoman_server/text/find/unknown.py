"""Words that are kept: those that a model can't read, and names, where it is certain that they are some.

A model can't read what its vocabulary lacks in part, and what is of a foreign script; Latin is at home in
texts of every language. Names stand behind titles, or in capitals that no vocabulary has; they are kept where
both languages are written in Latin letters.
"""

import functools
import itertools
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
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


MIN_PIECES = 3
"""Fewest pieces of a word in capitals that a vocabulary does not know."""
MAX_LETTERS = 6
"""Most letters of such a word: longer ones are seldom names."""
_NAME = r"[^\W\d_]+(?:['’-][^\W\d_]{2,})*"
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ]"
_SMALL = re.compile(r"(?<!\w)[^\W\d_A-Z]{2,}")
_CAPITALS = re.compile(
    r"(?<![\w&'’-])[^\W\d_a-z]{2,}(?:&[^\W\d_a-z]+)?(?![\w&'’-])|(?<!\w)[A-Z]['’][A-Z][a-z]+(?!\w)"
)
_LINE = re.compile(r"[^\n]+")


def names_in(
    text: str, languages: tuple[str, str], count_pieces: Callable[[Sequence[str]], Sequence[int]]
) -> Iterator[Mark]:
    """Marks of the names of a text between two languages. `count_pieces` says how many pieces of the
    vocabulary words are."""
    if not all(script_of(language) == "LATIN" for language in languages):
        return
    source = primary_language(languages[0])
    if source in _rules():
        titled, others = _rules()[source]
        for found in titled.finditer(text):
            if found[1][0].isupper() and found[1] not in others:
                yield Mark(span=found.span(1), kind=Kind.NAME)
    # Of a line in capitals none is certain.
    found_words = [
        word
        for line in _LINE.finditer(text)
        if _SMALL.search(text, *line.span())
        for word in _CAPITALS.finditer(text, *line.span())
    ]
    if found_words:
        as_written = [word[0] for word in found_words]
        counts = count_pieces([*as_written, *map(str.lower, as_written)])
        for word, count, count_small in zip(found_words, counts, counts[len(found_words) :], strict=False):
            # Not a word that is stressed, as "NOT" and "CANCEL" are.
            is_name = count_small > 1 and word[0][0].isupper() and len(word[0]) <= MAX_LETTERS
            if is_name and count >= MIN_PIECES:
                yield Mark(span=word.span(), kind=Kind.NAME)


@functools.cache
def _rules() -> dict[str, tuple[re.Pattern[str], frozenset[str]]]:
    """The rules by language: an expression for a title and in its first group a name behind it, and words
    that are none."""
    path = files("dragoman_server.text.find") / "names.toml"
    rules = {}
    for language, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        titles = "|".join(map(re.escape, sorted(table["titles"].split(), key=len, reverse=True)))
        more = f"(?: (?={_CAPITAL}){_NAME}){{0,{table['words'] - 1}}}"
        expression = rf"(?<!\w)(?:(?:{titles})[ \u00a0])+({_NAME}{more})(?!\w)"
        rules[language] = (
            re.compile(expression),
            frozenset([*table["others"].split(), *table["titles"].split()]),
        )
    return rules

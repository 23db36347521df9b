"""Names, where it is certain that they are some: behind titles, and in capitals that no vocabulary has.

They are kept where both languages are written in Latin letters.
"""

import functools
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files

from dragoman_bundle.languages import primary_language

from dragoman_server.text.find.unknown import script_of
from dragoman_server.text.marks import Kind, Mark

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
    """By language, what finds a title and in its first group a name behind it, and words that are none."""
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

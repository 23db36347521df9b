"""Texts whose words have lost the endings that inflect them, by Snowball's stemmers."""

import functools
import re

import snowballstemmer
from dragoman_bundle.languages import primary_language

from dragoman_server.text.mapped import Mapped

_WORD = re.compile(r"[^\W_]+")
_CODES = """
ar ca cs da de el en es et eu fa fi fr ga hi hu hy id it lt nb ne nl nn no pl pt ro ru sr sv ta tr yi
"""
_STEMMERS = """
arabic catalan czech danish german greek english spanish estonian basque persian finnish french irish
hindi hungarian armenian indonesian italian lithuanian norwegian nepali dutch norwegian norwegian polish
portuguese romanian russian serbian swedish tamil turkish yiddish
"""
"""Snowball's names of the languages, in the order of their codes."""
_NAMES = dict(zip(_CODES.split(), _STEMMERS.split(), strict=True))


MAX_LETTERS = 40
"""Longer words are as they are."""


def by_stems(text: str, language: str) -> Mapped:
    """The text with the stem of each word in its place, in small letters; where the language has no stemmer,
    the words are as they are."""
    stemmer = _NAMES.get(primary_language(language))
    return Mapped.of(text).edited(
        (found.span(), _stem(found[0].lower(), stemmer)) for found in _WORD.finditer(text)
    )


@functools.lru_cache(1 << 16)
def _stem(word: str, stemmer: str | None) -> str:
    if stemmer is None or len(word) > MAX_LETTERS:
        return word
    # A stemmer remembers the word that it is at, and other threads have words, too.
    stem: str = snowballstemmer.stemmer(stemmer).stemWord(word)
    return stem

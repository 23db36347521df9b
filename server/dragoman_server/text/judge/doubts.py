"""What a source and its translation tell against each other, by the limits of `doubts.toml`. Pure.

It takes nothing of how the translation was made: a person's are doubted in the same way.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any
from unicodedata import combining, normalize

from dragoman_bundle.decoding import num_repeated, words_of

from dragoman_server.text.mapped import Span
from dragoman_server.text.translated import WarningKind

CountPieces = Callable[[Sequence[str]], Sequence[int]]
"""The pieces of the source's vocabulary that each of some words has."""
Doubt = tuple[WarningKind, Span]
"""What may be wrong with the translation of a range of the source."""

LIMITS: dict[str, dict[str, Any]] = tomllib.loads(
    files(__package__).joinpath("doubts.toml").read_text(encoding="utf-8")
)
_PAIR = re.compile(f"[{re.escape(LIMITS['brackets']['pairs'] + LIMITS['brackets']['quotes'])}]")
_RUN = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W\d_]+")


def doubts(
    source: str,
    translation: str,
    *,
    length_ratio: float | None,
    count_pieces: CountPieces,
    translated: Sequence[Span] | None = None,
) -> Iterator[Doubt]:
    """What is to be told of a translation.

    `length_ratio` is how many characters a translation has for one of its source, None where nobody knows;
    `translated` are the ranges of the source in which nothing is kept, None for all of it.
    """
    whole = 0, len(source)
    for kind, is_found in (
        *_lengths(source, translation, length_ratio),
        (WarningKind.REPETITION, _repeats(source, translation)),
        (WarningKind.BRACKETS, _lacks_pairs(source, translation)),
    ):
        if is_found:
            yield kind, whole
    spans = [whole] if translated is None else translated
    yield from ((WarningKind.NAME_MISSING, span) for span in _names(source, translation, count_pieces, spans))
    yield from ((WarningKind.UNTRANSLATED, span) for span in _copied(source, translation, spans))


def _lengths(source: str, translation: str, length_ratio: float | None) -> Iterator[tuple[WarningKind, bool]]:
    way = "_uncalibrated" if length_ratio is None else ""
    usual, length = (length_ratio or 1) * len(source), len(translation)
    least, most = LIMITS["omission"], LIMITS["length"]
    yield (
        WarningKind.OMISSION,
        length < least["min_length" + way] * usual - least["free_characters" + way],
    )
    yield WarningKind.LENGTH, length > most["max_length" + way] * usual + most["free_characters" + way]


def _repeats(source: str, translation: str) -> bool:
    if not num_repeated(words_of(translation)):
        return False
    size = LIMITS["repetition"]["words"]

    def most_often(text: str) -> int:
        words = words_of(text)
        counts = Counter(zip(*(words[rank:] for rank in range(size)), strict=False))
        return max(counts.values(), default=1)

    def follow_themselves(text: str) -> bool:
        return any(word == before for before, word in pairwise(text.casefold().split()))

    if follow_themselves(translation) and not follow_themselves(source):
        return True
    return most_often(translation) > most_often(source)


def _lacks_pairs(source: str, translation: str) -> bool:
    if not (_PAIR.search(source) or _PAIR.search(translation)):
        return False
    pairs, quotes = LIMITS["brackets"]["pairs"], LIMITS["brackets"]["quotes"]
    if any(source.count(bracket) != translation.count(bracket) for bracket in pairs):
        return True
    before, after = (sum(map(text.count, quotes)) for text in (source, translation))
    return before % 2 == 0 and (after % 2 == 1 or (before > 0) != (after > 0))


def _names(source: str, translation: str, count_pieces: CountPieces, spans: Sequence[Span]) -> Iterator[Span]:
    limits = LIMITS["name_missing"]
    found = [
        name
        for span in spans
        for runs in [list(_RUN.finditer(source, *span))]
        for earlier, before, run in zip(runs, runs[1:], runs[2:], strict=False)
        if earlier[0][-1] not in limits["ends"]
        and before[0].isalpha()
        and before[0][0].isupper()
        and (name := _LETTERS.match(source, *run.span()))
        and len(name[0]) >= limits["min_letters"]
        and name[0].istitle()
    ]
    if not found:
        return
    words = words_of(_bare(translation))
    large, small = (count_pieces([form(name[0]) for name in found]) for form in (str, str.lower))
    for name, num_large, num_small in zip(found, large, small, strict=True):
        if num_large < 2 or len(name[0]) > limits["max_letters_per_piece"] * num_large:
            continue
        beginning = _bare(name[0].casefold())[: limits["beginning_letters"]]
        if num_small >= limits["min_pieces"] and not any(word.startswith(beginning) for word in words):
            yield name.span()


def _bare(text: str) -> str:
    """The text without the marks on its letters."""
    return "".join(letter for letter in normalize("NFKD", text) if not combining(letter))


def _copied(source: str, translation: str, spans: Sequence[Span]) -> Iterator[Span]:
    """The longest runs of words that stand in the translation, too."""
    size, num_small = LIMITS["untranslated"]["words"], LIMITS["untranslated"]["small_words"]
    written = translation.split()
    if len(set(written).intersection(source.split())) < num_small:
        return
    runs = {tuple(written[start : start + size]) for start in range(len(written) - size + 1)}
    for span in spans:
        words = list(_RUN.finditer(source, *span))
        start = 0
        while start + size <= len(words):
            end = start
            while tuple(word[0] for word in words[end : end + size]) in runs:
                end += 1
            run = words[start : end + size - 1] if end > start else []
            if sum(word[0][0].islower() for word in run) >= num_small:
                yield run[0].start(), run[-1].end()
            start = max(start + 1, end + size - 1 if end > start else 0)

"""Terms and patterns that a caller or a glossary gives, found in texts.

Terms are found where they stand as words of their own, if asked for in any inflected form, by the stems of
Snowball's stemmers. Patterns are in the syntax of RE2, which takes time in proportion to the text for any of
them.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import re2
from ahocorasick_rs import AhoCorasick, Implementation, MatchKind
from dragoman_bundle.languages import primary_language

from dragoman_server.text.mapped import Mapped, Span
from dragoman_server.text.marks import Kind, Mark
from dragoman_server.text.words import capitalised, in_small_letters, unbroken

# Stand around every range that no term begins or ends within. So what is found has whole words only, and a
# longer term that would end in a word hides none that fits. Neither is a character of any text.
_OPENS, _CLOSES = "\ufdd0", "\ufdd1"

MAX_OUTPUT_RATIO = 20
"""So many times as long as a text may all translations of its terms be together; `OUTPUT_SLACK` characters
are always free."""
OUTPUT_SLACK = 100_000


class TermOutputError(ValueError):
    """The translations of a text's terms are far longer than the text."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"has terms whose translations have more than {limit} characters together, each counted as often "
            "as it stands in the text; shorten them, or cut the text up"
        )


@dataclass(frozen=True, kw_only=True)
class Term:
    """A word or words of the source language, and their translation; None keeps them."""

    source: str
    target: str | None


class TermIndex:
    """Finds any number of terms in one pass over a text (Aho and Corasick 1975)."""

    def __init__(self, terms: Sequence[Term], *, stemmed_in: str = "", is_as_written: bool = False) -> None:
        """Makes an index; of two terms with the same source the first counts, and none has an empty source.

        `stemmed_in` is a language in which translated terms are found by their stems, too. Translations that
        are `is_as_written` have no other capitals.
        """
        first: dict[str, Term] = {}
        for term in terms:
            first.setdefault(in_small_letters(term.source), term)
        self._terms = list(first.values())
        self._stemmed_in, self._is_as_written = stemmed_in, is_as_written
        self._automata: tuple[_Automaton, _Automaton, _Automaton] | None = None

    def __len__(self) -> int:
        return len(self._terms)

    def find(self, text: str) -> Iterator[Mark]:
        """Where terms stand, whatever the case of their letters: from left to right, of those that begin at
        one place the longest, and none that overlaps one before it. Those found by stems may overlap others.

        A term that is to be there as it is must be written with the same letters: "US" is not "us". What is
        left between such terms is looked through for the others. Raises TermOutputError.
        """
        if self._automata is None:
            # By the thread that needs them: thousands of terms take their time.
            terms = [term for term in self._terms if term.target is not None]
            inflected = terms if self._stemmed_in else []
            self._automata = (
                _Automaton(_kept_spellings(self._terms)),
                _Automaton((in_small_letters(term.source), term) for term in terms),
                _Automaton(
                    # Of short words stemmers leave the commonest endings of all.
                    (by_stems(term.source + ending, self._stemmed_in).text, term)
                    for ending in ("", "s", "es")
                    for term in inflected
                ),
            )
        kept, translated, by_stem = self._automata
        marked = _marked(text)
        folded = in_small_letters(marked.text)
        searched = []
        end = 0
        for (start, stop), _ in kept.find(marked.text):
            yield Mark(span=marked.back((start, stop)), kind=Kind.NAMED)
            searched += [folded[end:start], _OPENS * (stop - start)]
            end = stop
        searched.append(folded[end:])
        found = {marked.back(span): term for span, term in translated.find("".join(searched))}
        if self._stemmed_in:
            stemmed = by_stems(text, self._stemmed_in)
            marked = stemmed.then(_marked(stemmed.text))
            for span, term in by_stem.find(in_small_letters(marked.text)):
                found.setdefault(marked.back(span), term)
        room = limit = MAX_OUTPUT_RATIO * len(text) + OUTPUT_SLACK
        for span, term in found.items():
            assert term.target is not None
            room -= len(term.target)
            if room < 0:
                raise TermOutputError(limit)
            output = term.target
            if not self._is_as_written:
                output = _in_case_of(text[slice(*span)], term.source, term.target)
            yield Mark(span=span, kind=Kind.TERM, output=output)


class _Automaton:
    """Finds spellings, each of a term, in what is marked."""

    def __init__(self, spellings: Iterable[tuple[str, Term]]) -> None:
        by_spelling: dict[str, Term] = {}
        for spelling, term in spellings:
            parts = (_mark(spelling[slice(*span)]) for span in unbroken(spelling))
            by_spelling.setdefault("".join(parts), term)
        self._terms = list(by_spelling.values())
        self._automaton = AhoCorasick(
            list(by_spelling),
            matchkind=MatchKind.LeftmostLongest,
            store_patterns=False,
            # Others take far more memory for a few long terms.
            implementation=Implementation.ContiguousNFA,
        )

    def find(self, marked: str) -> Iterator[tuple[Span, Term]]:
        for rank, start, end in self._automaton.find_matches_as_indexes(marked):
            yield (start, end), self._terms[rank]


def _marked(text: str) -> Mapped:
    """A text with its marks."""
    return Mapped.of(text).edited((span, _mark(text[slice(*span)])) for span in unbroken(text))


def _mark(part: str) -> str:
    return f"{_OPENS}{part}{_CLOSES}"


def _kept_spellings(terms: Iterable[Term]) -> Iterator[tuple[str, Term]]:
    """How terms that are to be there as they are may be written: as they are given, or with a capital."""
    for term in terms:
        if term.target is None:
            yield from ((spelling, term) for spelling in {term.source, capitalised(term.source)})


def _in_case_of(found: str, source: str, target: str) -> str:
    """The target with the case that the source was found in: capitals, or a first letter that is one."""
    if len(found) > 1 and found.isupper() and not source.isupper():
        return target.upper()
    if found[0] != source[0] and found[0].isupper():
        return capitalised(target)
    return target


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
MAX_STEMMED_LETTERS = 40
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
    if stemmer is None or len(word) > MAX_STEMMED_LETTERS:
        return word
    # All languages' stemmers are a tenth of what a server imports, and many have no terms.
    import snowballstemmer

    # A stemmer remembers the word that it is at, and other threads have words, too.
    stem: str = snowballstemmer.stemmer(stemmer).stemWord(word)
    return stem


MAX_PATTERN_BYTES = 1 << 20
"""Most memory of a compiled pattern: repetitions of repetitions are refused."""


class PatternError(ValueError):
    """A pattern is none, or too large."""


class Pattern:
    """Finds what a pattern matches."""

    def __init__(self, pattern: str) -> None:
        """Raises PatternError."""
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_PATTERN_BYTES
        try:
            self._pattern = re2.compile(pattern, options=options)
        except re2.error as error:
            reason = error.args[0]
            raise PatternError(reason.decode() if isinstance(reason, bytes) else str(reason)) from error

    def find(self, text: str) -> Iterator[Mark]:
        """Marks of the matches that are not empty."""
        for found in self._pattern.finditer(text):
            if found.end() > found.start():
                yield Mark(span=(found.start(), found.end()), kind=Kind.NAMED)

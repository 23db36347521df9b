"""Terms that a caller or a glossary gives, and where they stand in a text as words of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import ahocorasick_rs

from dragoman_server.text.protection.protected import Protected, SpanKind
from dragoman_server.text.words import goes_on


@dataclass(frozen=True, kw_only=True)
class Term:
    """A word or words of the source language, and their translation; None keeps them."""

    source: str
    target: str | None


class TermIndex:
    """Finds any number of terms in one pass over a text (Aho and Corasick 1975)."""

    def __init__(self, terms: Sequence[Term]) -> None:
        """Of two terms with the same source the first counts. None has an empty source."""
        first: dict[str, Term] = {}
        for term in terms:
            first.setdefault(_folded(term.source), term)
        self._terms = list(first.values())
        self._automaton = ahocorasick_rs.AhoCorasick(list(first), matchkind=ahocorasick_rs.MatchKind.Standard)

    def __len__(self) -> int:
        return len(self._terms)

    def find(self, text: str) -> Iterator[Protected]:
        """Where terms stand, whatever the case of their letters; they may overlap.

        A term that is to be there as it is must be written with the same letters: "US" is not "us".
        """
        if not self._terms:
            return
        folded = _folded(text)
        for index, start, end in self._automaton.find_matches_as_indexes(folded, overlapping=True):
            if goes_on(text, start) or goes_on(text, end):
                continue
            term, found = self._terms[index], text[start:end]
            if term.target is None:
                if found == term.source or found == _capitalised(term.source):
                    yield Protected(span=(start, end), kind=SpanKind.NAMED)
            else:
                yield Protected(
                    span=(start, end), kind=SpanKind.TERM, output=_in_case_of(found, term.source, term.target)
                )


def _in_case_of(found: str, source: str, target: str) -> str:
    """The target with the case that the source was found in: capitals, or a first letter that is one."""
    if len(found) > 1 and found.isupper() and not source.isupper():
        return target.upper()
    if found[0] != source[0] and found[0].isupper():
        return _capitalised(target)
    return target


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _folded(text: str) -> str:
    """The text in small letters, each as one code point, so that positions stay."""
    small = text.lower()
    return (
        small
        if len(small) == len(text)
        else "".join(lower if len(lower := character.lower()) == 1 else character for character in text)
    )


def merge(glossaries: Sequence[Mapping[str, str]], terms: Sequence[Term]) -> list[Term]:
    """A caller's own terms before those of glossaries, and these in their order."""
    return [
        *terms,
        *(
            Term(source=source, target=target)
            for glossary in glossaries
            for source, target in glossary.items()
        ),
    ]

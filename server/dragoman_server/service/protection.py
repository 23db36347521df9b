"""Reads off the wire what a caller wants kept: terms, patterns, glossaries and ranges, each checked."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits
from dragoman_server.errors import Violation, quote
from dragoman_server.glossaries import Glossary
from dragoman_server.text.find.terms import Pattern, PatternError, Term, TermIndex
from dragoman_server.text.mapped import Span
from dragoman_server.text.options import Finder, Protection
from dragoman_server.text.read.clean import clean

MAX_TERM_CHARACTERS = 1_000_000
"""Most characters of all terms of a call together. What finds them takes some 100 bytes for each."""

_DEFAULT = Protection()
_OFF = Protection(is_automatic=False)


def read_protection(
    message: pb.Protection,
    languages: tuple[str, str],
    glossaries: Mapping[str, Glossary],
    limits: RequestLimits,
    violations: list[Violation],
) -> Protection:
    """The protection that a caller asks for, of such texts. Adds what is wrong to `violations`."""
    is_automatic = message.automatic if message.HasField("automatic") else True
    num_terms = len(message.terms) + len(message.do_not_translate) + len(message.forbidden)
    if not (num_terms or message.patterns or message.glossaries or message.untranslated_elements):
        return _DEFAULT if is_automatic else _OFF
    finders: list[Finder] = []
    forbidden: Finder | None = None
    source_stems, target_stems = languages if message.inflected_terms else ("", "")
    excess, takes = "", "with do_not_translate and forbidden, and a call takes"
    sources = (*message.do_not_translate, *message.forbidden, *(term.source for term in message.terms))
    if num_terms > limits.max_terms:
        excess = f"are {num_terms} {takes} {limits.max_terms}"
    elif (length := sum(map(len, sources))) > MAX_TERM_CHARACTERS:
        excess = f"have {length} characters {takes} {MAX_TERM_CHARACTERS}"
    if excess:
        violations.append(_violation("terms", f"{excess}; put them into a glossary of the server"))
    elif num_terms:
        terms = _read_terms(message, violations)
        finders.append(TermIndex(terms, stemmed_in=source_stems, is_as_written=message.terms_as_written))
        words = [Term(source=word, target=word) for written in message.forbidden if (word := written.strip())]
        forbidden = TermIndex(words, stemmed_in=target_stems) if words else None
    finders += _read_patterns(message.patterns, limits, violations)
    ways = (message.inflected_terms, message.terms_as_written)
    for rank, name in enumerate(message.glossaries):
        glossary = glossaries.get(name)
        if glossary is None:
            description = f"the server does not have; it has {', '.join(glossaries) or 'none'}"
        elif (index := glossary.index(*languages, *ways)) is not None:
            finders.append(index)
            continue
        else:
            description = f"has {', '.join(glossary.languages)}; not both of {languages}"
        violations.append(_violation(f"glossaries[{rank}]", f"is {quote(name)}, which {description}"))
    if (num_elements := len(message.untranslated_elements)) > limits.max_terms:
        description = f"are {num_elements}, and a call takes {limits.max_terms}"
        violations.append(_violation("untranslated_elements", description))
    return Protection(
        is_automatic=is_automatic,
        finders=tuple(finders),
        forbidden=forbidden,
        is_inflected=message.inflected_terms,
        is_as_written=message.terms_as_written,
        untranslated_elements=frozenset(map(str.lower, message.untranslated_elements)),
    )


def read_ranges(
    ranges: Sequence[pb.TextRange], text: str, field: str, violations: list[Violation]
) -> tuple[Span, ...]:
    """The protected ranges of one text, in order."""
    bounds = sorted((range_.start, range_.end) for range_ in ranges)
    for start, end in bounds:
        if not start < end <= len(text):
            rule = f"a range ends behind its start, and within the text, which has {len(text)} characters"
            violations.append(Violation(field, f"has {start} to {end}; {rule}"))
            return ()
    for (a, b), (c, d) in pairwise(bounds):
        if c < b:
            description = f"has {a} to {b} and {c} to {d}, which overlap; join them"
            violations.append(Violation(field, description))
            return ()
    return tuple(bounds)


def _read_terms(message: pb.Protection, violations: list[Violation]) -> list[Term]:
    terms: list[Term] = []
    seen: dict[str, str] = {}
    fields: list[tuple[str, int, str, str | None]] = [
        *(("do_not_translate", rank, word, None) for rank, word in enumerate(message.do_not_translate)),
        *(("terms", rank, term.source, term.target) for rank, term in enumerate(message.terms)),
    ]
    for kind, rank, written, target in fields:
        field = f"{kind}[{rank}]"
        # As texts are.
        source = clean(written).text.strip()
        if not source:
            violations.append(_violation(field, "is empty; leave it out"))
        elif target is not None and not target.strip():
            violations.append(_violation(field, f"translates {quote(source)} by nothing; give a target"))
        elif (other := seen.setdefault(source.casefold(), field)) != field:
            violations.append(_violation(field, f"is {quote(source)}, as {other} is; leave one of them out"))
        else:
            terms.append(Term(source=source, target=target))
    return terms


def _read_patterns(
    patterns: Sequence[str], limits: RequestLimits, violations: list[Violation]
) -> list[Finder]:
    if len(patterns) > limits.max_patterns:
        description = f"are {len(patterns)}, and a call takes {limits.max_patterns}; join some with |"
        violations.append(_violation("patterns", description))
        return []
    found: list[Finder] = []
    for rank, pattern in enumerate(patterns):
        try:
            found.append(Pattern(pattern))
        except PatternError as error:
            description = f"is {quote(pattern)}, no pattern of RE2: {error}"
            violations.append(_violation(f"patterns[{rank}]", description))
    return found


def _violation(field: str, description: str) -> Violation:
    return Violation(f"protection.{field}", description)

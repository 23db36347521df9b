"""A text that is to be translated: what of it is protected, its tags, and what stands between its units."""

import html
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from dragoman_server.text.cleaning import CleanedText, Span, clean
from dragoman_server.text.markup.element import Element, Insertion
from dragoman_server.text.markup.reading import read_markup
from dragoman_server.text.options import Protection, TextFormat
from dragoman_server.text.protection.patterns import certain_spans
from dragoman_server.text.protection.protected import Protected, SpanKind, disjoint, within
from dragoman_server.wanted import Wanted


@dataclass(frozen=True, kw_only=True)
class Source:
    """A text as it is translated. Spans count code points of the cleaned text."""

    cleaned: CleanedText
    protected: tuple[Protected, ...]
    """In order; no two overlap."""
    elements: tuple[Element, ...] = ()
    """The inline elements of markup."""
    insertions: tuple[Insertion, ...] = ()
    """Other tags and comments, in order."""
    is_markup: bool = False

    @property
    def shielded(self) -> str:
        """The text to look for sentences in: in protected spans nothing ends one."""
        if not self.protected:
            return self.cleaned.text
        parts = []
        end = 0
        for item in self.protected:
            start, stop = item.span
            span = self.cleaned.text[start:stop]
            parts.append(self.cleaned.text[end:start])
            if item.floats or (item.kind is SpanKind.TERM and span.isalnum()):
                parts.append(span)
            else:
                parts.append("X" + "x" * (stop - start - 1))
            end = stop
        parts.append(self.cleaned.text[end:])
        return "".join(parts)

    def output_of(self, item: Protected) -> str:
        """The answer's text for a protected span."""
        if item.output is not None:
            return html.escape(item.output, quote=False) if self.is_markup else item.output
        start, end = self.cleaned.of_caller(item.span)
        return self.cleaned.caller_text[start:end]

    def written(
        self,
        start: int,
        end: int,
        items: Sequence[Protected],
        *,
        rewrite: Callable[[str], str] | None = None,
    ) -> str:
        """A range of the caller's own text as it stands in the answer untranslated; it holds the `items`.

        What is in none is rewritten.
        """
        text = self.cleaned.caller_text
        parts = []
        for item in items:
            if item.output is not None or rewrite:
                first, last = self.cleaned.of_caller(item.span)
                between = text[start:first]
                parts += [rewrite(between) if rewrite else between, self.output_of(item)]
                start = last
        rest = text[start:end]
        return "".join((*parts, rewrite(rest) if rewrite else rest))

    @cached_property
    def _by_start(self) -> list[tuple[int, int]]:
        return sorted((element.start, rank) for rank, element in enumerate(self.elements))

    @cached_property
    def _by_end(self) -> list[tuple[int, int]]:
        return sorted((element.end, rank) for rank, element in enumerate(self.elements))

    @cached_property
    def _insertion_places(self) -> list[int]:
        return [insertion.position for insertion in self.insertions]

    def elements_in(self, span: Span) -> list[Element]:
        """The elements with a tag strictly inside of a span."""
        ranks = {
            rank
            for places in (self._by_start, self._by_end)
            for _, rank in places[bisect_left(places, (span[0] + 1, 0)) : bisect_left(places, (span[1], 0))]
        }
        return [self.elements[rank] for rank in sorted(ranks)]

    def insertions_in(self, span: Span) -> tuple[Insertion, ...]:
        """The insertions strictly inside of a span."""
        places = self._insertion_places
        return self.insertions[bisect_right(places, span[0]) : bisect_left(places, span[1])]

    def is_crossed(self, span: Span) -> bool:
        """Whether a tag stands within a span, which so can't be treated as one."""
        return self.is_markup and bool(self.elements_in(span) or self.insertions_in(span))

    def gaps(self, spans: Sequence[Span]) -> tuple[str, ...]:
        """The texts before, between and behind units, as they stand in the answer."""
        replaced = [item for item in self.protected if item.output is not None] if self.protected else []
        if not self.is_markup and not replaced:
            return self.cleaned.between(spans)
        cleaned = self.cleaned
        plain = cleaned.between(spans)
        gaps = []
        starts = [start for start, _ in spans] + [len(cleaned.text)]
        ends = [0] + [end for _, end in spans]
        for end, start, gap in zip(ends, starts, plain, strict=True):
            items = within(replaced, (end, start))
            if items or self.is_markup:
                first = cleaned.ends[end - 1] if end else 0
                last = cleaned.starts[start] if start < len(cleaned.text) else len(cleaned.caller_text)
                gap = self.written(first, last, items)
            gaps.append(gap)
        return tuple(gaps)


def read(
    text: str, *, text_format: TextFormat, protection: Protection, ranges: Sequence[Span], wanted: Wanted
) -> Source:
    """Reads a caller's text. `ranges` of it are protected. Raises UnwantedError."""
    elements: tuple[Element, ...] = ()
    insertions: tuple[Insertion, ...] = ()
    marked: tuple[Protected, ...] = ()
    is_markup = text_format is TextFormat.HTML
    if is_markup:
        markup = read_markup(text, protection.untranslated_elements)
        cleaned, elements, insertions = markup.cleaned, markup.elements, markup.insertions
        marked = markup.protected
    else:
        cleaned = clean(text)
    found = [finder.find(cleaned.text) for finder in protection.finders]
    if protection.is_automatic:
        found.append(certain_spans(cleaned.text))
    source = Source(
        cleaned=cleaned,
        protected=disjoint(chain(marked, _of_caller(ranges, cleaned), wanted.each(chain(*found)))),
        elements=elements,
        insertions=insertions,
        is_markup=is_markup,
    )
    return _without_crossings(source) if is_markup and source.protected else source


def _of_caller(ranges: Sequence[Span], cleaned: CleanedText) -> Iterator[Protected]:
    """Ranges of the caller's text as spans of the cleaned one; of one that shows nothing there is none."""
    for start, end in ranges:
        first, last = bisect_right(cleaned.ends, start), bisect_left(cleaned.starts, end)
        if first < last:
            yield Protected(span=(first, last), kind=SpanKind.RANGE)


def _without_crossings(source: Source) -> Source:
    """Protects nothing that a tag stands within: the tag would be lost, or twice there."""
    positions = sorted(
        [boundary for element in source.elements for boundary in (element.start, element.end)]
        + [insertion.position for insertion in source.insertions]
    )
    whole = []
    for item in source.protected:
        start, end = item.span
        rank = bisect_right(positions, start)
        # What is before the tag is protected all the same, as the beginning of a URL.
        stop = min(end, positions[rank]) if rank < len(positions) else end
        if stop == end or item.output is None:
            whole.append(replace(item, span=(start, stop)))
    return replace(source, protected=tuple(whole))

"""The structure that a text goes through the server in, from its cleaning to its translation.

A stage is a function from passage to passage; each can be printed. Spans count code points of the cleaned
text where nothing else is said.
"""

import enum
import html
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dragoman_bundle import Bundle

from dragoman_server.engine.request import SearchOptions, Sentence, SentenceResult
from dragoman_server.text.mapped import Mapped, Span
from dragoman_server.text.marks import How, Kind, Mark, Value, within
from dragoman_server.text.options import TextFormat, TranslationOptions
from dragoman_server.text.seams import Seams
from dragoman_server.text.translated import NO_TIME, Timings, TranslatedHypothesis, TranslationWarning
from dragoman_server.wanted import Wanted


class Stage(enum.IntEnum):
    """How a unit is translated: the first way, and the next where the answer lacks what must be kept."""

    FIRST = 0
    """The model is shown masks for what is protected."""
    AGAIN = 1
    """So are terms, and numbers that were lost, with several choices of masks at once."""
    APART = 2
    """The unit is cut at all marks, and what is between them is translated on its own: it always works."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """A surface form of a piece: with masks, or in other letters."""

    text: Mapped
    """The text; its origin is that of the passage's tokenizer."""
    masks: tuple[tuple[str, Mark], ...] = ()
    """The words that stand for marks, in the order of the text."""
    ids: tuple[int, ...] = ()
    """Its source tokens, the end of the sentence included; none where the tokenizer sees nothing in it."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A span that is translated on its own: a unit, or a part of one."""

    span: Span
    forms: tuple[Form, ...]
    inserted: tuple[Mark, ...] = ()
    """The marks that are inserted into its translation: those that are left out, then tags, each in order."""
    elements: tuple[Mark, ...] = ()
    is_part: bool = False


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One way to translate a unit."""

    stage: Stage
    pieces: tuple[Piece, ...]
    gaps: tuple[str, ...] = ("", "")
    """The texts before, between and behind the pieces."""
    seams: Seams | None = None
    """The spaces and punctuation that belong between these and those, where the languages differ in them."""
    contents: "tuple[tuple[Mark, Attempt], ...]" = ()
    """The elements that are masked, and how what they hold is translated: its pieces are behind the first."""

    @property
    def num_tokens(self) -> int:
        """Source tokens of all that the engine searches for it, ends included."""
        return sum(len(form.ids) for piece in self.pieces for form in piece.forms)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A part of a text that is translated on its own, and how far that is."""

    span: Span
    replaced: Span
    """The span that its translation takes the place of: longer than its own where it was truncated."""
    rest: str = ""
    """The tags that stand in that behind its own, which the translation ends with."""
    marks: tuple[Mark, ...] = ()
    """What must be kept of it, with the numbers whose values are, in order."""
    tags: tuple[Mark, ...] = ()
    """The tags inside of it."""
    in_capitals: bool = False
    """Whether it is translated as if in small letters."""
    small_letters: str = ""
    """Its text in small letters, as the vocabulary has it, where it is in capitals or in title case; as long
    as it."""
    attempt: Attempt = Attempt(stage=Stage.FIRST, pieces=())
    answers: tuple[TranslatedHypothesis, ...] = ()
    """Best first, each with targets in its own code points; once there are any, the unit is done."""
    lost: tuple[Mark, ...] = ()
    """The numbers that an answer lacked, and the elements that were around no word of one."""
    first: tuple[Piece, Sequence[SentenceResult]] | None = None
    """What was shown first, and the results, where they lacked elements."""
    timings: Timings = NO_TIME
    """The seconds of all its attempts."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing is special about it."""
        return not (self.marks or self.tags or self.small_letters)

    @property
    def is_checked(self) -> bool:
        """Whether an answer may lack something."""
        return any(not mark.is_inserted for mark in (*self.marks, *self.tags))


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text on its way: cleaned, marked, cut into units, and what is known of their translations."""

    bundle: Bundle = field(repr=False)
    options: TranslationOptions
    wanted: Wanted
    """Whether anybody waits for it, with the deadline. Every stage asks it, and raises UnwantedError."""
    source: Mapped
    """The cleaned text; its origin is the caller's."""
    values: Sequence[Value] = ()
    """What its tags hold for people."""
    tokenizer_text: str
    """The cleaned text as it is tokenized, which is as long."""
    marks: tuple[Mark, ...] = ()
    """What must be kept, in order; no two overlap."""
    tags: tuple[Mark, ...] = ()
    """The tags of markup: elements, comments and tags of empty ones."""
    units: tuple[Unit, ...] = ()
    split: bool = False
    """Whether some sentence was cut because it was too long."""
    truncated: bool = False
    """Whether some sentence lost its end because it was too long."""
    warnings: tuple[TranslationWarning, ...] = ()
    """The warnings that follow from the source alone."""

    @property
    def is_markup(self) -> bool:
        """Whether the text is one with tags."""
        return self.options.text_format is TextFormat.HTML

    @property
    def languages(self) -> tuple[str, str]:
        """The languages that it is translated from and to."""
        return self.bundle.manifest.source_language, self.bundle.manifest.target_language

    def count_pieces(self, words: Sequence[str]) -> list[int]:
        """How many pieces of the source's vocabulary each of the words is."""
        return list(map(len, self.bundle.source_tokenizer.encode_ids(words)))

    @property
    def shielded(self) -> str:
        """The text to look for sentences in: within a mark none ends, but at one that is a line's end."""
        return self.source.edited(
            (
                mark.span,
                "\n" * len(range(*mark.span))
                if mark.kind is Kind.BREAK
                else "X" + "x" * (mark.span[1] - mark.span[0] - 1),
            )
            for mark in self.marks
            if not (
                mark.is_inserted
                or mark.how is How.PAIR
                or (mark.how is How.CHECK and self.source.text[slice(*mark.span)].isalnum())
            )
        ).text

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """The texts before, between and behind the units, as they stand in the translation.

        Of white space what shows nothing is left out, too: marks of direction and the like come in pairs,
        and the other one may be in a sentence.
        """
        source = self.source
        replaced = [mark for mark in self.marks if mark.output is not None]
        starts = [unit.replaced[0] for unit in self.units] + [len(source.text)]
        ends = [0] + [unit.replaced[1] for unit in self.units]
        gaps = []
        for start, end in zip(ends, starts, strict=True):
            gap = source.text[start:end]
            marks = within(replaced, (start, end))
            if marks or self.is_markup or not (not gap or gap.isspace() or source.text is source.origin):
                first = source.ends[start - 1] if start else 0
                last = source.starts[end] if end < len(source.text) else len(source.origin)
                gap = self.written((first, last), marks)
            gaps.append(gap)
        return tuple(gaps)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences that the engine searches next; none where every unit has its answers."""
        options = self.options
        sentences = []
        prefix = options.target_prefix
        for unit in self.units:
            if unit.answers and not prefix:
                continue
            is_list = unit.is_checked and unit.attempt.stage is not Stage.APART
            num_hypotheses = options.beam_size if is_list else options.num_searched_hypotheses
            for piece in unit.attempt.pieces:
                for form in piece.forms:
                    if form.ids and not unit.answers:
                        has_tags = bool(piece.inserted or piece.elements)
                        sentences.append(
                            Sentence(
                                source=form.ids,
                                options=self._search_options(len(form.ids), len(prefix), num_hypotheses),
                                target_start=self.bundle.target_start,
                                target_prefix=prefix,
                                return_attention=options.return_alignments or has_tags,
                                priority=options.priority,
                                deadline=self.wanted.deadline,
                                caller=self.wanted.caller,
                            )
                        )
                if any(form.ids for form in piece.forms):
                    # It is the first sentence's.
                    prefix = ()
        return tuple(sentences)

    def _search_options(
        self, num_source_tokens: int, num_prefix_tokens: int, num_hypotheses: int
    ) -> SearchOptions:
        options = self.options
        max_output_tokens = options.max_output_tokens
        if max_output_tokens is None:
            limit = self.bundle.manifest.decoding.output_limit(num_source_tokens)
            maximum = options.max_default_output_tokens or limit
            max_output_tokens = max(min(maximum, limit), num_prefix_tokens + 1)
        return SearchOptions(
            beam_size=options.beam_size,
            num_hypotheses=num_hypotheses,
            length_penalty=options.length_penalty,
            max_output_tokens=max_output_tokens,
        )

    def output_of(self, mark: Mark) -> str:
        """The translation's text for a mark."""
        if mark.output is None:
            return self.source.origin[slice(*self.source.back(mark.span))]
        is_text = self.is_markup and mark.kind not in (Kind.TAG, Kind.ELEMENT)
        return html.escape(mark.output, quote=False) if is_text else mark.output

    def written(
        self, span: Span, marks: Sequence[Mark], *, rewrite: Callable[[str], str] | None = None
    ) -> str:
        """A range of the caller's own text as it stands in the translation; it holds the `marks`.

        What is in none of them is rewritten.
        """
        start, end = span
        parts = []
        for mark in marks:
            if mark.output is not None or rewrite:
                first, last = self.source.back(mark.span)
                between = self.source.origin[start:first]
                parts += [rewrite(between) if rewrite else between, self.output_of(mark)]
                start = last
        rest = self.source.origin[start:end]
        return "".join((*parts, rewrite(rest) if rewrite else rest))

    @cached_property
    def _edges(self) -> list[tuple[int, int]]:
        """Where tags stand, with their ranks, in order."""
        return sorted({(place, rank) for rank, tag in enumerate(self.tags) for place in tag.span})

    def tags_in(self, span: Span) -> list[Mark]:
        """The marks of tags that stand strictly inside of a span."""
        return [self.tags[rank] for rank in sorted({rank for _, rank in self._edges_in(span)})]

    def is_crossed(self, span: Span) -> bool:
        """Whether a tag stands strictly inside of a span, which so can't be treated as one."""
        return bool(self._edges_in(span))

    def _edges_in(self, span: Span) -> list[tuple[int, int]]:
        first, last = bisect_left(self._edges, (span[0] + 1, 0)), bisect_left(self._edges, (span[1], 0))
        return self._edges[first:last]

    def edge_behind(self, position: int) -> int | None:
        """Where the first tag behind a position stands."""
        rank = bisect_right(self._edges, (position, len(self.tags)))
        return self._edges[rank][0] if rank < len(self._edges) else None

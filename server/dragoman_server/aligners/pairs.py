"""Texts and translations as parts that an aligner links at once, and its links as those of the texts.

Must not know gRPC, nor when anything runs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dragoman_server.aligners.aligner import Link, TextPair, WordLinker
from dragoman_server.errors import Violation, raise_if_any, refusal
from dragoman_server.text.align.pairs import AlignedPair, matching_parts
from dragoman_server.text.mapped import Mapped, Span, moved
from dragoman_server.text.read.clean import clean
from dragoman_server.text.translated import Alignment, Timings
from dragoman_server.wanted import Wanted

MAX_PORTION_LINKS = 1 << 16
"""Most links that there can be in what is linked in one go, which takes some 0.1 s: so nobody waits for long.
A part with more is a portion of its own."""
MAX_PORTION_PARTS = 256
"""Most parts of it."""

# What each part takes, however short.
_PART_WORK = 100


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part that is linked at once: a line with that of the translation, or all of both texts."""

    pair: int
    """Which pair of the request it is of."""
    spans: tuple[Span, Span]
    """Its place in the cleaned text, and in the cleaned translation."""
    texts: TextPair
    num_words: tuple[int, int]

    @property
    def num_links(self) -> int:
        """How many there can be."""
        return self.num_words[0] * self.num_words[1]

    @property
    def work(self) -> int:
        """The cost of it, roughly, as a number of links."""
        return self.num_links + _PART_WORK


@dataclass(frozen=True, kw_only=True)
class CutPairs:
    """Pairs of texts, cleaned and cut."""

    cleaned: tuple[tuple[Mapped, Mapped], ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True)
class LinkedPart:
    """The links of a part, and when it had its turn, in seconds since its call came."""

    part: Part
    links: Sequence[Link]
    began: float
    ended: float


def cut_pairs(pairs: Sequence[TextPair], linker: WordLinker, max_words: int, wanted: Wanted) -> CutPairs:
    """Raises InvalidRequestError for a part with more words, and for texts the other way round; and
    UnwantedError.
    """
    cleaned = tuple((clean(source), clean(target)) for source, target in wanted.each(pairs))
    parts: list[Part] = []
    violations: list[Violation] = []
    for index, sides in enumerate(cleaned):
        for spans in wanted.each(matching_parts(*sides)):
            source, target = (side.text[slice(*span)] for side, span in zip(sides, spans, strict=True))
            num_words = linker.count_words(source), linker.count_words(target)
            part = Part(pair=index, spans=spans, texts=(source, target), num_words=num_words)
            parts.append(part)
            violations += _too_long(part, sides, max_words)
    raise_if_any(violations)
    # The first tell enough.
    if linker.is_swapped([part.texts for part in parts[:MAX_PORTION_PARTS]]):
        description = (
            "have more words of the aligner's target language in their texts, and of its source language in "
            "the translations: they belong the other way round"
        )
        raise refusal("pairs", description)
    return CutPairs(cleaned=cleaned, parts=tuple(parts))


def portions(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts in their order, as many at a time as are linked in one go."""
    portion: list[Part] = []
    num_links = 0
    for part in parts:
        is_full = len(portion) == MAX_PORTION_PARTS or num_links + part.num_links > MAX_PORTION_LINKS
        if portion and is_full:
            yield portion
            portion, num_links = [], 0
        portion.append(part)
        num_links += part.num_links
    if portion:
        yield portion


class PairWriter:
    """Has each pair written, in order, as soon as all of it is linked: links take much room until then."""

    def __init__(self, cut: CutPairs, write: Callable[[AlignedPair], object]) -> None:
        self._cleaned = cut.cleaned
        self._write = write
        self._num_written = 0
        self._linked: list[LinkedPart] = []

    def add(self, linked: Sequence[LinkedPart]) -> None:
        """The next parts, in their order."""
        for one in linked:
            self._write_until(one.part.pair)
            self._linked.append(one)

    def end(self) -> None:
        """There are no more."""
        self._write_until(len(self._cleaned))

    def _write_until(self, pair: int) -> None:
        while self._num_written < pair:
            self._write(_complete(self._cleaned[self._num_written], self._linked))
            self._num_written += 1
            self._linked = []


def _complete(sides: tuple[Mapped, Mapped], linked: Sequence[LinkedPart]) -> AlignedPair:
    alignments = [
        Alignment(
            source=sides[0].back(moved(link.source, one.part.spans[0][0])),
            target=sides[1].back(moved(link.target, one.part.spans[1][0])),
            weight=link.weight,
        )
        for one in linked
        for link in one.links
    ]
    # Of its parts, the last had to wait for longest.
    began, ended = (linked[-1].began, linked[-1].ended) if linked else (0.0, 0.0)
    return AlignedPair(
        alignments=tuple(alignments),
        num_source_tokens=sum(one.part.num_words[0] for one in linked),
        num_target_tokens=sum(one.part.num_words[1] for one in linked),
        timings=Timings(queue=began, decode=ended - began),
    )


def _too_long(part: Part, sides: tuple[Mapped, Mapped], max_words: int) -> Iterator[Violation]:
    names = ("source", "target")
    for name, side, span, num_words in zip(names, sides, part.spans, part.num_words, strict=True):
        if num_words > max_words:
            first, end = side.back(span)
            description = (
                f"characters {first} to {end} have {num_words} words, and at most {max_words} are linked "
                "at once; cut text and translation at the same places, by line ends or into several pairs"
            )
            yield Violation(f"pairs[{part.pair}].{name}", description)

"""Texts that go through a language between two models: the request to each, and one answer made of both.

Pure: messages in, messages out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeVar

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import Violation, raise_if_any
from dragoman_server.service.responses import write_alignment

Settings = TypeVar("Settings", pb.TranslateRequest, pb.TranslateStreamConfig)

MIN_WEIGHT = 0.1
"""A composed link below it is left out, unless it is its target word's strongest."""


def check_ranges(ranges: Sequence[object], field: str) -> None:
    """Raises InvalidRequestError for protected ranges, which are of one model."""
    _refuse({field: bool(ranges)})


def first_leg(message: Settings, pivot: str, model: str) -> Settings:
    """The same request from the source language to the one between.

    Raises InvalidRequestError for what only one model can do.
    """
    _refuse(
        {
            "protection.terms": bool(message.protection.terms),
            "protection.glossaries": bool(message.protection.glossaries),
            "protected_ranges": isinstance(message, pb.TranslateRequest) and bool(message.protected_ranges),
        }
    )
    leg = _copy(message)
    leg.target_language, leg.model = pivot, model
    for option in ("num_hypotheses", "target_prefix", "formality"):
        leg.options.ClearField(option)
    return leg


def second_leg(message: Settings, pivot: str, model: str) -> Settings:
    """The same request, without its texts, from the language between to the target language."""
    leg = _copy(message)
    leg.source_language, leg.model = pivot, model
    if isinstance(leg, pb.TranslateRequest):
        del leg.texts[:]
    return leg


def _copy(message: Settings) -> Settings:
    leg = type(message)()
    leg.CopyFrom(message)
    leg.ClearField("pivot_language")
    return leg


def _refuse(fields: Mapping[str, bool]) -> None:
    description = "is of one model, and these texts go through two; leave it out, or make two calls"
    raise_if_any([Violation(field, description) for field, is_set in fields.items() if is_set])


def join(text: str, before: pb.Translation, after: pb.Translation) -> None:
    """Makes `after` a translation of the caller's own text: links, warnings, tokens and times of both."""
    links = Links(before.hypotheses[0].alignments if before.hypotheses else ())
    for hypothesis in after.hypotheses:
        composed = compose(links, hypothesis.alignments)
        del hypothesis.alignments[:]
        hypothesis.alignments.extend(composed)
    later = [_of_source(warning, links, text) for warning in after.warnings]
    del after.warnings[:]
    # Parts of the language between may be of one part of the text.
    distinct = {(found.kind, found.start, found.end): found for found in [*before.warnings, *later]}
    after.warnings.extend(distinct.values())
    # Both have to be good; which sentence of the text is which of the language between nobody knows.
    after.confidence *= before.confidence
    if not before.HasField("confidence") or not after.sentence_confidences:
        after.ClearField("confidence")
    del after.sentence_confidences[:]
    after.split |= before.split
    after.truncated |= before.truncated
    after.sentences, after.source_tokens = before.sentences, before.source_tokens
    for name in ("queue", "encode", "decode"):
        total, of_first = getattr(after.timings, name), getattr(before.timings, name)
        total.FromNanoseconds(total.ToNanoseconds() + of_first.ToNanoseconds())


class Links:
    """Links of the first model, by what they have of the language between."""

    def __init__(self, links: Iterable[pb.Alignment]) -> None:
        self._links = sorted(links, key=lambda link: link.target_start)
        self._starts = [link.target_start for link in self._links]
        self._reached = list(accumulate((link.target_end for link in self._links), max))

    def over(self, start: int, end: int) -> Iterator[pb.Alignment]:
        """Those that share a character with the range."""
        for rank in range(bisect_right(self._reached, start), bisect_left(self._starts, end)):
            if start < self._links[rank].target_end:
                yield self._links[rank]


def compose(first: Links, second: Iterable[pb.Alignment]) -> list[pb.Alignment]:
    """Links of source and target over the words between that both have.

    A word of the language between passes its share on: weights multiply along a way, and ways add up.
    """
    weights: dict[tuple[int, int], dict[tuple[int, int], float]] = {}
    for link in second:
        of_target = weights.setdefault((link.target_start, link.target_end), {})
        for way in first.over(link.source_start, link.source_end):
            source = (way.source_start, way.source_end)
            of_target[source] = of_target.get(source, 0.0) + way.weight * link.weight
    composed = []
    for target in sorted(weights):
        of_target = weights[target]
        strongest = max(of_target.values(), default=0.0)
        for source in sorted(of_target, key=lambda source: (-of_target[source], source)):
            if of_target[source] >= min(MIN_WEIGHT, strongest):
                composed.append(write_alignment(source, target, min(1.0, of_target[source])))
    return composed


def _of_source(warning: pb.TranslationWarning, links: Links, text: str) -> pb.TranslationWarning:
    """A warning about the language between, as one about the caller's text: all of it where no link says."""
    found = list(links.over(warning.start, warning.end))
    return pb.TranslationWarning(
        kind=warning.kind,
        start=min((link.source_start for link in found), default=0),
        end=max((link.source_end for link in found), default=len(text)),
    )

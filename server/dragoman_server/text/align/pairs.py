"""A text and its translation by somebody else: what the model looks at when it says that links the words.

Owns how a pair becomes sentences of the engine and how their attention becomes links. Must not know gRPC, nor
when anything runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman_bundle import Bundle

from dragoman_server.engine.request import Priority, SearchOptions, Sentence, SentenceResult
from dragoman_server.text.align.links import align
from dragoman_server.text.cut.segment import segment
from dragoman_server.text.mapped import Mapped, Span, moved
from dragoman_server.text.options import Segmentation
from dragoman_server.text.read.clean import clean, for_tokenizer
from dragoman_server.text.translated import Alignment, Timings, slowest
from dragoman_server.wanted import Wanted


class PairTooLongError(ValueError):
    """A side of what would be linked at once has more tokens than one may have."""

    def __init__(self, *, side: str, span: Span, num_tokens: int, max_tokens: int) -> None:
        self.side = side
        """ "source" or "target"."""
        super().__init__(
            f"characters {span[0]} to {span[1]} have {num_tokens} tokens, the end included, and at most "
            f"{max_tokens} are linked at once; cut text and translation at the same places, by line ends or "
            "into several pairs"
        )


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """How pairs are linked."""

    priority: Priority = Priority.INTERACTIVE
    """The priority where not all sentences fit into the batch."""
    max_target_tokens: int
    """Most target tokens, the end included, of what is linked at once."""
    max_interactive_tokens: int | None = None
    """Most source tokens of all pairs together that are taken as interactive; None: any number."""


@dataclass(frozen=True, kw_only=True)
class PairPart:
    """The spans of both texts that are linked at once."""

    spans: tuple[Span, Span]
    """Its place in the cleaned text, and in the cleaned translation."""
    token_spans: tuple[tuple[Span, ...], tuple[Span, ...]]
    """The spans within the part of each source token but the end, and of each target token that the model is
    made to say."""
    sentence: Sentence
    """What the engine decodes."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A text and its translation, cut and tokenized."""

    sides: tuple[Mapped, Mapped]
    parts: tuple[PairPart, ...]

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences that the engine decodes: one for each part."""
        return tuple(part.sentence for part in self.parts)

    def at(self, priority: Priority) -> "Pair":
        """The same with another priority."""
        parts = (replace(part, sentence=replace(part.sentence, priority=priority)) for part in self.parts)
        return replace(self, parts=tuple(parts))


@dataclass(frozen=True, kw_only=True)
class AlignedPair:
    """The links of a text and its translation."""

    alignments: tuple[Alignment, ...]
    """The links in offsets of the caller's texts, by target word and falling weight."""
    num_source_tokens: int
    """Ends included."""
    num_target_tokens: int
    """The number of tokens without ends."""
    timings: Timings


def prepare_pair(source: str, target: str, bundle: Bundle, options: PairOptions, wanted: Wanted) -> Pair:
    """Cuts and tokenizes a pair. Raises PairTooLongError, and UnwantedError."""
    sides = clean(source), clean(target)
    parts = (_part(sides, spans, bundle, options, wanted) for spans in wanted.each(matching_parts(*sides)))
    return Pair(sides=sides, parts=tuple(part for part in parts if part is not None))


def complete_pair(pair: Pair, results: Sequence[SentenceResult], bundle: Bundle) -> AlignedPair:
    """The links of a pair from the results of its sentences."""
    alignments: list[Alignment] = []
    for part, result in zip(pair.parts, results, strict=True):
        attention_UT = result.hypotheses[0].attention
        assert attention_UT is not None
        source_text, target_text = (
            side.text[slice(*span)] for side, span in zip(pair.sides, part.spans, strict=True)
        )
        links = align(
            source_text=source_text,
            source_spans=part.token_spans[0],
            target_text=target_text,
            target_spans=part.token_spans[1],
            attention_UT=attention_UT[int(bundle.manifest.attention_of_input) :],
        )
        alignments += (of_texts(link, pair.sides, part.spans) for link in links)
    return AlignedPair(
        alignments=tuple(alignments),
        num_source_tokens=sum(len(sentence.source) for sentence in pair.sentences),
        num_target_tokens=sum(len(sentence.target_prefix) for sentence in pair.sentences),
        timings=slowest(results),
    )


def of_texts(link: Alignment, sides: tuple[Mapped, Mapped], spans: tuple[Span, Span]) -> Alignment:
    """A link of the parts at these spans as one of the caller's texts."""
    source, target = (
        side.back(moved(place, span[0]))
        for side, place, span in zip(sides, (link.source, link.target), spans, strict=True)
    )
    return replace(link, source=source, target=target)


def matching_parts(source: Mapped, target: Mapped) -> list[tuple[Span, Span]]:
    """The spans to link at once: line by line where both texts have as many lines, else the whole texts."""
    sides = [segment(side.text, language="", mode=Segmentation.LINE) for side in (source, target)]
    if not all(sides):
        return []
    if len(sides[0]) != len(sides[1]):
        sides = [[(spans[0][0], spans[-1][1])] for spans in sides]
    return list(zip(*sides, strict=True))


def _part(
    cleaned: tuple[Mapped, Mapped],
    spans: tuple[Span, Span],
    bundle: Bundle,
    options: PairOptions,
    wanted: Wanted,
) -> PairPart | None:
    """None where the tokenizer sees nothing on a side."""
    manifest = bundle.manifest
    tokenizers = bundle.source_tokenizer, bundle.target_tokenizer
    source, target = (
        tokenizer.encode(for_tokenizer(side.text[slice(*span)]))
        for tokenizer, side, span in zip(tokenizers, cleaned, spans, strict=True)
    )
    end = (manifest.source_ids.eos,) if manifest.source_end else ()
    ids = (*source.ids, *end)
    # The model can't say what it has no token for, and would find nothing likely behind it.
    said = [
        (token, span)
        for token, span in zip(target.ids, target.spans, strict=True)
        if token != manifest.target_ids.unk
    ]
    if not source.ids or not said:
        return None
    limits = manifest.decoding.max_source_tokens, options.max_target_tokens
    lengths = len(ids), len(said) + 1
    for name, side, span, length, limit in zip(
        ("source", "target"), cleaned, spans, lengths, limits, strict=True
    ):
        if length > limit:
            raise PairTooLongError(side=name, span=side.back(span), num_tokens=length, max_tokens=limit)
    sentence = Sentence(
        source=ids,
        # The step behind the last token reads it: of some models that is where what it comes from is known.
        options=SearchOptions(
            beam_size=1, num_hypotheses=1, length_penalty=0.0, max_output_tokens=len(said) + 1
        ),
        target_start=bundle.target_start,
        target_prefix=tuple(token for token, _ in said),
        return_attention=True,
        priority=options.priority,
        caller=wanted.caller,
        deadline=wanted.deadline,
    )
    token_spans = tuple(source.spans), tuple(span for _, span in said)
    return PairPart(spans=spans, token_spans=token_spans, sentence=sentence)

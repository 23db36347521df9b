"""One text on its way through the server: cut into units, searched unit by unit, joined again.

Owns how units become sentences of the engine and how their results become the translation of the whole text.
Must not know gRPC, nor when anything runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman_bundle import Bundle
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_server import engine
from dragoman_server.engine import FinishReason, Priority, SearchOptions, Sentence, SentenceResult
from dragoman_server.text.alignment import Alignment, align
from dragoman_server.text.cleaning import CleanedText, Span, clean
from dragoman_server.text.distinct import ReadHypothesis, distinct, first_of_each_text
from dragoman_server.text.length import LengthPolicy, TextTooLongError, Unit, fit
from dragoman_server.text.segmentation import Segmentation, filler_for, join, segment

_CHARACTERS_PER_TOKEN = 8
"""An estimate on the high side: most texts have fewer characters per token."""


@dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """How a caller wants texts translated."""

    beam_size: int
    """Hypotheses kept per sentence while searching."""
    num_hypotheses: int = 1
    """Hypotheses returned; at most `beam_size`."""
    length_penalty: float
    """Exponent of the length penalty; 0 turns it off."""
    max_output_tokens: int | None = None
    """Most output tokens of a sentence; None: from the length of its source."""
    max_default_output_tokens: int | None = None
    """Cap on that derived limit; None: the bundle's own alone. Must exceed the length of `target_prefix`."""
    target_prefix: tuple[int, ...] = ()
    """Target tokens that the first sentence's translation begins with."""
    length_policy: LengthPolicy = LengthPolicy.SPLIT
    """What happens to a sentence with more source tokens than the model takes."""
    segmentation: Segmentation = Segmentation.SENTENCE
    """How texts are cut into units."""
    return_alignments: bool = False
    """Whether hypotheses come with word alignments."""
    priority: Priority = Priority.INTERACTIVE
    """Who goes first where not all fit into the batch."""
    max_text_tokens: int | None = None
    """Most source tokens of a text; None: any number."""
    max_interactive_tokens: int | None = None
    """Most source tokens of all texts together that are decoded as interactive; None: any number."""

    @property
    def num_searched_hypotheses(self) -> int:
        """Hypotheses of a sentence that the engine returns: of a list all, since some may fall out."""
        return self.beam_size if self.num_hypotheses > 1 else 1


@dataclass(frozen=True, kw_only=True)
class Document:
    """A text, cut and tokenized."""

    source: CleanedText
    units: tuple[Unit, ...]
    """What is translated on its own."""
    gaps: tuple[str, ...]
    """What stands before, between and behind the units, and stays."""
    sentences: tuple[Sentence, ...]
    """What the engine searches: one for each unit that has any tokens."""
    split: bool
    """Whether some sentence was cut because it was too long."""
    truncated: bool
    """Whether some sentence lost its end because it was too long."""
    num_hypotheses: int
    """Most hypotheses that its translation has."""


@dataclass(frozen=True, kw_only=True)
class TranslatedHypothesis:
    """One translation of a whole text; its numbers are sums over the sentences."""

    text: str
    score: float
    log_probability: float
    finish_reason: FinishReason
    """LENGTH where any sentence reached its limit."""
    alignments: tuple[Alignment, ...]
    """In offsets of the whole text and of this hypothesis' whole text."""


@dataclass(frozen=True, kw_only=True)
class Timings:
    """Where the time of the sentence that took longest went, in seconds."""

    queue: float
    """Waiting for a place in a batch, and before that for room in the queue."""
    encode: float
    """Encoding."""
    decode: float
    """Beam search."""


@dataclass(frozen=True, kw_only=True)
class TranslatedText:
    """The translation of one text."""

    text: str
    """The best hypothesis' text. Where there was nothing to translate the source's own, and of white space
    alone ""."""
    hypotheses: tuple[TranslatedHypothesis, ...]
    """Best first; empty where there was nothing to translate."""
    split: bool
    """Whether some sentence was cut because it was too long."""
    truncated: bool
    """Whether some sentence lost its end because it was too long."""
    num_units: int
    """Units that the text was cut into."""
    num_source_tokens: int
    """Of all sentences, ends included."""
    num_target_tokens: int
    """Of the best hypothesis, ends included."""
    timings: Timings
    """Where its time went."""


def prepare(text: str, bundle: Bundle, options: TranslationOptions, deadline: float | None) -> Document:
    """Cuts and tokenizes a text. Raises TextTooLongError, and UnitTooLongError under LengthPolicy.REJECT.

    `deadline` is in seconds of `time.monotonic`.
    """
    manifest = bundle.manifest
    end = (manifest.source_ids.eos,) if manifest.source_end else ()
    source = clean(text)
    fitted = fit(
        source,
        segment(source.text, language=manifest.source_language, mode=options.segmentation),
        tokenizer=bundle.source_tokenizer,
        max_tokens=manifest.decoding.max_source_tokens,
        num_ends=len(end),
        policy=options.length_policy,
    )
    of_units = [(*unit.ids, *end) for unit in fitted.units if unit.ids]
    num_tokens = sum(map(len, of_units))
    if options.max_text_tokens is not None and num_tokens > options.max_text_tokens:
        raise TextTooLongError(num_tokens=num_tokens, max_tokens=options.max_text_tokens)
    prefixes = [options.target_prefix] + [()] * len(of_units)
    return Document(
        source=source,
        units=fitted.units,
        gaps=source.between([unit.span for unit in fitted.units]),
        sentences=tuple(
            Sentence(
                source=tokens,
                options=_search_options(options, bundle, len(tokens), len(prefix)),
                target_prefix=prefix,
                return_attention=options.return_alignments,
                priority=options.priority,
                deadline=deadline,
            )
            for tokens, prefix in zip(of_units, prefixes, strict=False)
        ),
        split=fitted.split,
        truncated=fitted.truncated,
        num_hypotheses=options.num_hypotheses,
    )


def complete(
    document: Document, results: Sequence[SentenceResult], bundle: Bundle, *, waited_seconds: float = 0.0
) -> TranslatedText:
    """Joins the results of a document's sentences, in their order, with what stands between them.

    They `waited_seconds` for room in the engine's queue before they were in it.
    """
    lists = [
        distinct(result.hypotheses, bundle.target_tokenizer.decode_text, most=document.num_hypotheses)
        for result in results
    ]
    num_hypotheses = max(map(len, lists), default=0)
    is_aligned = any(sentence.return_attention for sentence in document.sentences)
    source_spans = [
        _source_spans(document.source.tokenizer_text[slice(*unit.span)], unit.ids, bundle.source_tokenizer)
        if is_aligned
        else []
        for unit in document.units
    ]
    joined = [
        # A sentence with fewer hypotheses gives its last.
        _join_hypotheses(
            document,
            [hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in lists],
            source_spans,
            bundle,
        )
        for rank in range(num_hypotheses)
    ]
    # Even of sentences that differ the joined texts may be the same: "a b" and "c", "a" and "b c".
    hypotheses = first_of_each_text(joined)
    caller_text = document.source.caller_text
    return TranslatedText(
        text=hypotheses[0].text if hypotheses else "" if caller_text.isspace() else caller_text,
        hypotheses=hypotheses,
        split=document.split,
        truncated=document.truncated,
        num_units=len(document.units),
        num_source_tokens=sum(len(sentence.source) for sentence in document.sentences),
        num_target_tokens=sum(_num_tokens(result.hypotheses[0]) for result in results),
        timings=slowest_timings(results, waited_seconds),
    )


def slowest_timings(results: Sequence[SentenceResult], waited_seconds: float) -> Timings:
    """Of the sentence that took longest, all of which `waited_seconds` before they were in the queue."""
    slowest = max(results, key=_seconds, default=None)
    return Timings(
        queue=waited_seconds + slowest.queue_seconds if slowest else 0.0,
        encode=slowest.encode_seconds if slowest else 0.0,
        decode=slowest.decode_seconds if slowest else 0.0,
    )


def _search_options(
    options: TranslationOptions, bundle: Bundle, num_source_tokens: int, num_prefix_tokens: int
) -> SearchOptions:
    max_output_tokens = options.max_output_tokens
    if max_output_tokens is None:
        limit = bundle.manifest.decoding.output_limit(num_source_tokens)
        most = options.max_default_output_tokens or limit
        max_output_tokens = max(min(most, limit), num_prefix_tokens + 1)
    return SearchOptions(
        beam_size=options.beam_size,
        num_hypotheses=options.num_searched_hypotheses,
        length_penalty=options.length_penalty,
        max_output_tokens=max_output_tokens,
    )


def _source_spans(text: str, ids: Sequence[int], tokenizer: Tokenizer) -> Sequence[Span]:
    """Where in its text each token of a unit stands; a unit that was truncated has fewer than its text.

    Reads no more of the text than it takes to find the same tokens again.
    """
    length = _CHARACTERS_PER_TOKEN * (len(ids) + 1)
    while length < len(text):
        beginning = tokenizer.encode(text[:length])
        if len(beginning.ids) > len(ids) and tuple(beginning.ids[: len(ids)]) == tuple(ids):
            return beginning.spans[: len(ids)]
        length *= 2
    return tokenizer.encode(text).spans[: len(ids)]


def _join_hypotheses(
    document: Document,
    found: Sequence[ReadHypothesis],
    source_spans: Sequence[Sequence[Span]],
    bundle: Bundle,
) -> TranslatedHypothesis:
    remaining = iter(found)
    of_unit = [next(remaining) if unit.ids else None for unit in document.units]
    texts = [read.text if read else "" for read in of_unit]
    text, offsets = join(document.gaps, texts, filler=filler_for(bundle.manifest.target_language))
    alignments: list[Alignment] = []
    for unit, read, spans, offset in zip(document.units, of_unit, source_spans, offsets, strict=True):
        if read is None or read.hypothesis.attention is None:
            continue
        piece = bundle.target_tokenizer.decode(read.hypothesis.tokens)
        links = align(
            source_text=document.source.text[slice(*unit.span)],
            source_spans=spans,
            target_text=piece.text,
            target_spans=piece.spans,
            # What a token comes from is known a step later then; the last one's end is not needed.
            attention_UT=read.hypothesis.attention[int(bundle.manifest.attention_of_input) :],
        )
        alignments += [_place(link, document.source, unit.span[0], offset) for link in links]
    return TranslatedHypothesis(
        text=text,
        score=sum(read.hypothesis.score for read in found),
        log_probability=sum(read.hypothesis.log_probability for read in found),
        finish_reason=(
            FinishReason.LENGTH
            if any(read.hypothesis.finish_reason is FinishReason.LENGTH for read in found)
            else FinishReason.STOP
        ),
        alignments=tuple(alignments),
    )


def _place(link: Alignment, source: CleanedText, source_offset: int, target_offset: int) -> Alignment:
    """The link of a unit as one of the caller's text and the whole hypothesis."""
    (a, b), (c, d) = link.source, link.target
    return replace(
        link,
        source=source.of_caller((a + source_offset, b + source_offset)),
        target=(c + target_offset, d + target_offset),
    )


def _num_tokens(hypothesis: engine.Hypothesis) -> int:
    return len(hypothesis.tokens) + (hypothesis.finish_reason is FinishReason.STOP)


def _seconds(result: SentenceResult) -> float:
    return result.queue_seconds + result.encode_seconds + result.decode_seconds

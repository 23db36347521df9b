"""One text on its way through the server: cut into units, searched unit by unit, joined again.

Owns how units become sentences of the engine and how their results become the translation of the whole text:
in one round of sentences, and in more where an answer loses what must be kept. Must not know gRPC, nor when
anything runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman_bundle import Bundle

from dragoman_server.engine import FinishReason, SearchOptions, Sentence, SentenceResult
from dragoman_server.text.alignment import Alignment
from dragoman_server.text.cleaning import Span
from dragoman_server.text.length import TextTooLongError, Unit, fit
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.segmentation import filler_for, join, segment
from dragoman_server.text.source import Source, read
from dragoman_server.text.translated import Timings, TranslatedHypothesis, TranslatedText
from dragoman_server.text.unit.answer import UnitAnswer
from dragoman_server.text.unit.attempt import Stage
from dragoman_server.text.unit.distinct import first_of_each_text
from dragoman_server.text.unit.reading import TaskReader
from dragoman_server.text.unit.state import UnitState, judged, tokenize, without_sentences
from dragoman_server.text.unit.verdict import unit_warnings
from dragoman_server.text.warnings import TranslationWarning
from dragoman_server.wanted import Wanted


@dataclass(frozen=True, kw_only=True)
class Document:
    """A text, cut and tokenized, and what is known of its translation."""

    source: Source
    options: TranslationOptions
    wanted: Wanted
    """Whether anybody waits for it, with the deadline."""
    units: tuple[Unit, ...]
    """The units: each is translated on its own."""
    gaps: tuple[str, ...]
    """The texts before, between and behind the units, which stay as they are."""
    states: tuple[UnitState, ...]
    """How far each unit is."""
    sentences: tuple[Sentence, ...]
    """The sentences that the engine searches next; none where every unit has its answer."""
    split: bool
    """Whether some sentence was cut because it was too long."""
    truncated: bool
    """Whether some sentence lost its end because it was too long."""
    warnings: tuple[TranslationWarning, ...]
    """The warnings that follow from the source alone."""


def prepare(
    text: str,
    bundle: Bundle,
    options: TranslationOptions,
    deadline: float | None,
    ranges: Sequence[Span] = (),
    wanted: Wanted | None = None,
) -> Document:
    """Cuts and tokenizes a text. Raises TextTooLongError, and UnitTooLongError under LengthPolicy.REJECT.

    `deadline` is in seconds of `time.monotonic`; `ranges` of the text are protected. This and what follows
    of the document raise UnwantedError once it is not `wanted`: None for until the deadline.
    """
    wanted = wanted or Wanted(deadline)
    manifest = bundle.manifest
    num_ends = int(manifest.source_end)
    source = read(
        text,
        text_format=options.text_format,
        protection=options.protection,
        ranges=ranges,
        wanted=wanted,
    )
    reader = TaskReader(source, bundle, is_automatic=options.protection.is_automatic, wanted=wanted)
    fitted = fit(
        source.cleaned,
        reader.trim(segment(source.shielded, language=manifest.source_language, mode=options.segmentation)),
        tokenizer=bundle.source_tokenizer,
        max_tokens=manifest.decoding.max_source_tokens,
        num_ends=num_ends,
        policy=options.length_policy,
        render=reader.render if source.protected or options.protection.is_automatic else None,
        whole=[item.span for item in source.protected],
    )
    units, states = [], []
    for unit, task, attempt, known in reader.tasks(fitted.units):
        units.append(unit)
        state = UnitState(task=task, attempt=attempt, ids=tokenize(attempt, bundle, known))
        states.append(without_sentences(source, state, options, bundle))
    num_tokens = sum(len(ids) for state in states for piece in state.ids for ids in piece)
    if options.max_text_tokens is not None and num_tokens > options.max_text_tokens:
        raise TextTooLongError(num_tokens=num_tokens, max_tokens=options.max_text_tokens)
    return Document(
        source=source,
        options=options,
        wanted=wanted,
        units=tuple(units),
        gaps=source.gaps([unit.span for unit in units]),
        states=tuple(states),
        sentences=_sentences(states, options, bundle, wanted),
        split=fitted.split,
        truncated=fitted.truncated,
        warnings=tuple(reader.warnings),
    )


def advance(document: Document, results: Sequence[SentenceResult], bundle: Bundle) -> Document:
    """The document after these results of its sentences; it may have other sentences then."""
    remaining = iter(results)
    states = [
        state
        if state.answers
        else judged(
            document.source,
            state,
            [[next(remaining) for ids in piece if ids] for piece in state.ids],
            document.options,
            bundle,
        )
        for state in document.wanted.each(document.states)
    ]
    return Document(
        source=document.source,
        options=document.options,
        wanted=document.wanted,
        units=document.units,
        gaps=document.gaps,
        states=tuple(states),
        sentences=_sentences(states, document.options, bundle, document.wanted),
        split=document.split,
        truncated=document.truncated,
        warnings=document.warnings,
    )


def complete(document: Document, bundle: Bundle, *, waited_seconds: float = 0.0) -> TranslatedText:
    """Joins the answers to a document's units, which has no more sentences, with what stands between them.

    They `waited_seconds` for room in the engine's queue before they were in it.
    """
    assert not document.sentences
    lists = [state.answers for state in document.states]
    filler = filler_for(bundle.manifest.target_language)
    joined = [
        # A sentence with fewer hypotheses gives its last.
        _join_answers(document, [answers[min(rank, len(answers) - 1)] for answers in lists], filler)
        for rank in range(max(map(len, lists), default=0))
    ]
    # Even of sentences that differ the joined texts may be the same: "a b" and "c", "a" and "b c".
    hypotheses = first_of_each_text(joined)
    queue, encode, decode = max(
        (state.seconds for state in document.states), key=sum, default=(0.0, 0.0, 0.0)
    )
    caller_text = document.source.cleaned.caller_text
    untouched = "".join(document.gaps) if document.source.protected else caller_text
    return TranslatedText(
        text=hypotheses[0].text if hypotheses else "" if caller_text.isspace() else untouched,
        hypotheses=hypotheses,
        split=document.split,
        truncated=document.truncated,
        num_units=len(document.units),
        num_source_tokens=sum(len(ids) for state in document.states for piece in state.ids for ids in piece),
        num_target_tokens=sum(answers[0].num_tokens for answers in lists),
        timings=Timings(
            queue=waited_seconds + queue if document.states else 0.0, encode=encode, decode=decode
        ),
        warnings=tuple(sorted(_warnings(document, bundle), key=_span)),
    )


def _sentences(
    states: Sequence[UnitState], options: TranslationOptions, bundle: Bundle, wanted: Wanted
) -> tuple[Sentence, ...]:
    """The sentences to search for the units that have no answers."""
    sentences = []
    prefix = options.target_prefix
    for state in states:
        if state.answers and not prefix:
            continue
        num_hypotheses = options.num_searched_hypotheses
        if state.task.is_checked and state.attempt.stage is not Stage.AROUND:
            num_hypotheses = options.beam_size
        for piece, of_piece in zip(state.attempt.pieces, state.ids, strict=True):
            for ids in of_piece:
                if ids and not state.answers:
                    is_aligned = options.return_alignments or bool(piece.floating or piece.elements)
                    sentences.append(
                        Sentence(
                            source=ids,
                            options=_search_options(options, bundle, len(ids), len(prefix), num_hypotheses),
                            target_prefix=prefix,
                            return_attention=is_aligned,
                            priority=options.priority,
                            deadline=wanted.deadline,
                            caller=wanted.caller,
                        )
                    )
            if any(of_piece):
                # It is the first sentence's.
                prefix = ()
    return tuple(sentences)


def _search_options(
    options: TranslationOptions,
    bundle: Bundle,
    num_source_tokens: int,
    num_prefix_tokens: int,
    num_hypotheses: int,
) -> SearchOptions:
    max_output_tokens = options.max_output_tokens
    if max_output_tokens is None:
        limit = bundle.manifest.decoding.output_limit(num_source_tokens)
        most = options.max_default_output_tokens or limit
        max_output_tokens = max(min(most, limit), num_prefix_tokens + 1)
    return SearchOptions(
        beam_size=options.beam_size,
        num_hypotheses=num_hypotheses,
        length_penalty=options.length_penalty,
        max_output_tokens=max_output_tokens,
    )


def _join_answers(document: Document, answers: Sequence[UnitAnswer], filler: str) -> TranslatedHypothesis:
    text, offsets = join(document.gaps, [answer.text for answer in answers], filler=filler)
    is_limited = any(answer.finish_reason is FinishReason.LENGTH for answer in answers)
    return TranslatedHypothesis(
        text=text,
        score=sum(answer.score for answer in answers),
        log_probability=sum(answer.log_probability for answer in answers),
        finish_reason=FinishReason.LENGTH if is_limited else FinishReason.STOP,
        alignments=tuple(
            _place(link, document.source, offset)
            for answer, offset in zip(answers, offsets, strict=True)
            for link in answer.links
        ),
    )


def _place(link: Alignment, source: Source, offset: int) -> Alignment:
    """The link of a unit as one of the caller's text and the whole hypothesis."""
    start, end = link.target
    return replace(link, source=source.cleaned.of_caller(link.source), target=(start + offset, end + offset))


def _span(warning: TranslationWarning) -> Span:
    return warning.span


def _warnings(document: Document, bundle: Bundle) -> Iterator[TranslationWarning]:
    yield from document.warnings
    manifest = bundle.manifest
    for state in document.wanted.each(document.states):
        yield from unit_warnings(
            document.source,
            state.task,
            state.attempt,
            state.answers[0],
            lost_numbers=state.lost_numbers,
            languages=(manifest.source_language, manifest.target_language),
        )

"""How far a unit is: what it is tried with, what its answers are, and how long it took."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_bundle import Bundle

from dragoman_server.engine import SentenceResult
from dragoman_server.text.cleaning import Span
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.source import Source
from dragoman_server.text.unit.answer import UnitAnswer, judge
from dragoman_server.text.unit.attempt import Attempt, Task, next_attempt

IdsOfPiece = tuple[tuple[int, ...], ...]
Seconds = tuple[float, float, float]
"""Seconds in the queue, of encoding, and of decoding."""


@dataclass(frozen=True, kw_only=True)
class UnitState:
    """How far a unit is."""

    task: Task
    attempt: Attempt
    ids: tuple[IdsOfPiece, ...]
    """By piece of the attempt and what is shown of it its source tokens, the end of the sentence included."""
    answers: tuple[UnitAnswer, ...] = ()
    """Once there are any, the unit is done."""
    lost_numbers: tuple[Span, ...] = ()
    """The numbers that its first answer lacked."""
    seconds: Seconds = (0.0, 0.0, 0.0)
    """The seconds of all its rounds."""


def judged(
    source: Source,
    state: UnitState,
    results: Sequence[Sequence[SentenceResult]],
    options: TranslationOptions,
    bundle: Bundle,
) -> UnitState:
    """A unit with answers, or with its next attempt."""
    judgement = judge(
        source,
        state.task,
        state.attempt,
        results,
        [[ids for ids in piece if ids] for piece in state.ids],
        bundle,
        most=options.num_hypotheses,
        is_aligned=options.return_alignments,
    )
    seconds = _sum(state.seconds, _slowest(results))
    if judgement.answers:
        return UnitState(
            task=state.task,
            attempt=state.attempt,
            ids=state.ids,
            answers=judgement.answers,
            lost_numbers=state.lost_numbers,
            seconds=seconds,
        )
    lost = {item.span: item for item in judgement.lost}
    lost |= {item.span: item for item in state.task.numbers if item.span in state.lost_numbers}
    attempt = next_attempt(source, state.task, state.attempt.stage, list(lost.values()))
    state = UnitState(
        task=state.task,
        attempt=attempt,
        ids=tokenize(attempt, bundle, None),
        lost_numbers=tuple(sorted(lost)),
        seconds=seconds,
    )
    return without_sentences(source, state, options, bundle)


def without_sentences(
    source: Source, state: UnitState, options: TranslationOptions, bundle: Bundle
) -> UnitState:
    """A unit of which the tokenizer sees nothing has its answer at once; another is as it was."""
    for piece in state.ids:
        if any(piece):
            return state
    return judged(source, state, [[] for _ in state.ids], options, bundle)


def tokenize(attempt: Attempt, bundle: Bundle, known: Sequence[int] | None) -> tuple[IdsOfPiece, ...]:
    """Source tokens of all that is shown, ends included, as many as the model takes; `known` are the
    first's."""
    manifest = bundle.manifest
    end = (manifest.source_ids.eos,) if manifest.source_end else ()
    most = manifest.decoding.max_source_tokens - len(end)
    found = []
    for piece in attempt.pieces:
        shown = [rendered.text for rendered in piece.shown]
        ids = [known] if known is not None else []
        if len(shown) > len(ids):
            ids += bundle.source_tokenizer.encode_ids(shown[len(ids) :])
        found.append(tuple((*tokens[:most], *end) if tokens else () for tokens in ids))
    return tuple(found)


def _slowest(results: Sequence[Sequence[SentenceResult]]) -> Seconds:
    """The seconds of the slowest of the searches side by side."""
    return max(
        (
            (result.queue_seconds, result.encode_seconds, result.decode_seconds)
            for shown in results
            for result in shown
        ),
        key=sum,
        default=(0.0, 0.0, 0.0),
    )


def _sum(first: Seconds, second: Seconds) -> Seconds:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]

"""Answers of the model to an attempt: whether they keep what must be kept, and what goes out.

Spans of the answer count code points of what goes out for the unit, those of the source the cleaned text's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman_bundle import Bundle

from dragoman_server.engine import FinishReason, Hypothesis, SentenceResult
from dragoman_server.text.alignment import Alignment, align
from dragoman_server.text.cleaning import Span
from dragoman_server.text.protection.protected import Protected
from dragoman_server.text.segmentation import join
from dragoman_server.text.source import Source
from dragoman_server.text.unit.attempt import Attempt, Piece, Stage, Task
from dragoman_server.text.unit.checking import lacks_terms, lost_numbers, without_masks
from dragoman_server.text.unit.distinct import distinct
from dragoman_server.text.unit.placing import Floating, Linked, place
from dragoman_server.text.unit.rendering import Rendered
from dragoman_server.text.unit.restoring import find_masks, restore
from dragoman_server.text.unit.seams import Seams

_CHARACTERS_PER_TOKEN = 8
"""An estimate on the high side: most texts have fewer characters per token."""
_SENTENCE_MARKS = ".!?…。！？"


@dataclass(frozen=True, kw_only=True)
class UnitAnswer:
    """One translation of a unit."""

    text: str
    score: float
    log_probability: float
    finish_reason: FinishReason
    num_tokens: int
    """Ends included."""
    links: tuple[Alignment, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The outcome of an attempt."""

    answers: tuple[UnitAnswer, ...]
    """Best first; empty where none keeps what must be kept."""
    lost: tuple[Protected, ...] = ()
    """The numbers that the best hypothesis lacks, where there are no answers."""


def judge(
    source: Source,
    task: Task,
    attempt: Attempt,
    results: Sequence[Sequence[SentenceResult]],
    ids: Sequence[Sequence[Sequence[int]]],
    bundle: Bundle,
    *,
    most: int,
    is_aligned: bool,
) -> Judgement:
    """Reads the results of an attempt, those of each piece by what was shown; so the source's token `ids`."""
    if attempt.stage is Stage.AROUND:
        found = [
            list(distinct(_read(source, task, piece, shown, tokens, bundle, is_aligned, None), most=most))
            for piece, shown, tokens in zip(attempt.pieces, results, ids, strict=True)
        ]
        return Judgement(answers=tuple(_joined(attempt.gaps, found, attempt.seams)))
    [piece], [shown], [tokens] = attempt.pieces, results, ids
    if task.is_plain and most == 1 and not (is_aligned or source.is_markup) and shown:
        # The commonest case by far, told at once.
        hypothesis = shown[0].hypotheses[0]
        return Judgement(
            answers=(_unit_answer(hypothesis, bundle.target_tokenizer.decode_text(hypothesis.tokens)),)
        )
    lost: list[tuple[Protected, ...]] = []
    answers = tuple(distinct(_read(source, task, piece, shown, tokens, bundle, is_aligned, lost), most=most))
    return Judgement(answers=answers, lost=lost[0] if lost else ())


def _read(
    source: Source,
    task: Task,
    piece: Piece,
    results: Sequence[SentenceResult],
    ids: Sequence[Sequence[int]],
    bundle: Bundle,
    is_aligned: bool,
    lost: list[tuple[Protected, ...]] | None,
) -> Iterator[UnitAnswer]:
    """The answers that do, best first; with `lost` given the others are told there, by what numbers they
    lost."""
    if not results:
        # The tokenizer sees nothing in it.
        yield _verbatim(source, piece)
        return
    pooled = [
        (hypothesis, rendered, tokens)
        for rendered, result, tokens in zip(piece.shown, results, ids, strict=True)
        for hypothesis in result.hypotheses
    ]
    if len(piece.shown) > 1:
        pooled.sort(key=lambda candidate: -candidate[0].score)
    for hypothesis, rendered, tokens in pooled:
        text = bundle.target_tokenizer.decode_text(hypothesis.tokens)
        replaced: list[tuple[Span, Protected]] | None = []
        if lost is not None and task.is_checked:
            replaced = find_masks(rendered.masks, text)
            missing = lost_numbers(source, task, rendered, without_masks(text, replaced or []), bundle)
            if replaced is None or missing or lacks_terms(task, rendered, text):
                lost.append(missing)
                continue
        yield _answer(
            source, task, piece, rendered, tokens, hypothesis, text, replaced or [], bundle, is_aligned
        )


def _answer(
    source: Source,
    task: Task,
    piece: Piece,
    rendered: Rendered,
    tokens: Sequence[int],
    hypothesis: Hypothesis,
    text: str,
    replaced: Sequence[tuple[Span, Protected]],
    bundle: Bundle,
    is_aligned: bool,
) -> UnitAnswer:
    linked = Linked()
    if hypothesis.attention is not None and (is_aligned or piece.floating or piece.elements):
        linked = _linked(rendered, tokens, hypothesis, bundle)
    if piece.is_part:
        shown = rendered.text
        text = _as_part(shown, text, begins=piece.span[0] == task.span[0])
        linked = replace(linked, links=[link for link in linked.links if link.target[1] <= len(text)])
    inserted: Sequence[Floating] = ()
    if piece.floating or piece.elements:
        inserted = place(
            [replace(item, position=rendered.place_of(item.position)) for item in piece.floating],
            [
                replace(item, start=rendered.place_of(item.start), end=rendered.place_of(item.end))
                for item in piece.elements
            ],
            rendered.text,
            text,
            linked,
        )
    restored = restore(
        text,
        replaced=replaced,
        inserted=inserted,
        output_of=source.output_of,
        in_capitals=task.in_capitals,
        is_markup=source.is_markup,
    )
    return _unit_answer(
        hypothesis,
        restored.text,
        tuple(
            replace(link, source=rendered.of_source(link.source), target=restored.of_answer(link.target))
            for link in linked.links
            if is_aligned
        ),
    )


def _unit_answer(hypothesis: Hypothesis, text: str, links: tuple[Alignment, ...] = ()) -> UnitAnswer:
    return UnitAnswer(
        text=text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finish_reason=hypothesis.finish_reason,
        num_tokens=len(hypothesis.tokens) + (hypothesis.finish_reason is FinishReason.STOP),
        links=links,
    )


def _verbatim(source: Source, piece: Piece) -> UnitAnswer:
    start, end = source.cleaned.of_caller(piece.span)
    return UnitAnswer(
        text=source.written(start, end, ()),
        score=0.0,
        log_probability=0.0,
        finish_reason=FinishReason.STOP,
        num_tokens=0,
    )


def _linked(rendered: Rendered, tokens: Sequence[int], hypothesis: Hypothesis, bundle: Bundle) -> Linked:
    assert hypothesis.attention is not None
    decoded = bundle.target_tokenizer.decode(hypothesis.tokens)
    source_spans = _source_spans(rendered.text, tokens, bundle)
    links = align(
        source_text=rendered.text,
        source_spans=source_spans,
        target_text=decoded.text,
        target_spans=decoded.spans,
        # What a token comes from is known a step later then; the last one's end is not needed.
        attention_UT=hypothesis.attention[int(bundle.manifest.attention_of_input) :],
    )
    return Linked(links, source_spans, decoded.spans)


def _source_spans(text: str, ids: Sequence[int], bundle: Bundle) -> Sequence[Span]:
    """Where in its text each token of a unit stands; a unit that was truncated has fewer than its text.

    Reads no more of the text than it takes to find the same tokens again.
    """
    tokenizer = bundle.source_tokenizer
    length = _CHARACTERS_PER_TOKEN * (len(ids) + 1)
    while length < len(text):
        beginning = tokenizer.encode(text[:length])
        if len(beginning.ids) > len(ids) and tuple(beginning.ids[: len(ids)]) == tuple(ids):
            return beginning.spans[: len(ids)]
        length *= 2
    return tokenizer.encode(text).spans[: len(ids)]


def _as_part(shown: str, answer: str, *, begins: bool) -> str:
    """The answer to a part of a sentence without the mark that ends one, and with a small first letter where
    the part has one."""
    if shown.rstrip()[-1:] not in _SENTENCE_MARKS:
        answer = answer.rstrip(_SENTENCE_MARKS).rstrip()
    first = next((character for character in shown if character.isalpha()), "")
    if (
        not begins
        and first.islower()
        and answer[:1].isupper()
        and not answer[1:2].isupper()
        and answer[:2] != "I "
    ):
        small = answer[0].lower()
        answer = (small if len(small) == 1 else answer[0]) + answer[1:]
    return answer


def _joined(
    gaps: Sequence[str], found: Sequence[Sequence[UnitAnswer]], seams: Seams | None
) -> Iterator[UnitAnswer]:
    """The answers to a unit's pieces as answers to the unit; a piece with fewer gives its last."""
    for rank in range(max(map(len, found), default=1)):
        parts = [answers[min(rank, len(answers) - 1)] for answers in found]
        texts = [part.text for part in parts]
        text, offsets = join(seams.gaps(gaps, texts) if seams else gaps, texts, filler="")
        yield UnitAnswer(
            text=text,
            score=sum(part.score for part in parts),
            log_probability=sum(part.log_probability for part in parts),
            finish_reason=(
                FinishReason.LENGTH
                if any(part.finish_reason is FinishReason.LENGTH for part in parts)
                else FinishReason.STOP
            ),
            num_tokens=sum(part.num_tokens for part in parts),
            links=tuple(
                replace(link, target=(link.target[0] + offset, link.target[1] + offset))
                for part, offset in zip(parts, offsets, strict=True)
                for link in part.links
            ),
        )

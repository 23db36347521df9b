"""Answers of the model to an attempt: whether they keep what must be kept, and what goes out.

Spans of an answer count code points of what goes out for the unit.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from dragoman_server.engine.request import FinishReason, Hypothesis, SentenceResult
from dragoman_server.text.align.links import linked
from dragoman_server.text.ask.attempts import next_attempt, tokenized
from dragoman_server.text.judge.checking import Found, find_masks, find_pairs, lacks_terms, lost_numbers
from dragoman_server.text.judge.edges import finished
from dragoman_server.text.judge.writing import Insertion, place, written
from dragoman_server.text.marks import Kind, Mark, within
from dragoman_server.text.passage import Attempt, Passage, Piece, Shown, Stage, Unit
from dragoman_server.text.translated import (
    Alignment,
    TextT,
    Timings,
    TranslatedHypothesis,
    joined,
    slowest,
)
from dragoman_server.text.words import capitalised

_SENTENCE_MARKS = ".!?…。！？"
_BEGINNING = re.compile(r"(?:<[^<>]*>|[\s\"'„“”‚‘’«»‹›(\[¿¡-])*+(\w+)")
"""A text up to its first word, behind tags and what opens."""


def settled(passage: Passage, unit: Unit) -> Unit:
    """A unit of which the tokenizer sees nothing with its answer; another is as it was."""
    if unit.answers or unit.attempt.has_sentences:
        return unit
    return judge(passage, unit, [[] for _ in unit.attempt.pieces])


def judge(passage: Passage, unit: Unit, results: Sequence[Sequence[SentenceResult]]) -> Unit:
    """A unit with answers, or with its next attempt. The results are those of each piece of its attempt."""
    of_attempt = slowest(result for of_piece in results for result in of_piece)
    timings = Timings(*map(sum, zip(unit.timings, of_attempt, strict=True)))
    if unit.attempt.stage is Stage.APART:
        of_parts = _in_parts(passage, unit, unit.attempt, zip(unit.attempt.pieces, results, strict=True))
        begun = tuple(_begun(passage, unit, answer) for answer in of_parts)
        return replace(unit, answers=begun, timings=timings)
    piece, of_piece = unit.attempt.pieces[0], results[0]
    options = passage.options
    is_simple = options.num_hypotheses == 1 and not (options.return_alignments or passage.is_markup)
    if is_simple and of_piece and unit.is_plain:
        # The commonest case by far, done at once.
        hypothesis = of_piece[0].hypotheses[0]
        text = passage.bundle.target_tokenizer.decode_text(hypothesis.tokens)
        if options.protection.is_automatic and _is_whole(passage, hypothesis):
            text = _finished(passage, piece.shown[0].text.text, text)
        answer = _answer_of(hypothesis, text)
        return Unit(
            span=unit.span, replaced=unit.replaced, attempt=unit.attempt, answers=(answer,), timings=timings
        )
    contents = _contents(passage, unit, results[1:])
    answers: list[TranslatedHypothesis] = []
    if unit.first is not None:
        answers, _ = _answers(passage, unit, *unit.first, contents)
    lost: tuple[Mark, ...] = ()
    if not answers:
        answers, lost = _answers(passage, unit, piece, of_piece, contents)
    if answers:
        begun = tuple(_begun(passage, unit, answer) for answer in answers)
        return replace(unit, answers=begun, first=None, timings=timings)
    lost = tuple(sorted({*unit.lost, *lost}, key=lambda mark: mark.span))
    attempt = tokenized(next_attempt(passage, unit, lost), passage.bundle)
    first = (piece, of_piece) if attempt.contents else None
    return settled(passage, replace(unit, attempt=attempt, lost=lost, first=first, timings=timings))


def _contents(passage: Passage, unit: Unit, results: Sequence[Sequence[SentenceResult]]) -> dict[Mark, str]:
    """What the elements that are masked hold in the translation."""
    remaining = iter(zip(unit.attempt.pieces[1:], results, strict=True))
    return {
        element: _in_parts(passage, unit, attempt, remaining)[0].text
        for element, attempt in unit.attempt.contents
    }


def _in_parts(
    passage: Passage,
    unit: Unit,
    attempt: Attempt,
    results: Iterable[tuple[Piece, Sequence[SentenceResult]]],
) -> list[TranslatedHypothesis]:
    """The answers to what is translated in parts, from the next results of so many pieces."""
    found = [
        _answers(passage, unit, piece, of_piece)[0]
        for piece, of_piece in islice(results, len(attempt.pieces))
    ]
    return list(_joined(attempt, found))


def distinct(ranked: Iterable[TextT], *, maximum: int) -> Iterator[TextT]:
    """At most so many of the hypotheses, in their order, no two with the same text and none without any.

    A search keeps sequences of tokens apart, and several may be one text, cut into tokens in other ways.
    Nearly always it also finds that nothing is said, with a small probability. The first always stays, even
    if it is empty: the best translation is the same however many are asked for.
    """
    texts: set[str] = set()
    for hypothesis in ranked:
        text = hypothesis.text
        if not texts or (text.strip() and text not in texts):
            texts.add(text)
            yield hypothesis
            if len(texts) == maximum:
                return


def _answers(
    passage: Passage,
    unit: Unit,
    piece: Piece,
    results: Sequence[SentenceResult],
    contents: Mapping[Mark, str] | None = None,
) -> tuple[list[TranslatedHypothesis], tuple[Mark, ...]]:
    """The answers to a piece that do, best first, and what the best of the others lost.

    All do of one that has no `contents`, of elements that are asked for by themselves; it holds no mark then.
    """
    if not results:
        # The tokenizer sees nothing in it.
        return [_source_of(passage, unit, piece)], ()
    candidates = [
        (hypothesis, shown)
        for shown, result in zip((shown for shown in piece.shown if shown.ids), results, strict=True)
        for hypothesis in result.hypotheses
    ]
    if len(piece.shown) > 1:
        candidates.sort(key=lambda candidate: -candidate[0].score)
    refused: list[tuple[Mark, ...]] = []
    is_partial = piece.is_part or passage.is_markup

    def accepted() -> Iterator[TranslatedHypothesis]:
        for hypothesis, shown in candidates:
            text = passage.bundle.target_tokenizer.decode_text(hypothesis.tokens)
            if is_partial and not any(map(str.isalnum, text)):
                # Tags would be around nothing.
                continue
            if (piece.is_part or passage.options.protection.is_automatic) and _is_whole(passage, hypothesis):
                begins = text.startswith((*(word for word, _ in shown.masks), *_terms(unit)))
                text = _finished(passage, shown.text.text, text, is_cased=not (begins or unit.in_capitals))
            masks: list[Found] | None = []
            if contents is not None:
                masks = find_masks(shown.masks, text)
                lost = lost_numbers(passage, unit, shown, text, masks or [])
                pairs = None if masks is None else find_pairs(passage, unit, shown, text, masks)
                if masks is None or pairs is None or lost or lacks_terms(passage, unit, shown, text):
                    refused.append(lost)
                    continue
                masks = [*masks, *pairs]
            answer, lost = _answer(passage, unit, piece, shown, hypothesis, text, masks or [], contents or {})
            if lost and contents is not None:
                refused.append(lost)
            else:
                yield answer

    answers = list(distinct(accepted(), maximum=passage.options.num_hypotheses))
    if not answers and not refused:
        answers = [_source_of(passage, unit, piece)]
    return answers, refused[0] if refused else ()


def _source_of(passage: Passage, unit: Unit, piece: Piece) -> TranslatedHypothesis:
    """What stands there, as the answer to a piece that the model says nothing of."""
    return TranslatedHypothesis(
        text=passage.written(passage.source.back(piece.span), within(unit.marks, piece.span))
    )


def _answer(
    passage: Passage,
    unit: Unit,
    piece: Piece,
    shown: Shown,
    hypothesis: Hypothesis,
    text: str,
    masks: Sequence[Found],
    contents: Mapping[Mark, str],
) -> tuple[TranslatedHypothesis, tuple[Mark, ...]]:
    """A hypothesis as an answer, and the elements that are around no word of it."""
    has_tags = bool(piece.inserted or piece.elements)
    found = None
    if passage.options.return_alignments or has_tags:
        # Its end may be another than the model's.
        found = linked(shown.text.text, shown.ids, hypothesis, passage.bundle).until(len(text))
    insertions: Sequence[Insertion] = ()
    empty: tuple[Mark, ...] = ()
    if has_tags and found:
        insertions, empty = place(piece, shown.text, text, found, passage.output_of, contents)
    out = written(passage, unit, text, [(span, _filled(mark, contents)) for span, mark in masks], insertions)
    links = tuple(
        replace(
            link,
            source=passage.source.back(shown.text.back(link.source)),
            target=out.onto(link.target),
        )
        for link in (found.links if found and passage.options.return_alignments else ())
    )
    return _answer_of(hypothesis, out.text, links), empty


def _filled(mark: Mark, contents: Mapping[Mark, str]) -> Mark:
    """An element that is masked with what it holds in the translation, as the text in its place."""
    if mark not in contents:
        return mark
    return replace(mark, output=f"{mark.output}{contents[mark]}{mark.closing}")


def _answer_of(hypothesis: Hypothesis, text: str, links: tuple[Alignment, ...] = ()) -> TranslatedHypothesis:
    return TranslatedHypothesis(
        text=text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finish_reason=hypothesis.finish_reason,
        num_tokens=len(hypothesis.tokens) + (hypothesis.finish_reason is FinishReason.STOP),
        alignments=links,
    )


def _is_whole(passage: Passage, hypothesis: Hypothesis) -> bool:
    """Whether an answer and what was asked for have their ends: one that is continued has none."""
    source, target = passage.languages
    return source != target and not passage.truncated and hypothesis.finish_reason is not FinishReason.LENGTH


def _finished(passage: Passage, shown: str, answer: str, *, is_cased: bool = True) -> str:
    tokenizer = passage.bundle.target_tokenizer
    return finished(
        answer,
        shown,
        languages=passage.languages,
        count_pieces=lambda words: list(map(len, tokenizer.encode_ids(words))),
        is_cased=is_cased,
    )


def _terms(unit: Unit) -> list[str]:
    """What the terms of a unit are translated by."""
    return [mark.output for mark in unit.marks if mark.kind is Kind.TERM and mark.output]


def _begun(passage: Passage, unit: Unit, answer: TranslatedHypothesis) -> TranslatedHypothesis:
    """The answer with a capital, where a sentence begins with a term that is written small."""
    terms = _terms(unit)
    if not terms or passage.options.protection.is_as_written:
        return answer
    text, found = passage.source.text[slice(*unit.span)], _BEGINNING.match(answer.text)
    is_sentence = text[-1] in _SENTENCE_MARKS and next(filter(str.isalpha, text)).isupper()
    if not (is_sentence and found and found[1].islower()):
        return answer
    start = found.start(1)
    begins = any(answer.text.startswith(term, start) for term in terms)
    return replace(answer, text=capitalised(answer.text, start)) if begins else answer


def _joined(
    attempt: Attempt, found: Sequence[Sequence[TranslatedHypothesis]]
) -> Iterator[TranslatedHypothesis]:
    """The answers to a unit's pieces as answers to the unit; a piece with fewer gives its last."""
    for rank in range(max(map(len, found), default=1)):
        parts = [answers[min(rank, len(answers) - 1)] for answers in found]
        texts = [part.text for part in parts]
        yield joined(attempt.seams.gaps(attempt.gaps, texts) if attempt.seams else attempt.gaps, parts)

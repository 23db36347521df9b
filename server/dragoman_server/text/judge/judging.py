"""Answers of the model to an attempt: whether they keep what must be kept, and what goes out.

Spans of an answer count code points of what goes out for the unit.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from dragoman_server.engine.request import FinishReason, Hypothesis, SentenceResult
from dragoman_server.text.align.links import linked
from dragoman_server.text.brackets import adds_signs, without_signs
from dragoman_server.text.judge.checking import Found, find_masks, find_pairs, lacks_terms, lost_numbers
from dragoman_server.text.judge.edges import finished
from dragoman_server.text.judge.writing import Insertion, place, written
from dragoman_server.text.marks import Kind, Mark, within
from dragoman_server.text.passage import Attempt, Form, Passage, Piece, Stage, Unit
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


def judge(passage: Passage, unit: Unit, results: Sequence[Sequence[SentenceResult]]) -> Unit:
    """A unit with answers, or with what those that would not do have lost.

    The results are those of each piece of its attempt.
    """
    of_attempt = slowest(result for of_piece in results for result in of_piece)
    timings = Timings(*map(sum, zip(unit.timings, of_attempt, strict=True)))
    judging = _Judging(passage, unit, timings)
    remaining = iter(zip(unit.attempt.pieces, results, strict=True))
    if unit.attempt.stage is Stage.APART:
        return judging.done(judging.in_parts(unit.attempt, remaining))
    options, first = passage.options, next(remaining)
    is_simple = options.num_hypotheses == 1 and not (options.return_alignments or passage.is_markup)
    if is_simple and first[1] and unit.is_plain:
        # The commonest case by far, done at once.
        hypothesis = first[1][0].hypotheses[0]
        text = judging.text(first[0], first[0].forms[0], hypothesis)
        return replace(unit, answers=(_answer_of(hypothesis, text),), timings=timings)
    for element, attempt in unit.attempt.contents:
        judging.contents[element] = judging.in_parts(attempt, remaining)[0].text
    lost: tuple[Mark, ...] = ()
    for attempted in (unit.first, first):
        if attempted is not None:
            answers, lost = judging.answers(*attempted)
            if answers:
                return judging.done(answers)
    lost = tuple(sorted({*unit.lost, *lost}, key=lambda mark: mark.span))
    return replace(unit, lost=lost, first=first, timings=timings)


def distinct(ranked: Iterable[TextT], *, maximum: int) -> Iterator[TextT]:
    """Yields at most so many of the hypotheses, in their order, no two with the same text and none without
    any.

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


class _Judging:
    """The answers to the pieces of one unit."""

    def __init__(self, passage: Passage, unit: Unit, timings: Timings) -> None:
        self._passage, self._unit, self._timings = passage, unit, timings
        self.contents: dict[Mark, str] = {}
        """What the elements that are masked hold in the translation."""
        self._terms = [mark.output for mark in unit.marks if mark.kind is Kind.TERM and mark.output]

    def done(self, answers: Iterable[TranslatedHypothesis]) -> Unit:
        """The unit with its answers."""
        begun = map(self._begun, answers)
        ended = tuple(replace(answer, text=answer.text + self._unit.rest) for answer in begun)
        return replace(self._unit, answers=ended, first=None, timings=self._timings)

    def in_parts(
        self, attempt: Attempt, results: Iterable[tuple[Piece, Sequence[SentenceResult]]]
    ) -> list[TranslatedHypothesis]:
        """The answers to what is translated in parts, from the next results of so many pieces."""
        of_pieces = islice(results, len(attempt.pieces))
        found = [self.answers(piece, of_piece, is_part=True)[0] for piece, of_piece in of_pieces]
        return list(_joined(attempt, found))

    def answers(
        self, piece: Piece, results: Sequence[SentenceResult], *, is_part: bool = False
    ) -> tuple[list[TranslatedHypothesis], tuple[Mark, ...]]:
        """The answers to a piece that do, best first, and what the best of the others lost.

        All do of a part of what is translated in parts; it holds no mark.
        """
        if not results:
            # The tokenizer sees nothing in it.
            return [self._source_of(piece)], ()
        candidates = [
            (hypothesis, form)
            for form, result in zip((form for form in piece.forms if form.ids), results, strict=True)
            for hypothesis in result.hypotheses
        ]
        if len(piece.forms) > 1:
            candidates.sort(key=lambda candidate: -candidate[0].score)
        refused: list[tuple[Mark, ...]] = []

        def accepted() -> Iterator[TranslatedHypothesis]:
            for hypothesis, form in candidates:
                text = self.text(piece, form, hypothesis)
                if (piece.is_part or self._passage.is_markup) and not any(map(str.isalnum, text)):
                    # Tags would be around nothing.
                    continue
                masks, lost = ([], ()) if is_part else self._checked(form, text)
                if masks is None:
                    refused.append(lost)
                    continue
                answer, lost = self._answer(piece, form, hypothesis, text, masks)
                if lost and not is_part:
                    refused.append(lost)
                else:
                    yield answer

        answers = list(distinct(accepted(), maximum=self._passage.options.num_hypotheses))
        if not answers and not refused:
            answers = [self._source_of(piece)]
        return answers, refused[0] if refused else ()

    def _source_of(self, piece: Piece) -> TranslatedHypothesis:
        """What stands there, as the answer to a piece that the model says nothing of."""
        marks = within(self._unit.marks, piece.span)
        return TranslatedHypothesis(text=self._passage.written(self._passage.source.back(piece.span), marks))

    def text(self, piece: Piece, form: Form, hypothesis: Hypothesis) -> str:
        """What the model says, with its beginning and its end as its source has them.

        One that is continued has no end, and neither has what is truncated.
        """
        passage, tokenizer = self._passage, self._passage.bundle.target_tokenizer
        text = tokenizer.decode_text(hypothesis.tokens)
        is_finished = piece.is_part or passage.options.protection.is_automatic
        is_cut = passage.truncated or hypothesis.finish_reason is FinishReason.LENGTH
        if piece.is_part and adds_signs(text, form.text.text):
            text = without_signs(text)
        if is_cut or not is_finished or passage.languages[0] == passage.languages[1]:
            return text
        begins = text.startswith((*(word for word, _ in form.masks), *self._terms))
        return finished(
            text,
            form.text.text,
            languages=passage.languages,
            count_pieces=lambda words: list(map(len, tokenizer.encode_ids(words))),
            is_cased=not (begins or self._unit.in_capitals),
        )

    def _checked(self, form: Form, text: str) -> tuple[list[Found] | None, tuple[Mark, ...]]:
        """Where the masks stand in an answer, and signs of pairs; None for one that lacks something, and the
        numbers that it lacks."""
        passage, unit = self._passage, self._unit
        masks = find_masks(form.masks, text)
        lost = lost_numbers(passage, unit, form, text, masks or [])
        pairs = None if masks is None else find_pairs(passage, unit, form, text, masks)
        if masks is None or pairs is None or lost or lacks_terms(passage, unit, form, text):
            return None, lost
        return [*masks, *pairs], ()

    def _answer(
        self, piece: Piece, form: Form, hypothesis: Hypothesis, text: str, masks: Sequence[Found]
    ) -> tuple[TranslatedHypothesis, tuple[Mark, ...]]:
        """A hypothesis as an answer, and the elements that are around no word of it."""
        passage = self._passage
        has_tags = bool(piece.inserted or piece.elements)
        found = None
        if passage.options.return_alignments or has_tags:
            # Its end may be another than the model's.
            found = linked(form.text.text, form.ids, hypothesis, passage.bundle).until(len(text))
        insertions: Sequence[Insertion] = ()
        empty: tuple[Mark, ...] = ()
        if has_tags and found:
            insertions, empty = place(piece, form.text, text, masks, found, passage.output_of, self.contents)
        filled = [(span, self._filled(mark)) for span, mark in masks]
        out = written(passage, self._unit, text, filled, insertions)
        links = (
            replace(
                link, source=passage.source.back(form.text.back(link.source)), target=out.onto(link.target)
            )
            for link in (found.links if found and passage.options.return_alignments else ())
        )
        return _answer_of(hypothesis, out.text, links), empty

    def _filled(self, mark: Mark) -> Mark:
        """An element that is masked with what it holds in the translation, as the text in its place."""
        if mark not in self.contents:
            return mark
        return replace(mark, output=f"{mark.output}{self.contents[mark]}{mark.closing}")

    def _begun(self, answer: TranslatedHypothesis) -> TranslatedHypothesis:
        """The answer with a capital, where a sentence begins with a term that is written small."""
        if not self._terms or self._passage.options.protection.is_as_written:
            return answer
        text = self._passage.source.text[slice(*self._unit.span)]
        found = _BEGINNING.match(answer.text)
        is_sentence = text[-1] in _SENTENCE_MARKS and next(filter(str.isalpha, text)).isupper()
        if not (is_sentence and found and found[1].islower()):
            return answer
        start = found.start(1)
        begins = any(answer.text.startswith(term, start) for term in self._terms)
        return replace(answer, text=capitalised(answer.text, start)) if begins else answer


def _answer_of(hypothesis: Hypothesis, text: str, links: Iterable[Alignment] = ()) -> TranslatedHypothesis:
    return TranslatedHypothesis(
        text=text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finish_reason=hypothesis.finish_reason,
        num_tokens=len(hypothesis.tokens) + (hypothesis.finish_reason is FinishReason.STOP),
        alignments=tuple(links),
    )


def _joined(
    attempt: Attempt, found: Sequence[Sequence[TranslatedHypothesis]]
) -> Iterator[TranslatedHypothesis]:
    """The answers to a unit's pieces as answers to the unit; a piece with fewer gives its last."""
    for rank in range(max(map(len, found), default=1)):
        parts = [answers[min(rank, len(answers) - 1)] for answers in found]
        texts = [part.text for part in parts]
        yield joined(attempt.seams.gaps(attempt.gaps, texts) if attempt.seams else attempt.gaps, parts)

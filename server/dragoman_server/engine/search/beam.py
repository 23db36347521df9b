"""Beam search over all sentences of a lane at once, and which of their ended hypotheses are returned.

Owns the rows' tokens, scores and backpointers; the decoder owns what the model keeps. Its length counts
every token, the end of the sentence included.

Shape suffixes: S sentences of the lane, K beam, C = 2K candidates, T source positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.decoder import FloatArray, IntArray, StepInput, StepOutput
from dragoman_server.engine.request import FinishReason, Hypothesis, Sentence
from dragoman_server.engine.search.history import Ages, History


class Ending(NamedTuple):
    """Where a hypothesis ended: enough to rank it and to trace it back."""

    log_probability: float
    """The sum over all its tokens, the end of the sentence included where there is one."""
    num_tokens: int
    """The end of the sentence included where there is one."""
    row: int
    """STOP: the sentence's row that was ended; LENGTH: the row that the last token went to."""
    finish_reason: FinishReason
    """Why it ended."""


def normalised_score(log_probability: float, num_tokens: int, length_penalty: float) -> float:
    """Log-probability over the length penalty, Wu et al. (2016), eq. 14; `num_tokens` counts the end."""
    penalty: float = ((5 + num_tokens) / 6) ** length_penalty
    return log_probability / penalty


def rank(
    endings: Sequence[Ending], *, length_penalty: float, num_hypotheses: int
) -> list[tuple[float, Ending]]:
    """The best endings with their normalised scores, best first; of equal ones, the first to end."""
    scored = [(normalised_score(*ending[:2], length_penalty), ending) for ending in endings]
    scored.sort(key=lambda pair: -pair[0])
    return scored[:num_hypotheses]


Number = TypeVar("Number", np.int64, np.float32)

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Advance:
    """The outcome of a step's candidates."""

    token_SK: IntArray
    """The token of each next row."""
    row_SK: IntArray
    """The sentence's row that each next row continues."""
    score_SK: FloatArray
    """Running log-probability of each next row, descending; -inf for one that is not in use."""
    ended_SK: npt.NDArray[np.bool_]
    """Which of the K best candidates end a hypothesis, or would if their row were in use."""
    ended_row_SK: IntArray
    """The sentence's row that each of the K best candidates continues."""


def advance(top_score_SC: FloatArray, top_index_SC: IntArray, *, vocabulary: int, eos: int) -> Advance:
    """Splits the candidates of a step into hypotheses that end and rows that live on.

    In rank order, a candidate that is the end of the sentence ends a hypothesis if it is among the K best and
    is dropped otherwise; the others are the next rows until there are K. At most K of the 2K candidates end,
    one a row, so K are always left.
    """
    sentences, candidates = top_score_SC.shape
    beam_size = candidates // 2
    row_SC, token_SC = np.divmod(top_index_SC, vocabulary)
    ends_SC = token_SC == eos
    place_SK = ends_SC.argsort(axis=1, kind="stable")[:, :beam_size]
    place_SK += _first_places(sentences, candidates)
    return Advance(
        token_SK=token_SC.take(place_SK),
        row_SK=row_SC.take(place_SK),
        score_SK=top_score_SC.take(place_SK),
        ended_SK=ends_SC[:, :beam_size],
        ended_row_SK=row_SC[:, :beam_size],
    )


@cache
def _first_places(sentences: int, candidates: int) -> IntArray:
    """Where each sentence's candidates begin: [S, 1]."""
    return np.arange(0, sentences * candidates, candidates)[:, None]


def _regrouped(
    running: npt.NDArray[Number], joined: npt.ArrayLike, num_joined: int, origin_S: IntArray
) -> npt.NDArray[Number]:
    """The running sentences, [S, ...], then newcomers with what is joined: in their new order."""
    if num_joined:
        pool = np.empty((len(running) + num_joined, *running.shape[1:]), running.dtype)
        pool[: len(running)] = running
        pool[len(running) :] = joined
        running = pool
    return running.take(origin_S, axis=0)


class Beams:
    """The beams of the sentences of a lane, in the order of the decoder's batch."""

    def __init__(self, *, beam_size: int, vocabulary: int, bos: int, eos: int) -> None:
        self._vocabulary, self._bos, self._eos = vocabulary, bos, eos
        self._beam_size = beam_size
        self._history = History()
        self._sentences: list[Sentence] = []
        self._endings: list[list[Ending]] = []
        self._token_SK = np.empty((0, beam_size), np.int64)
        self._parent_SK = np.empty((0, beam_size), np.int64)
        self._score_SK = np.empty((0, beam_size), np.float32)
        self._first_score_K = np.full(beam_size, -np.inf, np.float32)
        self._first_score_K[0] = 0
        self._first_row_S1 = np.empty((0, 1), np.int64)
        self._no_forced_SK = np.empty((0, beam_size), np.int64)
        self._ages = Ages()
        self._leave_at_S = np.empty(0, np.int64)
        self._prefix_until_S = np.empty(0, np.int64)
        # The first of the steps at which sentences have as many tokens as they may.
        self._first_leaves_at = _NEVER
        self._wants_attention = False
        self._has_prefixes = False

    def regroup(self, origin_S: IntArray, joined: Sequence[Sentence]) -> None:
        """Lets sentences leave and join; `origin_S` as in `Batch.regroup`."""
        num_before, num_joined, K = len(self._sentences), len(joined), self._beam_size
        # Running sentences own K rows each of the decoder's state, and behind these every newcomer has one.
        first_parent_S1 = num_before * K + np.arange(num_joined)[:, None]
        self._token_SK = _regrouped(self._token_SK, self._bos, num_joined, origin_S)
        self._parent_SK = _regrouped(self._parent_SK, first_parent_S1, num_joined, origin_S)
        self._score_SK = _regrouped(self._score_SK, self._first_score_K, num_joined, origin_S)
        now = self._ages.now
        self._ages.regroup(origin_S, num_joined)
        leave_at = [now + len(one.target_start) + one.options.max_output_tokens for one in joined]
        self._leave_at_S = _regrouped(self._leave_at_S, leave_at, num_joined, origin_S)
        self._first_leaves_at = int(self._leave_at_S.min(initial=_NEVER))
        self._first_row_S1 = np.arange(0, len(origin_S) * K, K)[:, None]
        self._no_forced_SK = np.zeros_like(self._token_SK)
        sentences = [*self._sentences, *joined]
        endings = [*self._endings, *([] for _ in joined)]
        origin = origin_S.tolist()
        self._sentences = [sentences[place] for place in origin]
        self._endings = [endings[place] for place in origin]
        self._history.regroup(origin)
        self._history.forget(self._ages.oldest())
        if joined or self._wants_attention:
            self._wants_attention = any(sentence.return_attention for sentence in self._sentences)
        prefix_until = [now + len(_dictated(sentence)) for sentence in joined]
        self._prefix_until_S = _regrouped(self._prefix_until_S, prefix_until, num_joined, origin_S)
        if joined or self._has_prefixes:
            self._has_prefixes = bool((self._prefix_until_S > now).any())

    def rows(self) -> StepInput:
        """The input of the next step."""
        forced_SK = self._no_forced_SK
        for s in self._forced():
            if forced_SK is self._no_forced_SK:
                forced_SK = forced_SK.copy()
            forced_SK[s, 0] = _dictated(self._sentences[s])[self.age(s)]
        return StepInput(
            token_SK=self._token_SK,
            parent_SK=self._parent_SK,
            score_SK=self._score_SK,
            forced_SK=forced_SK,
            wants_attention=self._wants_attention,
        )

    def advance(self, output: StepOutput) -> list[int]:
        """Takes a step's output in. Returns the places of the sentences that are done.

        They keep their places until the next regrouping, and may be named again by the steps until then.
        """
        new = advance(output.top_score_SC, output.top_index_SC, vocabulary=self._vocabulary, eos=self._eos)
        for s in self._forced():
            age = self.age(s)
            new.token_SK[s, 0] = _dictated(self._sentences[s])[age]
            new.row_SK[s] = 0
            new.score_SK[s] = -np.inf
            is_start = age < len(self._sentences[s].target_start)
            new.score_SK[s, 0] = 0 if is_start else output.forced_score_SK[s, 0]
            new.ended_SK[s] = False
        self._token_SK, self._score_SK = new.token_SK, new.score_SK
        self._parent_SK = new.row_SK + self._first_row_S1
        self._ages.step()
        attention_SKT = output.attention_SKT if self._wants_attention else None
        self._history.append(new.token_SK, new.row_SK, attention_SKT)
        done = self._record_endings(new, output.top_score_SC)
        if self._ages.now >= self._first_leaves_at:
            done.update(np.flatnonzero(self._leave_at_S <= self._ages.now).tolist())
        return sorted(done)

    def hypotheses(self, place: int) -> tuple[Hypothesis, ...]:
        """The hypotheses of the sentence at this place, best first, if it ended with the last step."""
        options, age = self._sentences[place].options, self.age(place)
        num_tokens = age - len(self._sentences[place].target_start)
        endings = self._endings[place]
        if num_open := self._beam_size - len(endings):
            rows = enumerate(self._score_SK[place, :num_open].tolist())
            length = FinishReason.LENGTH
            live = [Ending(score, num_tokens, row, length) for row, score in rows if score > -np.inf]
            endings = endings + live
        best = rank(endings, length_penalty=options.length_penalty, num_hypotheses=options.num_hypotheses)
        return tuple(self._hypothesis(place, age, score, ending) for score, ending in best)

    def age(self, place: int) -> int:
        """Steps that the sentence at this place has gone through."""
        return self._ages.age(place)

    def _forced(self) -> list[int]:
        """The sentences whose next token their start or prefix dictates."""
        if not self._has_prefixes:
            return []
        forced: list[int] = np.flatnonzero(self._ages.now < self._prefix_until_S).tolist()
        return forced

    def _record_endings(self, new: Advance, top_score_SC: FloatArray) -> set[int]:
        """Returns the sentences that have K endings now."""
        done = set()
        places_S, ranks_S = new.ended_SK.nonzero()
        scores, rows = (array[places_S, ranks_S].tolist() for array in (top_score_SC, new.ended_row_SK))
        ended = zip(places_S.tolist(), self._ages.of(places_S), scores, rows, strict=True)
        for s, num_tokens, log_probability, row in ended:
            endings = self._endings[s]
            if len(endings) < self._beam_size and log_probability > -np.inf:
                own = num_tokens - len(self._sentences[s].target_start)
                endings.append(Ending(log_probability, own, row, FinishReason.STOP))
                if len(endings) == self._beam_size:
                    done.add(s)
        return done

    def _hypothesis(self, place: int, age: int, score: float, ending: Ending) -> Hypothesis:
        stopped = ending.finish_reason is FinishReason.STOP
        attention = None
        sentence = self._sentences[place]
        start = len(sentence.target_start)
        tokens, rows = self._history.tokens(place, age, ending.row, start + ending.num_tokens - stopped)
        if sentence.return_attention:
            attended = [*rows, ending.row] if stopped else rows
            attention = self._history.attention(place, age, attended, len(sentence.source))[start:]
        return Hypothesis(
            tokens=tuple(tokens[start:]),
            score=score,
            log_probability=ending.log_probability,
            finish_reason=ending.finish_reason,
            attention=attention,
        )


def _dictated(sentence: Sentence) -> tuple[int, ...]:
    """The tokens that are not chosen."""
    return sentence.target_start + sentence.target_prefix

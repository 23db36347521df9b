"""Beam search over all sentences of a lane at once.

Owns the rows' tokens, scores and backpointers; the decoder owns what the model keeps. Its length counts
every token, the end of the sentence included.

Shape suffixes: S sentences of the lane, K beam, C = 2K candidates, T source positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.ages import Ages
from dragoman_server.engine.decoder import FloatArray, IntArray, StepInput, StepOutput
from dragoman_server.engine.history import History
from dragoman_server.engine.ranking import Ending, rank
from dragoman_server.engine.request import FinishReason, Hypothesis, Sentence

Number = TypeVar("Number", np.int64, np.float32)


@dataclass(frozen=True, slots=True)
class Advance:
    """What becomes of the candidates of a step."""

    token_SK: IntArray
    """The token of each next row."""
    row_SK: IntArray
    """The sentence's row that each next row continues."""
    score_SK: FloatArray
    """Running log-probability of each next row, descending; -inf for one that is not in use."""
    ended_SK: npt.NDArray[np.bool_]
    """Which of the K best candidates end a hypothesis."""
    ended_row_SK: IntArray
    """The sentence's row that each of the K best candidates continues."""


def advance(top_score_SC: FloatArray, top_index_SC: IntArray, *, vocabulary: int, eos: int) -> Advance:
    """Splits the candidates of a step into hypotheses that end and rows that live on.

    In rank order, a candidate that is the end of the sentence ends a hypothesis if it is among the K best and
    is dropped otherwise; the others are the next rows until there are K. At most K of the 2K candidates end,
    one a row, so K are always left.
    """
    beam_size = top_score_SC.shape[1] // 2
    row_SC, token_SC = np.divmod(top_index_SC, vocabulary)
    ends_SC = (token_SC == eos) & (top_score_SC > -np.inf)
    rank_SK = np.argsort(ends_SC, axis=1, kind="stable")[:, :beam_size]
    next_SK = np.arange(len(rank_SK))[:, None], rank_SK
    return Advance(
        token_SK=token_SC[next_SK],
        row_SK=row_SC[next_SK],
        score_SK=top_score_SC[next_SK],
        ended_SK=ends_SC[:, :beam_size],
        ended_row_SK=row_SC[:, :beam_size],
    )


class Beams:
    """The beams of the sentences of a lane, in the order of the decoder's batch."""

    def __init__(self, *, beam_size: int, vocabulary: int, bos: int, eos: int) -> None:
        self._vocabulary, self._bos, self._eos = vocabulary, bos, eos
        self._beam_size = beam_size
        self._history = History()
        self._sentences: list[Sentence] = []
        self._endings: list[list[Ending]] = []
        self._num_endings_S = np.empty(0, np.int64)
        self._token_SK = np.empty((0, beam_size), np.int64)
        self._parent_SK = np.empty((0, beam_size), np.int64)
        self._score_SK = np.empty((0, beam_size), np.float32)
        self._first_row_S = np.empty(0, np.int64)
        self._no_forced_SK = np.empty((0, beam_size), np.int64)
        self._ages = Ages()
        self._leave_at_S = np.empty(0, np.int64)
        self._prefix_until_S = np.empty(0, np.int64)
        # The first of the steps at which sentences have as many tokens as they may.
        self._first_leaves_at = 0
        self._wants_attention = False
        self._has_prefixes = False

    def regroup(self, origin_S: IntArray, joined: Sequence[Sentence]) -> None:
        """Lets sentences leave and join; `origin_S` as in `Batch.regroup`."""
        num_before, num_joined, K = len(self._sentences), len(joined), self._beam_size
        first_score_K = np.full(K, -np.inf, np.float32)
        first_score_K[0] = 0
        # Running sentences own K rows each of the decoder's state, and behind these every newcomer has one.
        first_parent_S = num_before * K + np.arange(num_joined)

        def moved(running: npt.NDArray[Number], new: npt.ArrayLike) -> npt.NDArray[Number]:
            if not num_joined:
                return running[origin_S]
            pool = np.empty((num_before + num_joined, *running.shape[1:]), running.dtype)
            pool[:num_before] = running
            pool[num_before:] = new
            return pool[origin_S]

        self._token_SK = moved(self._token_SK, self._bos)
        self._parent_SK = moved(self._parent_SK, first_parent_S[:, None])
        self._score_SK = moved(self._score_SK, first_score_K)
        now = self._ages.now
        self._ages.regroup(origin_S, num_joined)
        self._leave_at_S = moved(self._leave_at_S, [now + s.options.max_output_tokens for s in joined])
        self._prefix_until_S = moved(self._prefix_until_S, [now + len(s.target_prefix) for s in joined])
        self._first_leaves_at = int(self._leave_at_S.min(initial=np.iinfo(np.int64).max))
        self._first_row_S = np.arange(len(origin_S)) * K
        self._no_forced_SK = np.zeros_like(self._token_SK)
        sentences = [*self._sentences, *joined]
        endings = [*self._endings, *([] for _ in joined)]
        origin = origin_S.tolist()
        self._sentences = [sentences[place] for place in origin]
        self._endings = [endings[place] for place in origin]
        self._num_endings_S = moved(self._num_endings_S, 0)
        self._history.regroup(origin_S)
        self._history.forget(self._ages.oldest())
        self._wants_attention = any(sentence.return_attention for sentence in self._sentences)
        self._has_prefixes = any(sentence.target_prefix for sentence in self._sentences)

    def rows(self) -> StepInput:
        """What goes into the next step."""
        forced_SK = self._no_forced_SK
        for s in self._forced():
            if forced_SK is self._no_forced_SK:
                forced_SK = forced_SK.copy()
            forced_SK[s, 0] = self._sentences[s].target_prefix[self.age(s)]
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
            new.token_SK[s, 0] = self._sentences[s].target_prefix[self.age(s)]
            new.row_SK[s] = 0
            new.score_SK[s] = -np.inf
            new.score_SK[s, 0] = output.forced_score_SK[s, 0]
            new.ended_SK[s] = False
        self._token_SK, self._score_SK = new.token_SK, new.score_SK
        self._parent_SK = new.row_SK + self._first_row_S[:, None]
        self._ages.step()
        self._history.append(
            new.token_SK, new.row_SK, output.attention_SKT if self._wants_attention else None
        )
        done = self._record_endings(new, output.top_score_SC) if new.ended_SK.any() else set()
        if self._ages.now >= self._first_leaves_at:
            done.update(np.flatnonzero(self._leave_at_S <= self._ages.now).tolist())
        return sorted(done)

    def hypotheses(self, place: int) -> tuple[Hypothesis, ...]:
        """The hypotheses of the sentence at this place, best first, if it ended with the last step."""
        options, age = self._sentences[place].options, self.age(place)
        live = [
            Ending(
                log_probability=float(score),
                num_tokens=age,
                row=row,
                finish_reason=FinishReason.LENGTH,
            )
            for row, score in enumerate(self._score_SK[place])
            if score > -np.inf
        ]
        endings = [*self._endings[place], *live[: self._beam_size - len(self._endings[place])]]
        best = rank(endings, length_penalty=options.length_penalty, num_hypotheses=options.num_hypotheses)
        places = self._history.places(place, age)
        return tuple(self._hypothesis(place, places, score, ending) for score, ending in best)

    def age(self, place: int) -> int:
        """Steps that the sentence at this place has gone through."""
        return self._ages.age(place)

    def _forced(self) -> list[int]:
        """The sentences whose next token their prefix dictates."""
        if not self._has_prefixes:
            return []
        forced: list[int] = np.flatnonzero(self._ages.now < self._prefix_until_S).tolist()
        return forced

    def _record_endings(self, new: Advance, top_score_SC: FloatArray) -> set[int]:
        """Returns the sentences that have K endings now."""
        for s, k in np.argwhere(new.ended_SK).tolist():
            if len(self._endings[s]) < self._beam_size:
                ending = Ending(
                    log_probability=float(top_score_SC[s, k]),
                    num_tokens=self.age(s),
                    row=int(new.ended_row_SK[s, k]),
                    finish_reason=FinishReason.STOP,
                )
                self._endings[s].append(ending)
                self._num_endings_S[s] += 1
        return set(np.flatnonzero(self._num_endings_S == self._beam_size).tolist())

    def _hypothesis(self, s: int, places: list[int], score: float, ending: Ending) -> Hypothesis:
        stopped = ending.finish_reason is FinishReason.STOP
        tokens, rows = self._history.tokens(places, ending.row, ending.num_tokens - stopped)
        attention = None
        if self._sentences[s].return_attention:
            attended = [*rows, ending.row] if stopped else rows
            attention = self._history.attention(places, attended, len(self._sentences[s].source))
        return Hypothesis(
            tokens=tuple(tokens),
            score=score,
            log_probability=ending.log_probability,
            finish_reason=ending.finish_reason,
            attention=attention,
        )

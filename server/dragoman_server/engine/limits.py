"""How much the engine takes on, and which sentences it can decode at all, however long they wait."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_server.engine.decoder import Decoder, padded_positions
from dragoman_server.engine.errors import QueueFullError, QueueTooSlowError, SentenceError
from dragoman_server.engine.request import Priority, Sentence


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """Budgets of an engine. Raises ValueError, naming the field, for one that leaves no room at all."""

    max_rows: int = 320
    """Most rows, sentences times beam, that are decoded at a time, of all beam sizes together."""
    max_source_tokens: int = 16_384
    """Most source tokens, padding included, that are attended to at a time."""
    max_bulk_share: float = 0.75
    """Largest share of rows, source tokens and queue that bulk takes: the rest is interactive sentences'."""
    max_bulk_slowdown: float = 3.0
    """How many times as long bulk makes a turn of a lone interactive sentence at most, the step with all that
    goes with it, while such sentences come, as far as turns before tell; one of bulk always runs."""
    max_queue: int = 10_000
    """Most sentences that wait for a place in a batch."""
    max_queue_seconds: float = 10.0
    """More sentences may wait only while those before them take no longer, as far as anybody knows."""
    max_beam_size: int = 16
    """Widest beam accepted."""
    continuous: bool = True
    """Whether sentences join and leave a running batch; otherwise it ends as a whole before another."""

    @property
    def max_bulk_rows(self) -> int:
        """Most rows of bulk sentences."""
        return math.floor(self.max_rows * self.max_bulk_share)

    @property
    def max_bulk_source_tokens(self) -> int:
        """Most source tokens of bulk sentences, padding included."""
        return math.floor(self.max_source_tokens * self.max_bulk_share)

    @property
    def max_bulk_queue(self) -> int:
        """Most bulk sentences that wait; there is always a place for one."""
        return max(1, math.floor(self.max_queue * self.max_bulk_share))

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_source_tokens", "max_queue", "max_beam_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 < self.max_bulk_share <= 1:
            raise ValueError(f"max_bulk_share is {self.max_bulk_share}; it must be above 0 and at most 1")
        if not self.max_bulk_slowdown >= 1:
            raise ValueError(f"max_bulk_slowdown is {self.max_bulk_slowdown}; it must be at least 1")
        if not self.max_queue_seconds > 0:
            raise ValueError(f"max_queue_seconds is {self.max_queue_seconds}; it must be above 0")
        if (beam_size := self.max_beam_size) > self.max_rows:
            rows = f"more rows than max_rows = {self.max_rows} allows"
            raise ValueError(f"max_beam_size is {beam_size}, {rows}")

    def check_queue(
        self,
        *,
        coming: Mapping[Priority, int],
        waiting: Mapping[Priority, int],
        expected_seconds: Mapping[Priority, float] | None = None,
    ) -> None:
        """Raises QueueFullError where so many sentences of each priority don't fit beside all that wait;
        QueueTooSlowError where what is before one of them takes too long.
        """
        expected = expected_seconds or {}
        longest = max((expected.get(key, 0.0) for key, number in coming.items() if number), default=0.0)
        num_coming, num_waiting = sum(coming.values()), sum(waiting.values())
        num_bulk, num_bulk_waiting = coming.get(Priority.BULK, 0), waiting.get(Priority.BULK, 0)
        # Of a full queue no larger share is the way out.
        for number, num_before, most, is_bulk in (
            (num_coming, num_waiting, self.max_queue, False),
            (num_bulk, num_bulk_waiting, self.max_bulk_queue, True),
        ):
            if number and num_before + number > most:
                raise QueueFullError(
                    num_sentences=number,
                    num_waiting=num_before,
                    max_queue=most,
                    is_bulk=is_bulk,
                    expected_seconds=longest,
                )
        if longest > self.max_queue_seconds:
            raise QueueTooSlowError(expected_seconds=longest, max_seconds=self.max_queue_seconds)


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The bounds that sentences are checked against before they are accepted."""

    limits: EngineLimits
    source_vocabulary: int
    """How many tokens a source has to choose from."""
    target_vocabulary: int
    """The same of a target prefix."""

    @classmethod
    def to(cls, decoder: Decoder[Any], limits: EngineLimits) -> "Admission":
        """The admission to engines over the decoder."""
        source, target = decoder.source_vocabulary, decoder.target_vocabulary
        return cls(limits=limits, source_vocabulary=source, target_vocabulary=target)

    def check(self, sentence: Sentence) -> None:
        """Raises SentenceError for a sentence that no batch could ever hold, or with unknown tokens."""
        beam_size, length = sentence.options.beam_size, len(sentence.source)
        if beam_size > self.limits.max_beam_size:
            raise SentenceError(
                f"beam_size is {beam_size}, and the engine's max_beam_size {self.limits.max_beam_size}; "
                "ask for less, or start the server with a larger --max-beam-size"
            )
        if padded_positions(length) > self.limits.max_source_tokens:
            raise SentenceError(
                f"the source has {length} tokens, padded to {padded_positions(length)}, "
                f"and the engine's max_source_tokens is {self.limits.max_source_tokens}; "
                "send shorter sentences, or start the server with larger --max-source-tokens"
            )
        for name in ("source", "target_start", "target_prefix"):
            ids: tuple[int, ...] = getattr(sentence, name)
            vocabulary = self.source_vocabulary if name == "source" else self.target_vocabulary
            if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
                wrong = next(id_ for id_ in ids if not 0 <= id_ < vocabulary)
                raise SentenceError(f"{name} holds token {wrong}; the vocabulary has {vocabulary} tokens")

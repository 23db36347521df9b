"""Events that engines report of their work, in a thread and in a process alike. Knows no metrics library."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dragoman_server.engine.request import Priority


class Outcome(enum.Enum):
    """How an accepted sentence ended."""

    FINISHED = "finished"
    """It has a result."""
    CANCELLED = "cancelled"
    """Its future was cancelled."""
    EXPIRED = "expired"
    """It raises DeadlineExpiredError."""
    FAILED = "failed"
    """It raises DecoderError."""
    CLOSED = "closed"
    """It raises EngineClosedError."""
    LOST = "lost"
    """It raises EngineLostError."""


@dataclass(frozen=True, slots=True)
class QueueLeft:
    """Sentences left the queue."""

    num_left: Mapping[Priority, int]
    """Number of sentences of each priority, of all that were submitted, that no longer wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStepped:
    """A batch advanced by one token."""

    engine: int
    """Number of the engine among those of its model."""
    num_sentences: int
    num_rows: int
    """Sentences times beam."""
    num_bulk_rows: int
    """Those of bulk among them."""
    rows_in_use: int
    """Rows of this batch and of the engine's others, which have their turns later."""
    source_positions: int
    """Source positions that are no padding."""
    padded_positions: int
    """Source positions, padding included."""
    seconds: float
    """Time of the decoder's step alone."""
    busy_seconds: float
    """Since the last step, or since there was work again: all that the engine did."""
    row_seconds: float
    """Time that a row adds to a turn, by the turns before."""


@dataclass(frozen=True, slots=True)
class SentenceEnded:
    """An accepted sentence ended."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class EngineLost:
    """An engine ended that should not have, or hung, and is replaced. In the thread that noticed."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """All is reported for now: the engine goes on with its next turn, or waits."""


Event = QueueLeft | BatchStepped | SentenceEnded | EngineLost | TurnEnded

Listener = Callable[[Event], None]
"""Called in the engine's thread, in between its work: it is quick and does not raise."""


def ignore(event: Event) -> None:
    """Listens to nothing."""

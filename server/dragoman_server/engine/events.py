"""What engines tell of their work, in a thread and in a process alike. Knows no metrics library."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dragoman_server.engine.request import Priority


class Outcome(enum.Enum):
    """How an accepted sentence ended."""

    FINISHED = "finished"
    """With a result."""
    CANCELLED = "cancelled"
    """Its future was cancelled."""
    EXPIRED = "expired"
    """With DeadlineExpiredError."""
    FAILED = "failed"
    """With DecoderError."""
    CLOSED = "closed"
    """With EngineClosedError."""
    LOST = "lost"
    """With EngineLostError."""


@dataclass(frozen=True, slots=True)
class QueueLeft:
    """Sentences left the queue."""

    num_left: Mapping[Priority, int]
    """Of each priority, how many of all that were submitted no longer wait."""


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
    """With those of the engine's other batches, which have their turns later."""
    source_positions: int
    """Without padding."""
    padded_positions: int
    """Padding included."""
    seconds: float
    """Of the decoder's step alone."""
    busy_seconds: float
    """Since the last step, or since there was work again: all that the engine did."""
    row_seconds: float
    """What a row adds to a turn, as far as turns before tell."""


@dataclass(frozen=True, slots=True)
class SentenceEnded:
    """An accepted sentence ended."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class EngineLost:
    """An engine ended that should not have, or hung, and is replaced. In the thread that noticed."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """All was told that there is to tell for now: the engine goes on with its next turn, or waits."""


Event = QueueLeft | BatchStepped | SentenceEnded | EngineLost | TurnEnded

Listener = Callable[[Event], None]
"""Called in the engine's thread, in between its work: it is quick and does not raise."""


def ignore(event: Event) -> None:
    """Listens to nothing."""

"""What the engine tells about its work while it works. Knows no metrics library."""

import enum
from collections.abc import Mapping
from typing import Protocol

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


class Observer(Protocol):
    """Called in the engine's thread, in between its work: implementations are quick and do not raise."""

    def on_queue(self, num_left: Mapping[Priority, int]) -> None:
        """Of the sentences submitted so many of each priority no longer wait."""
        ...

    def on_encode(self, seconds: float) -> None:
        """A group was encoded."""
        ...

    def on_step(
        self,
        *,
        num_sentences: int,
        num_rows: int,
        source_positions: int,
        padded_positions: int,
        seconds: float,
    ) -> None:
        """A batch advanced by one token; `num_rows` is sentences times beam.

        `padded_positions` counts the real `source_positions` and the padding.
        """
        ...

    def on_finish(self, outcome: Outcome) -> None:
        """An accepted sentence ended."""
        ...

    def on_loss(self) -> None:
        """An engine ended that should not have, or hung, and is replaced. In the thread that noticed."""
        ...

    def flush(self) -> None:
        """All was told that there is to tell for now: the engine goes on with its next turn, or waits."""
        ...


class SilentObserver(Observer):
    """Looks away."""

    def on_queue(self, num_left: Mapping[Priority, int]) -> None:
        """Does nothing."""

    def on_encode(self, seconds: float) -> None:
        """Does nothing."""

    def on_step(
        self,
        *,
        num_sentences: int,
        num_rows: int,
        source_positions: int,
        padded_positions: int,
        seconds: float,
    ) -> None:
        """Does nothing."""

    def on_finish(self, outcome: Outcome) -> None:
        """Does nothing."""

    def on_loss(self) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing."""

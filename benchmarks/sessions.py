"""Looks into the onnxruntime sessions that the engine opens and runs, without the engine's knowing of it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from onnxruntime import InferenceSession, SessionOptions

ENCODER_CALLS = ("run",)
STEP_CALLS = ("run_with_iobinding", "run_with_ort_values")


class SessionClock:
    """When onnxruntime was at work."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float, str]] = []

    def note(self, started: float, ended: float, call: str) -> None:
        """A call of a session, by the method's name."""
        self._spans.append((started, ended, call))

    def clear(self) -> None:
        """Forgets what was."""
        self._spans.clear()

    def seconds(self, *calls: str) -> float:
        """Seconds in which at least one of these calls was under way; of any call where none is named."""
        busy, until = 0.0, float("-inf")
        for started, ended, call in sorted(self._spans):
            if calls and call not in calls:
                continue
            busy += max(0.0, ended - max(started, until))
            until = max(until, ended)
        return busy

    def durations(self, *calls: str) -> list[float]:
        """Seconds of each of these calls, in their order."""
        return [ended - started for started, ended, call in self._spans if call in calls]


@contextmanager
def clocked_sessions() -> Iterator[SessionClock]:
    """Notes every run of every session meanwhile."""
    clock = SessionClock()

    def clocked(call: str) -> Callable[..., Any]:
        original = getattr(InferenceSession, call)

        def run(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return original(*arguments, **options)
            finally:
                clock.note(started, time.perf_counter(), call)

        return run

    with ExitStack() as stack:
        for call in (*ENCODER_CALLS, *STEP_CALLS):
            stack.enter_context(mock.patch.object(InferenceSession, call, clocked(call)))
        yield clock


@contextmanager
def profiled_sessions(folder: Path) -> Iterator[list[InferenceSession]]:
    """Has every session that is opened meanwhile write a profile to the folder when it is told to end it.

    What is handed out fills up with the sessions.
    """
    sessions: list[InferenceSession] = []
    original = InferenceSession.__init__

    def open_profiled(
        self: InferenceSession, graph: Any, options: SessionOptions, *arguments: Any, **named: Any
    ) -> None:
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / f"profile-{len(sessions)}")
        original(self, graph, options, *arguments, **named)
        sessions.append(self)

    with mock.patch.object(InferenceSession, "__init__", open_profiled):
        yield sessions

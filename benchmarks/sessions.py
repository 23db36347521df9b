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
    """How long onnxruntime was at work."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, float]] = []

    def note(self, call: str, started: float, ended: float) -> None:
        """A call of a session, by the method's name, in seconds of `time.perf_counter`."""
        self._calls.append((call, ended - started))

    def seconds(self, *calls: str) -> float:
        """Seconds that these calls took; those that were under way at the same time count each."""
        return sum(seconds for call, seconds in self._calls if call in calls)


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
                clock.note(call, started, time.perf_counter())

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

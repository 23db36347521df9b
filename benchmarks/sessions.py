"""Looks into the onnxruntime sessions that the engine opens and runs, without the engine's knowing of it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from onnxruntime import InferenceSession

_CALLS = ("run", "run_with_iobinding", "run_with_ort_values")
_OF_A_STEP = "token"
"""What a step's graph is given, and no other."""


class SessionClock:
    """How long onnxruntime was at work, in seconds; runs that were under way at the same time count each."""

    def __init__(self) -> None:
        self._runs: list[tuple[bool, float]] = []

    def note(self, seconds: float, *, is_step: bool) -> None:
        """A run of a session."""
        self._runs.append((is_step, seconds))

    @property
    def step_seconds(self) -> float:
        """Decoder steps took so long."""
        return sum(seconds for is_step, seconds in self._runs if is_step)

    @property
    def encoder_seconds(self) -> float:
        """Everything else took so long: encoding, and gathering candidates."""
        return sum(seconds for is_step, seconds in self._runs if not is_step)


@contextmanager
def clocked_sessions() -> Iterator[SessionClock]:
    """Notes every run of every session meanwhile."""
    clock = SessionClock()
    # With the session, which is not to end meanwhile: another one might take its number.
    known: dict[int, tuple[InferenceSession, bool]] = {}

    def is_step(session: InferenceSession) -> bool:
        if id(session) not in known:
            known[id(session)] = session, any(value.name == _OF_A_STEP for value in session.get_inputs())
        return known[id(session)][1]

    def clocked(call: str) -> Callable[..., Any]:
        original = getattr(InferenceSession, call)

        def run(session: InferenceSession, *arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return original(session, *arguments, **options)
            finally:
                clock.note(time.perf_counter() - started, is_step=is_step(session))

        return run

    with ExitStack() as stack:
        for call in _CALLS:
            stack.enter_context(mock.patch.object(InferenceSession, call, clocked(call)))
        yield clock

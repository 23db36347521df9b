"""Whether an engine still answers: it is asked again and again until it is silent for too long."""

import threading
from collections.abc import Callable

NUM_TICKS = 10
"""Times the engine is given as long as from one question to the next."""


class Heartbeat:
    """Asks in a thread of its own, until it is stopped or nobody answered in time."""

    def __init__(
        self, *, ask: Callable[[], None], on_silence: Callable[[], None], timeout_seconds: float
    ) -> None:
        """`ask` returns at once and has `answer` called; `on_silence` is called where that takes too long."""
        self._ask = ask
        self._on_silence = on_silence
        self._tick_seconds = timeout_seconds / NUM_TICKS
        self._is_answered = True
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="dragoman-engine-heartbeat", daemon=True)

    def start(self) -> None:
        """Begins to ask."""
        self._thread.start()

    def answer(self) -> None:
        """The engine is there. From any thread."""
        self._is_answered = True

    def stop(self) -> None:
        """Asks no more."""
        self._stopped.set()

    def _work(self) -> None:
        num_silent = 0
        # Ticks are counted, not seconds: time that this process itself stood still for is not the engine's.
        while not self._stopped.wait(self._tick_seconds):
            if self._is_answered:
                self._is_answered, num_silent = False, 0
                self._ask()
                continue
            num_silent += 1
            if num_silent >= NUM_TICKS:
                self._on_silence()
                return

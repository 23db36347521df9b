"""Tells one observer of several engines as if they were one."""

import threading

from dragoman_server.engine.observer import Observer, Outcome


class QueueGauge:
    """Adds up who waits and who runs; all else passes through."""

    def __init__(self, observer: Observer, num_engines: int) -> None:
        self._observer = observer
        self._waiting = [0] * num_engines
        self._running = [0] * num_engines
        self._lock = threading.Lock()

    def part(self, number: int) -> Observer:
        """The observer of one of the engines."""
        return _Part(self, self._observer, number)

    def set(self, number: int, *, num_waiting: int, num_running: int) -> None:
        """One engine says who waits for it and who runs in it."""
        with self._lock:
            self._waiting[number], self._running[number] = num_waiting, num_running
            self._observer.on_queue(num_waiting=sum(self._waiting), num_running=sum(self._running))


class _Part(Observer):
    def __init__(self, gauge: QueueGauge, observer: Observer, number: int) -> None:
        self._gauge = gauge
        self._observer = observer
        self._number = number

    def on_queue(self, *, num_waiting: int, num_running: int) -> None:
        self._gauge.set(self._number, num_waiting=num_waiting, num_running=num_running)

    def on_encode(
        self, *, num_sentences: int, source_positions: int, padded_positions: int, seconds: float
    ) -> None:
        self._observer.on_encode(
            num_sentences=num_sentences,
            source_positions=source_positions,
            padded_positions=padded_positions,
            seconds=seconds,
        )

    def on_step(
        self,
        *,
        num_sentences: int,
        num_rows: int,
        source_positions: int,
        padded_positions: int,
        seconds: float,
    ) -> None:
        self._observer.on_step(
            num_sentences=num_sentences,
            num_rows=num_rows,
            source_positions=source_positions,
            padded_positions=padded_positions,
            seconds=seconds,
        )

    def on_finish(self, outcome: Outcome) -> None:
        self._observer.on_finish(outcome)

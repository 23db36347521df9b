"""An engine in a process of its own, so that it never waits for Python's lock where others hold it.

Owns the futures of its sentences, and that a process that ends or hangs is replaced; `pipe` has
one of them. To its callers it is an `Engine`.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from dragoman_server.engine import events
from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.errors import EngineClosedError, EngineError, EngineLostError
from dragoman_server.engine.heartbeat import Heartbeat
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.pool import pipe
from dragoman_server.engine.request import Priority, Sentence, SentenceResult
from dragoman_server.engine.ticket import settle

START_TIMEOUTS = 10
"""A process that replaces another may take so many times as long to start as one may be silent."""
MAX_LOSSES = 1
"""Processes that a sentence may be lost with, and is tried again. It may be what ends them."""
MAX_WAIT_SECONDS = 1.0
"""Longest wait for a process that sentences stay for; their callers can try elsewhere."""
RESET_SECONDS = 60.0
"""An engine that lived for so long owes nothing to those before it."""
MAX_SECONDS = 30.0
"""Longest wait for another process."""

logger = logging.getLogger(__name__)


class Backoff:
    """How long to wait before an engine that ended is started anew. Pure: is told the time, in seconds.

    There is no wait for the first start, then one second, and twice as long each time as the time before.
    """

    def __init__(self) -> None:
        self._num_starts = 0
        self._started_at = 0.0

    def started(self, now: float) -> None:
        """An engine decodes from now on."""
        self._started_at = now

    def delay(self, now: float) -> float:
        """One ended, or did not start; the seconds until the next start."""
        if self._started_at and now - self._started_at >= RESET_SECONDS:
            self._num_starts = 0
        self._started_at = 0.0
        self._num_starts += 1
        return 0.0 if self._num_starts == 1 else min(MAX_SECONDS, 2.0 ** (self._num_starts - 2))


@dataclass(eq=False, slots=True)
class _Held:
    """A sentence that is not answered yet."""

    sentence: Sentence
    future: Future[SentenceResult]
    num_losses: int = 0


class EngineProcess:
    """Translates the sentences of many callers together. Its methods may be called from any thread."""

    def __init__(
        self,
        opener: Callable[[], Decoder[Any]],
        *,
        limits: EngineLimits,
        listener: events.Listener = events.ignore,
        warm_up: Sentence | None = None,
        timeout_seconds: float = 30.0,
        num_engines: int = 1,
    ) -> None:
        """`opener` is pickled, and opens the decoder over there. `warm_up` is translated before the engine
        is ready, and counted nowhere. A process that is silent for `timeout_seconds`, longer than any run of
        a graph takes, is replaced. Its `num_engines` are threads over one decoder, and each has a batch.
        """
        self._begin = pipe.Begin(opener, limits, warm_up)
        self.num_engines = num_engines
        """Batches that its process decodes side by side; may be set until it is started."""
        self.first_number = 0
        """Number of the first of these among the engines of the model; may be set until then, too."""
        self._tell = listener
        self._timeout_seconds = timeout_seconds
        self._on_change: Callable[[], None] = lambda: None
        self.num_left = dict.fromkeys(Priority, 0)
        """See `Engine.num_left`."""
        # Of those, how many had left before the process that runs now was given any.
        self._num_left_before = Counter[Priority]()
        self._num_submitted = dict.fromkeys(Priority, 0)
        self._held: dict[int, _Held] = {}
        self._next_number = 0
        # None between two processes.
        self._running: pipe.WorkerProcess | None = None
        self._starting: pipe.WorkerProcess | None = None
        self._closed = False
        # Guards all of the above; nothing that is done under it waits.
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._backoff = Backoff()
        self._thread = threading.Thread(target=self._live, name="dragoman-engine-reader", daemon=True)

    def measure_step(self, sentence: Sentence) -> float:
        """Processor seconds of a step of the sentence alone, in `start`'s process. Raises as that does."""
        self._starting = pipe.WorkerProcess(self._begin, self._take)
        try:
            measured: pipe.Measured = self._starting.ask(pipe.Measure(sentence))
        except BaseException:
            self._starting = None
            raise
        return measured.step_seconds

    def start(self) -> None:
        """Starts the process and waits until it decodes. Raises what opening the decoder raised there, or
        DecoderError where the process ended.
        """
        self._running = self._open()
        self._thread.start()

    def submit(self, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        """Does what `Engine.submit` does, once started; a future may end with EngineLostError, too."""
        futures: list[Future[SentenceResult]] = [Future() for _ in sentences]
        with self._lock:
            if self._closed:
                raise EngineClosedError("the engine is shutting down and takes no more sentences")
            numbers = range(self._next_number, self._next_number + len(sentences))
            self._next_number = numbers.stop
            self._held.update(zip(numbers, map(_Held, sentences, futures), strict=True))
            for sentence in sentences:
                self._num_submitted[sentence.priority] += 1
            # Where there is none, or it has just ended, the next one gets them.
            if self._running is not None:
                self._running.send(pipe.Submit(numbers, sentences))
        for number, future in zip(numbers, futures, strict=True):
            future.add_done_callback(partial(self._note_if_cancelled, number))
        return futures

    def close(self) -> None:
        """Ends the process after its step, or soon; what is left fails with EngineClosedError."""
        with self._lock:
            self._closed = True
            processes = [process for process in (self._running, self._starting) if process is not None]
        self._closing.set()
        for process in processes:
            process.close()
        if self._thread.is_alive():
            # What can't even be killed holds up nobody.
            self._thread.join(pipe.GRACE_SECONDS)
        self._fail_all(EngineClosedError("the engine was closed before the sentence was translated"))

    def watch(self, on_change: Callable[[], None]) -> None:
        """See `Engine.watch`."""
        self._on_change = on_change

    @property
    def num_running(self) -> int:
        """Sentences that are being encoded or decoded."""
        with self._lock:
            num_waiting = sum(self._num_submitted.values()) - sum(self.num_left.values())
            return max(0, len(self._held) - num_waiting)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, and so sentences are decoded."""
        return self._running is not None and not self._closed

    @property
    def has_ended(self) -> bool:
        """Whether nothing is decoded any more: it was closed."""
        return self._closed

    @property
    def is_restarting(self) -> bool:
        """Whether its process ended and another is on its way, which gets what is submitted meanwhile."""
        return self._running is None and not self._closed

    @property
    def pid(self) -> int | None:
        """Its process, while there is one."""
        running = self._running
        return None if running is None else running.pid

    def _open(self, timeout_seconds: float | None = None) -> pipe.WorkerProcess:
        process = self._starting or pipe.WorkerProcess(self._begin, self._take)
        with self._lock:
            self._starting = process
        if self._closed:
            process.kill()
        watchdog = threading.Timer(timeout_seconds or 0.0, process.kill)
        if timeout_seconds is not None:
            watchdog.start()
        try:
            process.ask(pipe.Start(self.num_engines, self.first_number))
        finally:
            watchdog.cancel()
            self._starting = None
        self._backoff.started(time.monotonic())
        return process

    def _live(self) -> None:
        process = self._running
        while process is not None:
            process = self._replace(self._read(process))

    def _read(self, process: pipe.WorkerProcess) -> str:
        """Takes what the process tells until it ends; why it did."""
        silence = threading.Event()

        def on_silence() -> None:
            silence.set()
            process.kill()

        ask = partial(process.send, pipe.Sign.PING)
        heartbeat = Heartbeat(ask=ask, on_silence=on_silence, timeout_seconds=self._timeout_seconds)
        heartbeat.start()
        try:
            while True:
                for message in process.receive():
                    if message is pipe.Sign.PONG:
                        heartbeat.answer()
                    else:
                        self._take(message)
        except (EOFError, OSError):
            # It has ended, or was told to.
            pass
        except Exception:
            # An error of our own: a process that this side can't hear is replaced, too.
            logger.exception("what an engine told could not be taken")
        heartbeat.stop()
        with self._lock:
            self._running = None
        how = process.end()
        return f"no answer for {self._timeout_seconds:g} seconds" if silence.is_set() else how

    def _replace(self, reason: str) -> pipe.WorkerProcess | None:
        """Another process with what the last one had; None where the engine was closed meanwhile."""
        self._lose(reason)
        while not self._closed:
            delay = self._backoff.delay(time.monotonic())
            if delay > MAX_WAIT_SECONDS:
                self._fail_all(EngineLostError("the engine ended, and another is started later"))
            if self._closing.wait(delay):
                break
            try:
                process = self._open(START_TIMEOUTS * self._timeout_seconds)
            except Exception as error:
                if not self._closed:
                    logger.error("an engine's process did not start", extra={"reason": str(error)})
                    self._fail_all(EngineLostError("the engine ended, and another could not be started"))
                continue
            with self._lock:
                if not self._closed:
                    self._running = process
                    if self._held:
                        sentences = [held.sentence for held in self._held.values()]
                        process.send(pipe.Submit(list(self._held), sentences))
            if self._closed:
                process.end()
                break
            logger.info("an engine's process was replaced")
            self._on_change()
            return process
        self._fail_all(EngineClosedError("the engine was closed before the sentence was translated"))
        return None

    def _lose(self, reason: str) -> None:
        """Sentences of the process that ended are kept for the next one, or fail."""
        with self._lock:
            if self._closed:
                return
            lost = []
            for number, held in list(self._held.items()):
                held.num_losses += 1
                if held.num_losses > MAX_LOSSES:
                    lost.append(self._held.pop(number))
            self._leave_all_but_held()
            extra = {"reason": reason, "retried": len(self._held), "failed": len(lost)}
        logger.error("an engine's process ended", extra=extra)
        self._tell(events.EngineLost())
        self._on_change()
        times = f"{MAX_LOSSES + 1} times"
        self._fail(lost, EngineLostError(f"the engine ended {times} while it had the sentence"))

    def _leave_all_but_held(self) -> None:
        waiting = Counter(held.sentence.priority for held in self._held.values())
        self._num_left_before = Counter(self._num_submitted) - waiting
        self.num_left = {priority: self._num_left_before[priority] for priority in Priority}

    def _note_if_cancelled(self, number: int, future: Future[SentenceResult]) -> None:
        if not future.cancelled():
            return
        # Wakes callers that wait for several futures; nobody else marks a cancelled one.
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._held.pop(number, None) is None:
                return
            if self._running is not None:
                self._running.send(pipe.Cancel(number))
                return
            # No process had it, to tell how it ended.
            self._leave_all_but_held()
        self._tell(events.SentenceEnded(events.Outcome.CANCELLED))
        self._on_change()

    def _take(self, message: object) -> None:
        if isinstance(message, pipe.Answer):
            with self._lock:
                held = self._held.pop(message.number, None)
            # Its caller may have cancelled while the answer was on its way.
            if held is not None:
                settle(held.future, message.answer)
        elif isinstance(message, events.QueueLeft):
            left = {key: self._num_left_before[key] + message.num_left[key] for key in Priority}
            self.num_left = left
            self._tell(events.QueueLeft(left))
            self._on_change()
        elif isinstance(message, events.Event):
            self._tell(message)
        elif isinstance(message, logging.LogRecord):
            logging.getLogger(message.name).handle(message)

    def _fail_all(self, error: EngineError) -> None:
        with self._lock:
            left = list(self._held.values())
            self._held.clear()
            self._leave_all_but_held()
        self._fail(left, error)
        self._on_change()

    def _fail(self, lost: Sequence[_Held], error: EngineError) -> None:
        outcome = events.Outcome.LOST if isinstance(error, EngineLostError) else events.Outcome.CLOSED
        for held in lost:
            how = outcome if settle(held.future, error) else events.Outcome.CANCELLED
            self._tell(events.SentenceEnded(how))

"""An engine in a process of its own, so that it never waits for Python's lock where others hold it.

Owns the process and this side of its pipes; `worker` is the other side. To its callers it is an `Engine`.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.errors import DecoderError, EngineClosedError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.messages import Answer, Begin, Cancel, Failed, Observed, Submit
from dragoman_server.engine.observer import Observer, Outcome, SilentObserver
from dragoman_server.engine.request import Priority, Sentence, SentenceResult

# Without -P the folder that it is started in would be searched for modules.
_COMMAND = (sys.executable, "-P", "-m", "dragoman_server.engine.worker")

logger = logging.getLogger(__name__)


class EngineProcess:
    """Translates the sentences of many callers together. Its methods may be called from any thread."""

    def __init__(
        self,
        opener: Callable[[], Decoder[Any]],
        *,
        limits: EngineLimits,
        observer: Observer | None = None,
        warm_up: Sentence | None = None,
    ) -> None:
        """`opener` is pickled, and opens the decoder over there. `warm_up` is translated before the engine
        is ready, and counted nowhere.
        """
        self._begin = Begin(opener, limits, warm_up)
        self._observer = observer or SilentObserver()
        self.num_left = dict.fromkeys(Priority, 0)
        """As `Engine.num_left`."""
        self._num_submitted = dict.fromkeys(Priority, 0)
        self._futures: dict[int, Future[SentenceResult]] = {}
        self._next_number = 0
        self._closed = False
        # Guards the three above, and is held while something is sent.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader = threading.Thread(target=self._read, name="dragoman-engine-reader", daemon=True)

    def start(self) -> None:
        """Starts the process and waits until it decodes. Raises what opening the decoder raised there, or
        DecoderError where the process ended.
        """
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        self._to_process = Connection(our_output, readable=False)
        self._from_process = Connection(our_input, writable=False)
        try:
            # A group of its own: a terminal's Ctrl-C is for whoever started it, who drains.
            self._process = subprocess.Popen(
                _COMMAND, stdin=their_input, stdout=their_output, process_group=0
            )
        finally:
            os.close(their_input)
            os.close(their_output)
        try:
            self._to_process.send(self._begin)
            *told, outcome = self._from_process.recv()
        except (EOFError, OSError) as error:
            raise DecoderError(f"an engine's process did not start: {self._how_it_ended()}") from error
        for message in told:
            self._take(message)
        if isinstance(outcome, Failed):
            raise outcome.reason
        self._reader.start()

    def submit(self, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        """As `Engine.submit`, once started."""
        futures: list[Future[SentenceResult]] = [Future() for _ in sentences]
        with self._lock:
            if self._closed:
                raise EngineClosedError("the engine is shutting down and takes no more sentences")
            first = self._next_number
            self._next_number += len(sentences)
            self._futures.update(enumerate(futures, first))
            for sentence in sentences:
                self._num_submitted[sentence.priority] += 1
            # Where the process has just ended, the reader is about to fail them.
            self._send(Submit(first, sentences))
        for number, future in enumerate(futures, first):
            future.add_done_callback(partial(self._note_if_cancelled, number))
        return futures

    def close(self) -> None:
        """Ends the process after the step it is in; what is left fails with EngineClosedError."""
        if self._process is None:
            return
        with self._lock:
            self._closed = True
            self._to_process.close()
        if self._reader.is_alive():
            self._reader.join()
        self._process.wait()

    @property
    def num_running(self) -> int:
        """Sentences that are being encoded or decoded."""
        with self._lock:
            num_waiting = sum(self._num_submitted.values()) - sum(self.num_left.values())
            return max(0, len(self._futures) - num_waiting)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, and so sentences are decoded."""
        return self._reader.is_alive()

    @property
    def pid(self) -> int | None:
        """Its process, while there is one."""
        return self._process.pid if self._process is not None and self.is_alive else None

    def _send(self, message: Submit | Cancel) -> None:
        try:
            self._to_process.send(message)
        except OSError:
            logger.debug("not sent: the engine's process has ended")

    def _note_if_cancelled(self, number: int, future: Future[SentenceResult]) -> None:
        if future.cancelled():
            # Wakes those who wait for several futures; nobody else marks a cancelled one.
            future.set_running_or_notify_cancel()
            with self._lock:
                if self._futures.pop(number, None) is not None and not self._closed:
                    self._send(Cancel(number))

    def _read(self) -> None:
        try:
            while True:
                for message in self._from_process.recv():
                    self._take(message)
        except (EOFError, OSError):
            # It has ended, or was told to.
            pass
        finally:
            # It may be this side that goes no further: without its pipes the process ends, too.
            self._from_process.close()
            with self._lock:
                was_closed, self._closed = self._closed, True
                self._to_process.close()
            self._fail_what_is_left()
            if not was_closed:
                logger.error("an engine's process ended", extra={"reason": self._how_it_ended()})

    def _take(self, message: object) -> None:
        if isinstance(message, Answer):
            with self._lock:
                future = self._futures.pop(message.number, None)
            if future is None:
                # Its caller cancelled while the answer was on its way.
                return
            try:
                if isinstance(message.answer, SentenceResult):
                    future.set_result(message.answer)
                else:
                    future.set_exception(message.answer)
            except InvalidStateError:
                return
        elif isinstance(message, Observed):
            if message.method == "on_queue":
                self.num_left = dict(message.arguments["num_left"])
            getattr(self._observer, message.method)(**message.arguments)
        elif isinstance(message, logging.LogRecord):
            logging.getLogger(message.name).handle(message)

    def _fail_what_is_left(self) -> None:
        with self._lock:
            left = list(self._futures.values())
            self._futures.clear()
            self.num_left = dict(self._num_submitted)
        for future in left:
            try:
                future.set_exception(
                    EngineClosedError("the engine was closed before the sentence was translated")
                )
            except InvalidStateError:
                self._observer.on_finish(Outcome.CANCELLED)
            else:
                self._observer.on_finish(Outcome.CLOSED)

    def _how_it_ended(self) -> str:
        assert self._process is not None
        status = self._process.wait()
        return f"signal {-status}" if status < 0 else f"exit status {status}"

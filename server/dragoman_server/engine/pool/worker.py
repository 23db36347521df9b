"""The process of one or more engines: decodes what comes by a pipe and answers by another.

Started by `process` alone. It ends when its first pipe does, so it never outlives the process that started
it, and it is deaf to the signals that are meant for that one.
"""

import logging
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.errors import EngineClosedError
from dragoman_server.engine.events import BatchStepped, Event, Outcome, QueueLeft, SentenceEnded, TurnEnded
from dragoman_server.engine.limits import Admission
from dragoman_server.engine.loop import Engine, warm
from dragoman_server.engine.pool import pipe
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.request import Priority, Sentence, SentenceResult
from dragoman_server.engine.search.beam import Beams

_MEANT_FOR_OTHERS = ("SIGINT", "SIGTERM", "SIGHUP")
NICENESS = 5
"""How far it stands back where cores are short: callers are answered by the process that started it."""
_MAX_WAITING = 100
"""Messages that nobody waits for are sent at the latest when there are so many."""
NUM_STEPS = 4
"""Steps that are measured; the quickest counts."""


class _Outbox:
    """Collects what there is to report, and sends what turns of the engine brought in one message.

    To send and receive one takes a good part of a step's time: what turns took goes with what comes of them.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._messages: deque[object] = deque()
        self._is_awaited = False
        # Several engines send what there is, one after the other.
        self._sending = threading.Lock()

    def put_nowait(self, message: object) -> None:
        """Keeps a message until the next `flush`, from any thread."""
        self._messages.append(message)
        if not isinstance(message, BatchStepped):
            self._is_awaited = True

    def flush(self) -> None:
        """Sends what somebody waits for, and with it all else."""
        if not self._is_awaited and len(self._messages) < _MAX_WAITING:
            return
        with self._sending:
            # Before the messages are taken: one that comes meanwhile is sent now or next time.
            self._is_awaited = False
            messages = [self._messages.popleft() for _ in range(len(self._messages))]
            try:
                self._connection.send(messages)
            except OSError:
                # Nobody reads any more. The other pipe has ended, too, and this process is about to.
                return


class _Engines:
    """The engines of a process, threads over one decoder, each with a batch. Outside they count as one."""

    def __init__(self, decoder: Decoder[Any], begin: pipe.Begin, start: pipe.Start, outbox: _Outbox) -> None:
        if begin.warm_up is not None:
            warm(decoder, begin.limits, begin.warm_up)
        self._outbox = outbox
        self._num_left: list[Mapping[Priority, int]] = [dict.fromkeys(Priority, 0)] * start.num_engines
        self._unheard: set[int] = set()
        # Guards the two above.
        self._lock = threading.Lock()
        first, limits = start.first_number, begin.limits
        self._engines = [
            Engine(decoder, limits=limits, listener=partial(self._hear, n), number=first + n)
            for n in range(start.num_engines)
        ]
        # The other side has decided what is let in.
        unbounded = replace(begin.limits, max_queue=sys.maxsize, max_queue_seconds=math.inf)
        self._pool = EnginePool(self._engines, Admission.to(decoder, unbounded))
        self.submit = self._pool.submit
        self._ended = threading.Event()

    def start(self) -> None:
        """Starts the engines."""
        self._pool.start()
        self._pool.watch(self._ended.set)

    def show_life(self) -> None:
        """Has a Pong sent once each engine has come from one turn to the next."""
        with self._lock:
            self._unheard = set(range(len(self._engines)))
        for engine in self._engines:
            engine.wake()

    def close(self) -> None:
        """Ends the engines after the steps they are in."""
        self._pool.close()
        self._ended.set()

    def wait(self) -> None:
        """Returns once one of the engines has ended, however that came about."""
        self._ended.wait()

    def _hear(self, number: int, event: Event) -> None:
        """One of the engines reports something."""
        match event:
            case TurnEnded():
                with self._lock:
                    is_last = self._unheard == {number}
                    self._unheard.discard(number)
                if is_last:
                    self._outbox.put_nowait(pipe.Sign.PONG)
                self._outbox.flush()
            case QueueLeft(num_left):
                with self._lock:
                    self._num_left[number] = num_left
                    total = {key: sum(left[key] for left in self._num_left) for key in Priority}
                    self._outbox.put_nowait(QueueLeft(total))
            case SentenceEnded(Outcome.CLOSED):
                # The process that started this one has what is left fail, or gives it to another.
                pass
            case _:
                self._outbox.put_nowait(event)


def main() -> None:
    """Decodes until standard input ends."""
    for name in _MEANT_FOR_OTHERS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    inbox, outbox = _take_pipes()
    try:
        begin: pipe.Begin = inbox.recv()
    except EOFError:
        return
    logging.getLogger().setLevel(logging.INFO)
    logging.getLogger().addHandler(QueueHandler(outbox))  # type: ignore[arg-type]
    try:
        engines = _open(begin, inbox, outbox)
    except Exception as error:
        outbox.put_nowait(pipe.Failed(_portable(error)))
        outbox.flush()
        return
    if engines is None:
        return
    outbox.put_nowait(pipe.Sign.READY)
    outbox.flush()
    engines.start()
    # They end with their pipe, and the process with them: nobody has to look whether either still runs.
    reader = partial(_read, engines, inbox, outbox)
    threading.Thread(target=reader, name="dragoman-engine-reader", daemon=True).start()
    engines.wait()
    outbox.flush()


def _open(begin: pipe.Begin, inbox: Connection, outbox: _Outbox) -> _Engines | None:
    """The engines over the decoder, once all questions before are answered; None where nobody is left."""
    decoder = begin.opener()
    while True:
        try:
            message = inbox.recv()
        except EOFError:
            return None
        if isinstance(message, pipe.Start):
            return _Engines(decoder, begin, message, outbox)
        assert isinstance(message, pipe.Measure)
        outbox.put_nowait(pipe.Measured(measure_step(decoder, message.sentence)))
        outbox.flush()


def measure_step(decoder: Decoder[Any], sentence: Sentence) -> float:
    """Processor seconds that a decoder step of the sentence alone takes. Raises what decoding raises."""
    beam_size = sentence.options.beam_size
    batch = decoder.open_batch(beam_size)
    beams = Beams(beam_size=beam_size, vocabulary=decoder.target_vocabulary, bos=decoder.bos, eos=decoder.eos)
    origin_S = np.zeros(1, np.int64)
    batch.regroup(origin_S, [decoder.encode([sentence.source], beam_size)], len(sentence.source))
    beams.regroup(origin_S, [sentence])
    quickest = float("inf")
    for _ in range(NUM_STEPS):
        rows = beams.rows()
        # The thread's own time: what else the machine does says nothing of the model.
        began = time.thread_time()
        output = batch.step(rows)
        quickest = min(quickest, time.thread_time() - began)
        beams.advance(output)
    return quickest


def _take_pipes() -> tuple[Connection, _Outbox]:
    """The pipes that came as standard input and output. Libraries print to standard error instead."""
    inbox = Connection(os.dup(0), writable=False)
    outbox = Connection(os.dup(1), readable=False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return inbox, _Outbox(outbox)


def _read(engines: _Engines, inbox: Connection, outbox: _Outbox) -> None:
    """Hands over what comes in. Ends the engines when nothing more can come."""
    futures: dict[int, Future[SentenceResult]] = {}

    def answer(number: int, future: Future[SentenceResult]) -> None:
        futures.pop(number, None)
        if future.cancelled():
            return
        error = future.exception()
        if not isinstance(error, EngineClosedError):
            assert error is None or isinstance(error, Exception)
            outbox.put_nowait(pipe.Answer(number, future.result() if error is None else _portable(error)))

    try:
        while True:
            message = inbox.recv()
            if isinstance(message, pipe.Submit):
                accepted = engines.submit(message.sentences)
                for number, future in zip(message.numbers, accepted, strict=True):
                    futures[number] = future
                    future.add_done_callback(partial(answer, number))
            elif message is pipe.Sign.PING:
                engines.show_life()
            elif isinstance(message, pipe.Cancel) and (cancelled := futures.get(message.number)) is not None:
                cancelled.cancel()
    except (EOFError, EngineClosedError):
        return
    finally:
        engines.close()


def _portable(error: Exception) -> Exception:
    """The error with its cause, which pickling leaves out, as a note."""
    if error.__cause__ is not None:
        error.add_note("".join(traceback.format_exception(error.__cause__)).rstrip())
    return error


if __name__ == "__main__":
    main()

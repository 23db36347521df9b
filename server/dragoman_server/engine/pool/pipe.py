"""A process of engines as the one that started it sees it: the messages, the pipes, and its start and end.

Messages are pickled; from over there come events, too, as engines report them. `worker` is the other side.
Must not know futures: `process` decides what becomes of sentences, and starts another process.
"""

import enum
import os
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.errors import DecoderError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Sentence, SentenceResult

# Without -P the folder that it is started in would be searched for modules.
_COMMAND = (sys.executable, "-P", "-m", "dragoman_server.engine.pool.worker")

GRACE_SECONDS = 2.0
"""How long a process may take to end that is told to. What it still did would reach nobody."""
_CHUNK_BYTES = 1 << 16
_LOOK_MILLISECONDS = 100
"""How often a thread that waits for the pipe looks whether it was closed meanwhile."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message to the process."""

    opener: Callable[[], Decoder[Any]]
    """Opens the decoder; whatever it raises comes back as `Failed`."""
    limits: EngineLimits
    warm_up: Sentence | None
    """Translated before all others, and counted nowhere."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How long does a step of this sentence take? Before `Start` alone."""

    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Measured:
    """So long does it."""

    step_seconds: float


@dataclass(frozen=True, slots=True)
class Start:
    """The process is to decode from now on."""

    num_engines: int
    """Its engines, each a thread over the one decoder."""
    first_number: int
    """Number of the first of them among the engines of the model."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Sentences for the engine."""

    numbers: Sequence[int]
    """The names of the sentences in other messages."""
    sentences: Sequence[Sentence]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody waits any more for the sentence of this number."""

    number: int


class Sign(enum.Enum):
    """Messages that say nothing more."""

    PING = enum.auto()
    """Is the engine's thread still there?"""
    PONG = enum.auto()
    """It is, and has just come from one turn to the next."""
    READY = enum.auto()
    """The answer to `Start`."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The process cannot decode, and ends."""

    reason: Exception


@dataclass(frozen=True, slots=True)
class Answer:
    """How the sentence of this number ended, unless it was cancelled."""

    number: int
    answer: SentenceResult | Exception


class Outgoing:
    """The writing end of a pipe to a process that may not read it: a sender never waits for it.

    What the pipe takes is written at once, and the rest in a thread that ends when nothing is left. The other
    end is a `multiprocessing.connection.Connection`. Its methods may be called from any thread.
    """

    def __init__(self, descriptor: int) -> None:
        """The descriptor is its own from now on, and is closed with it."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._backlog = bytearray()
        self._is_flushing = False
        self._is_closed = False
        # Guards the three above; nothing that is done under it waits.
        self._lock = threading.Lock()

    def send(self, message: object) -> None:
        """Sends a message after those before it. Nothing happens where nobody can read it any more."""
        data = ForkingPickler.dumps(message)
        with self._lock:
            if self._is_closed:
                return
            self._backlog += struct.pack("!i", len(data))
            self._backlog += data
            if self._is_flushing:
                return
            self._write()
            if self._backlog:
                self._is_flushing = True
                threading.Thread(target=self._flush, name="dragoman-engine-writer", daemon=True).start()

    def close(self) -> None:
        """Ends the pipe; what was not taken is lost."""
        with self._lock:
            self._backlog.clear()
            if not (self._is_closed or self._is_flushing):
                os.close(self._descriptor)
            self._is_closed = True

    def _write(self) -> None:
        try:
            while self._backlog:
                num_written = os.write(self._descriptor, bytes(self._backlog[:_CHUNK_BYTES]))
                del self._backlog[:num_written]
        except BlockingIOError:
            return
        except OSError:
            # The reader has ended, which shows in the other pipe.
            self._backlog.clear()

    def _flush(self) -> None:
        pipe = select.poll()
        pipe.register(self._descriptor, select.POLLOUT)
        while True:
            pipe.poll(_LOOK_MILLISECONDS)
            with self._lock:
                self._write()
                if not self._backlog:
                    self._is_flushing = False
                    if self._is_closed:
                        os.close(self._descriptor)
                    return


class WorkerProcess:
    """A process. Its methods may be called from any thread, the ones that wait from one at a time."""

    def __init__(self, begin: Begin, take: Callable[[object], None]) -> None:
        """`take` gets what it tells before it decodes. Raises OSError where the system has none left."""
        self._take = take
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        self._outgoing = Outgoing(our_output)
        self._incoming = Connection(our_input, writable=False)
        try:
            # A group of its own: a terminal's Ctrl-C is for the process that started it, which drains.
            self._process = subprocess.Popen(
                _COMMAND, stdin=their_input, stdout=their_output, process_group=0
            )
        except BaseException:
            self._outgoing.close()
            self._incoming.close()
            raise
        finally:
            os.close(their_input)
            os.close(their_output)
        self.pid = self._process.pid
        """The process's number."""
        self.send(begin)

    def ask(self, question: Measure | Start) -> Any:
        """Waits for the answer. Raises what opening the decoder raised, or DecoderError where it ended."""
        try:
            self.send(question)
            *messages, answer = self.receive()
        except (EOFError, OSError) as error:
            raise DecoderError(f"an engine's process did not start: {self.end()}") from error
        if isinstance(answer, Failed):
            self.end()
            raise answer.reason
        for message in messages:
            self._take(message)
        return answer

    def send(self, message: object) -> None:
        """Never waits, and does nothing once the process has ended."""
        self._outgoing.send(message)

    def receive(self) -> list[Any]:
        """The messages that come next. Raises EOFError or OSError as soon as it has ended."""
        messages: list[Any] = self._incoming.recv()
        return messages

    def kill(self) -> None:
        """Ends it at once, whatever state it is in."""
        self._process.kill()

    def close(self) -> None:
        """Ends the process after the step it is in, or at once where that takes longer than GRACE_SECONDS."""
        self._outgoing.close()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def end(self) -> str:
        """Frees what is left of a process that nobody reads from any more; how it ended."""
        self._incoming.close()
        self.close()
        status = self._process.wait()
        return f"signal {-status}" if status < 0 else f"exit status {status}"

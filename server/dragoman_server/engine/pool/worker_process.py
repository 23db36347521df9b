"""One process of an engine, from its start to its end, and this side of its pipes; `worker` is the other.

Knows no futures: `process` decides what becomes of its sentences, and starts another.
"""

import os
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

from dragoman_server.engine.errors import DecoderError
from dragoman_server.engine.pool.messages import Begin, Failed, Measure, Measured, Start
from dragoman_server.engine.pool.outgoing import Outgoing
from dragoman_server.engine.request import Sentence

# Without -P the folder that it is started in would be searched for modules.
_COMMAND = (sys.executable, "-P", "-m", "dragoman_server.engine.pool.worker")

GRACE_SECONDS = 2.0
"""How long a process may take to end that is told to. What it still did would reach nobody."""


class WorkerProcess:
    """A process. Its methods may be called from any thread, the ones that wait from one at a time."""

    def __init__(self, begin: Begin) -> None:
        """Raises OSError where the system has none left."""
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
        self.send(begin)

    def measure_step(self, sentence: Sentence) -> tuple[float, list[Any]]:
        """Waits until it has measured a step of the sentence alone, in seconds of a processor; returns what
        it told before, too. Before `start`, and raises as that does.
        """
        messages, answer = self._ask(Measure(sentence))
        assert isinstance(answer, Measured)
        return answer.step_seconds, messages

    def start(self, start: Start) -> list[Any]:
        """Waits until it decodes; returns what it told before. Raises what opening the decoder raised there,
        or DecoderError where the process ended.
        """
        messages, _ = self._ask(start)
        return messages

    def _ask(self, question: object) -> tuple[list[Any], Any]:
        """What it told before it answered, and the answer."""
        try:
            self.send(question)
            *messages, answer = self.receive()
        except (EOFError, OSError) as error:
            raise DecoderError(f"an engine's process did not start: {self.end()}") from error
        if isinstance(answer, Failed):
            self.end()
            raise answer.reason
        return messages, answer

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, message: object) -> None:
        """Never waits, and does nothing once the process has ended."""
        self._outgoing.send(message)

    def receive(self) -> list[Any]:
        """What it tells next. Raises EOFError or OSError as soon as it has ended."""
        messages: list[Any] = self._incoming.recv()
        return messages

    def kill(self) -> None:
        """Ends it at once, whatever state it is in."""
        self._process.kill()

    def close(self) -> None:
        """Ends it after the step it is in, or at once where that takes longer than GRACE_SECONDS."""
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

"""A peer in a process of its own that is asked, over and over, to translate the same sentences.

One JSON object a line each way: first the task, which is answered when the model stands; then a setting each
time, which is answered with seconds and target tokens.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from benchmarks.environment import PeerMissingError


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """A file that was translated."""

    seconds: float
    tokens: int
    """Target tokens of the best hypotheses."""


class Worker:
    """A running peer."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors
        self.process_id = process.pid

    def ask(self, message: Mapping[str, object]) -> dict[str, object]:
        """Sends a line and waits for the answer. Raises PeerMissingError where the peer ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise PeerMissingError(f"it ended with:\n{self._errors.read()[-1500:]}")
        answer: dict[str, object] = json.loads(line)
        return answer

    def decode(self, setting: Mapping[str, object]) -> Decoded:
        """Translates all sentences in this setting."""
        answer = self.ask(setting)
        seconds, tokens = answer["seconds"], answer["tokens"]
        assert isinstance(seconds, float)
        assert isinstance(tokens, int)
        return Decoded(seconds=seconds, tokens=tokens)


@contextmanager
def running_worker(
    python: Path, script: Path, task: Mapping[str, object], environment: Mapping[str, str]
) -> Iterator[tuple[Worker, dict[str, object]]]:
    """The worker and what it answered to its task. Raises PeerMissingError."""
    with TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [str(python), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | dict(environment),
        )
        worker = Worker(process, errors)
        try:
            yield worker, worker.ask(task)
        finally:
            assert process.stdin is not None
            assert process.stdout is not None
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

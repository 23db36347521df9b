"""The log: one line per event on standard error, as JSON for machines or as text for people.

A thread writes it: code that logs never waits for a reader, and lines that find no room are counted.
"""

import logging
import os
import queue
import threading
from logging.handlers import QueueHandler
from typing import Self

from pythonjsonlogger.json import JsonFormatter

from dragoman_server.config import LogFormat

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_MAX_WAITING_LINES = 10_000
_CLOSE_SECONDS = 1.0
_STANDARD_ERROR = 2

logger = logging.getLogger(__name__)


class TextFormatter(logging.Formatter):
    """Time, level, message and the event's fields as key=value."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line, without the trace of an exception."""
        fields = [f"{key}={value}" for key, value in vars(record).items() if key not in _STANDARD]
        # A field may repeat what a caller wrote, which is not to look like a line of its own.
        return "\\n".join(" ".join([super().formatMessage(record), *fields]).splitlines())


class Log(QueueHandler):
    """Takes the lines of the root logger, and writes them to a file descriptor until it is closed."""

    def __init__(self, formatter: logging.Formatter, *, descriptor: int, max_waiting: int) -> None:
        self._waiting: queue.SimpleQueue[logging.LogRecord | None] = queue.SimpleQueue()
        self._max_waiting = max_waiting
        super().__init__(self._waiting)
        self.setFormatter(formatter)
        self.num_dropped = 0
        """Lines that are lost, because nobody read what was written before, or nobody can any more."""
        self._descriptor = descriptor
        self._num_told = 0
        self._is_closed = False
        # As a daemon: a write that nobody reads does not keep the process alive.
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def enqueue(self, record: logging.LogRecord) -> None:
        """Hands a line to the thread, or counts it as lost. Called with the handler's lock held."""
        if self._waiting.qsize() < self._max_waiting:
            self._waiting.put(record)
        else:
            self.num_dropped += 1

    def close(self) -> None:
        """Writes what is waiting, as long as that takes a second at most."""
        if not self._is_closed:
            self._is_closed = True
            logging.captureWarnings(False)
            self._waiting.put(None)
            self._thread.join(_CLOSE_SECONDS)
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write_all(self) -> None:
        while (record := self._waiting.get()) is not None:
            try:
                self._write(record.getMessage())
                self._tell_dropped()
            except OSError:
                with self.lock:  # type: ignore[union-attr]
                    self.num_dropped += 1
                    # There is nobody to tell.
                    self._num_told = self.num_dropped

    def _tell_dropped(self) -> None:
        # Not by way of the queue, where this line itself might find no room.
        if num_lines := self.num_dropped - self._num_told:
            told = (logging.WARNING, __file__, 0, "log lines dropped: nobody read them", (), None)
            record = logger.makeRecord(logger.name, *told, extra={"num_lines": num_lines})
            self._write(self.format(record))
            self._num_told += num_lines

    def _write(self, line: str) -> None:
        # Not through sys.stderr: the interpreter waits for its lock at the end.
        remaining = memoryview(f"{line}\n".encode(errors="backslashreplace"))
        while remaining:
            remaining = remaining[os.write(self._descriptor, remaining) :]


def open_log(
    log_format: LogFormat, *, descriptor: int = _STANDARD_ERROR, max_waiting: int = _MAX_WAITING_LINES
) -> Log:
    """Sets up the root logger. Closing the log waits until it is written."""
    # Metadata that are not text grpc writes down whole, and a token may be among them.
    logging.getLogger("grpc._cython.cygrpc").addFilter(
        lambda record: not record.getMessage().startswith("Invalid encoding on")
    )
    formatter: logging.Formatter = TextFormatter()
    if log_format == "json":
        names, fields = {"levelname": "level", "name": "logger"}, "%(levelname)s %(name)s %(message)s"
        formatter = JsonFormatter(fields, rename_fields=names, timestamp=True)
    log = Log(formatter, descriptor=descriptor, max_waiting=max_waiting)
    logging.basicConfig(level=logging.INFO, handlers=[log], force=True)
    # Python's own warnings would be lines that are no JSON.
    logging.captureWarnings(True)
    return log

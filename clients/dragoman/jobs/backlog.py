"""The lines that were read and are not done, so that a stream that broke can be taken up by another."""

import threading
from collections import deque
from collections.abc import Iterator

from dragoman.jobs.lines import Line


class Backlog:
    """Hands lines to one stream at a time; a thread of the stream before may still be about to ask."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._unfinished: deque[Line] = deque()
        self._error: Exception | None = None
        self._streams = 0
        self._lock = threading.Lock()

    def stream(self) -> Iterator[Line]:
        """All lines that are not done, from the first. Ends what earlier calls returned.

        Raises what reading raised, of every stream anew: a file that can't be read on has not ended.
        """
        # Not when it is first asked for a line: a thread that wakes late would end its successor's.
        with self._lock:
            self._streams += 1
            return self._lines_of(self._streams, list(self._unfinished))

    def _lines_of(self, stream: int, unfinished: list[Line]) -> Iterator[Line]:
        yield from unfinished
        while (line := self._read(stream)) is not None:
            yield line

    def _read(self, stream: int) -> Line | None:
        with self._lock:
            if stream != self._streams:
                return None
            if self._error is not None:
                raise self._error
            try:
                line = next(self._lines, None)
            except Exception as error:
                self._error = error
                raise
            if line is not None:
                self._unfinished.append(line)
            return line

    @property
    def first(self) -> Line:
        """The first line that is not done, of those that were read."""
        return self._unfinished[0]

    def done(self, line: Line) -> None:
        """Strikes out the first line of the backlog, which `line` must be."""
        first = self._unfinished.popleft()
        assert first is line, f"line {line.number} was done before line {first.number}"

"""The units of a job, dealt to streams: each has one result, whichever streams break; and why one failed.

Knows no servers.
"""

import heapq
import math
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman_files.format import FileError, Unit


class JobError(ValueError):
    """The job cannot start or go on as it was asked for; the message says what to do."""


@contextmanager
def of_the_job() -> Iterator[None]:
    """Makes the error of a file one of the job that reads or writes it."""
    try:
        yield
    except FileError as error:
        raise JobError(str(error)) from error


_TEXT_OF_A_STREAM = re.compile(r"(?:item\.text:|text \d+ of the stream) (?P<verb>has )?")
"""How the server and the client begin what they tell of a text of a stream."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a unit has no translation, for people and for programs."""

    status: str
    """Name of the gRPC status code."""
    message: str
    text: str
    """The text, or all that stands there where it holds none."""


def failure_of(unit: Unit, error: Exception | None) -> Failure:
    """The failure of a unit without a translation; `error` is the server's, or was raised by writing."""
    return Failure(
        status=error.status if isinstance(error, DragomanError) else "INVALID_ARGUMENT",
        message=unit.error or _of_line(str(error)),
        text=(not unit.is_markup and unit.text) or unit.raw,
    )


def _of_line(message: str) -> str:
    """A message about a text of a stream, for whoever counts lines and knows of no stream."""
    beginning = _TEXT_OF_A_STREAM.match(message)
    if beginning is None:
        return message
    return ("the line's text has " if beginning["verb"] else "") + message[beginning.end() :]


class Units:
    """Units shared by several streams: each takes the next unit when it has room. What a stream gives back is
    taken first, by any of them."""

    def __init__(self, units: Iterator[Unit], *, max_ahead: float = math.inf) -> None:
        """Reads at most `max_ahead` units whose results were not handed out: those of a server that hangs
        hold up all others' only so far."""
        self._units = units
        self._max_ahead = max_ahead
        self._num_read = self._num_done = self._num_handed_out = 0
        self._returned: list[tuple[int, Unit]] = []
        self._has_ended = False
        self._read_error: Exception | None = None
        self.closed = threading.Event()
        """Set once nobody waits for results any more."""
        self.answered_at = time.monotonic()
        """When the last result came."""
        # Guards all of the above, and the shares.
        self.changed = threading.Condition()
        # Held while a unit is read, which takes for as long as whoever writes them likes.
        self.reading = threading.Lock()

    def share(self) -> "Share":
        """The units of one stream and its successors."""
        return Share(self)

    def take(self) -> Unit | None:
        """The next unit; None where there is none now. Called with `reading` held, by whom nothing else is.

        It does not wait for other streams: what a stream has read and not sent yet would wait with it.
        """
        with self.changed:
            if self.closed.is_set():
                return None
            if self._returned:
                return heapq.heappop(self._returned)[1]
            if not self._may_read:
                return None
        try:
            unit = next(self._units, None)
        except Exception as error:
            # Raised when all that was read before is done.
            self._read_error, unit = error, None
        with self.changed:
            if unit is None:
                self._has_ended = True
                self.changed.notify_all()
            else:
                self._num_read += 1
        return unit

    @property
    def _may_read(self) -> bool:
        return not self._has_ended and self._num_read - self._num_handed_out < self._max_ahead

    def give_back(self, *units: Unit) -> None:
        """Lets others take these. Called with `changed` held."""
        for unit in units:
            heapq.heappush(self._returned, (unit.number, unit))
        self.changed.notify_all()

    def done(self) -> None:
        """A unit has its result. Called with `changed` held."""
        self._num_done += 1
        self.answered_at = time.monotonic()
        self.changed.notify_all()

    def hand_out(self) -> None:
        """The result of the next unit, in their order, is the caller's."""
        with self.changed:
            self._num_handed_out += 1
            self.changed.notify_all()

    def has_more(self) -> bool:
        """Waits until there is something to take: True; or until all is done: False."""
        with self.changed:
            while not self.closed.is_set():
                if self._returned or self._may_read:
                    return True
                if self._has_ended and self._num_done == self._num_read:
                    return False
                self.changed.wait()
        return False

    def check_read(self) -> None:
        """Raises what reading the units raised, when all that were read are done."""
        if self._read_error is not None:
            raise self._read_error

    def close(self) -> None:
        """Lets every stream end."""
        with self.changed:
            self.closed.set()
            self.changed.notify_all()


class Share:
    """The units of one stream, and of the ones after it when it breaks; a thread of the stream before may be
    reading yet, or about to."""

    def __init__(self, units: Units) -> None:
        self.units = units
        self._unfinished: deque[Unit] = deque()
        self._streams = 0

    def stream(self) -> Iterator[Unit]:
        """The units that it has and that are not done, from the first, then further ones. Ends what
        earlier calls returned."""
        # Not when it is first asked for a unit: a thread that wakes late would end its successor's.
        with self.units.changed:
            self._streams += 1
            return self._units_of(self._streams, list(self._unfinished))

    def _units_of(self, stream: int, unfinished: list[Unit]) -> Iterator[Unit]:
        for unit in unfinished:
            if stream != self._streams:
                return
            yield unit
        while (taken := self._take(stream)) is not None:
            yield taken

    def _take(self, stream: int) -> Unit | None:
        with self.units.reading:
            # Whoever was reading may have been the stream before.
            unit = self.units.take() if stream == self._streams else None
            with self.units.changed:
                if unit is None or stream == self._streams:
                    self._unfinished.extend([] if unit is None else [unit])
                    return unit
                # It has a successor meanwhile, whose the unit is.
                self.units.give_back(unit)
                return None

    @property
    def first(self) -> Unit:
        return self._unfinished[0]

    def done(self, unit: Unit) -> None:
        """Strikes out the first unit, which `unit` must be."""
        with self.units.changed:
            first = self._unfinished.popleft()
            self.units.done()
        assert first is unit, f"unit {unit.number} was done before unit {first.number}"

    def give_back(self) -> None:
        """Lets others do what is not done, and takes nothing until the next stream."""
        with self.units.changed:
            self._streams += 1
            self.units.give_back(*self._unfinished)
            self._unfinished.clear()

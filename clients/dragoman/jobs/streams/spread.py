"""Units dealt to several streams at once, and their results put back into order. Knows no servers."""

import heapq
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator

from dragoman.errors import DragomanError
from dragoman.translation import StreamResult
from dragoman_files.unit import Unit

Notice = tuple[DragomanError, float]
"""Why a stream waits, and for how many seconds."""


class Spread:
    """The units of a job, shared by several streams: each takes the next unit when it has room. What a
    stream gives back is taken first, by any of them."""

    def __init__(self, units: Iterator[Unit], *, first: int, max_ahead: int) -> None:
        """`first` is the number of the first unit. At most `max_ahead` units are read whose results were not
        handed out: those of a server that hangs hold up all others' only so far."""
        self._units = units
        self._max_ahead = max_ahead
        self._next = first
        self._num_read = self._num_put = first - 1
        self._returned: list[tuple[int, Unit]] = []
        self._held: dict[int, StreamResult[Unit]] = {}
        self._notices: deque[Notice] = deque()
        self._has_ended = False
        self._read_error: Exception | None = None
        self._error: BaseException | None = None
        self.closed = threading.Event()
        """Set once nobody waits for results any more."""
        self.answered_at = time.monotonic()
        """When the last result came."""
        # Guards all of the above.
        self.changed = threading.Condition()

    def share(self) -> "Share":
        """The units of one stream and its successors."""
        return Share(self)

    def take(self) -> Unit | None:
        """The next unit; None where there is none now. Called with `changed` held.

        It never waits: what a stream has read and not sent yet would wait with it.
        """
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
        if unit is None:
            self._has_ended = True
            self.changed.notify_all()
        else:
            self._num_read += 1
        return unit

    @property
    def _may_read(self) -> bool:
        return not self._has_ended and self._num_read - (self._next - 1) < self._max_ahead

    def give_back(self, units: Iterator[Unit]) -> None:
        """Lets others take these. Called with `changed` held."""
        for unit in units:
            heapq.heappush(self._returned, (unit.number, unit))
        self.changed.notify_all()

    def has_more(self) -> bool:
        """Waits until there is something to take: True; or until all is done: False."""
        with self.changed:
            while not self.closed.is_set():
                if self._returned or self._may_read:
                    return True
                if self._has_ended and self._num_put == self._num_read:
                    return False
                self.changed.wait()
        return False

    def put(self, result: StreamResult[Unit]) -> None:
        """Takes a result, in whichever order they come."""
        with self.changed:
            self._held[result.id.number] = result
            self._num_put += 1
            self.answered_at = time.monotonic()
            self.changed.notify_all()

    def notice(self, error: DragomanError, seconds: float) -> None:
        """Takes what is to be told of a stream that waits."""
        with self.changed:
            self._notices.append((error, seconds))
            self.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Ends the results with an error."""
        with self.changed:
            self._error = self._error or error
            self.changed.notify_all()

    def results(self) -> Generator[StreamResult[Unit] | Notice, None, None]:
        """Results in the order of the units, and notices as they come.

        Raises what `fail` was given, and at the end what reading the units raised.
        """
        while True:
            with self.changed:
                while not (self._notices or self._next in self._held or self._error or self._is_over):
                    self.changed.wait()
                if self._notices:
                    item: StreamResult[Unit] | Notice = self._notices.popleft()
                elif self._next in self._held:
                    item = self._held.pop(self._next)
                    self._next += 1
                    self.changed.notify_all()
                elif self._error is not None:
                    raise self._error
                elif self._read_error is not None:
                    raise self._read_error
                else:
                    return
            yield item

    @property
    def _is_over(self) -> bool:
        return self._has_ended and self._next > self._num_read

    def close(self) -> None:
        """Lets every stream end."""
        with self.changed:
            self.closed.set()
            self.changed.notify_all()


class Share:
    """The units of one stream, and of the ones after it when it breaks."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._unfinished: deque[Unit] = deque()
        self._streams = 0

    def stream(self) -> Iterator[Unit]:
        """The units that it has and that are not done, from the first, then further ones. Ends what
        earlier calls returned."""
        # Not when it is first asked for a unit: a thread that wakes late would end its successor's.
        with self._spread.changed:
            self._streams += 1
            return self._units_of(self._streams, list(self._unfinished))

    def _units_of(self, stream: int, unfinished: list[Unit]) -> Iterator[Unit]:
        yield from unfinished
        while (unit := self._take(stream)) is not None:
            yield unit

    def _take(self, stream: int) -> Unit | None:
        with self._spread.changed:
            unit = self._spread.take() if stream == self._streams else None
            if unit is not None:
                self._unfinished.append(unit)
            return unit

    @property
    def first(self) -> Unit:
        """The first unit that is not done."""
        return self._unfinished[0]

    def done(self, unit: Unit) -> None:
        """Strikes out the first unit, which `unit` must be."""
        with self._spread.changed:
            first = self._unfinished.popleft()
        assert first is unit, f"unit {unit.number} was done before unit {first.number}"

    def give_back(self) -> None:
        """Lets others do what is not done, and takes nothing until the next stream."""
        with self._spread.changed:
            self._streams += 1
            self._spread.give_back(iter(self._unfinished))
            self._unfinished.clear()

    def has_more(self) -> bool:
        """Whether another stream is needed; waits until that is known."""
        return self._spread.has_more()

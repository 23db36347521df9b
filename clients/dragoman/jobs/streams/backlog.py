"""The units that were read and are not done, so that a stream that broke can be taken up by another."""

import threading
from collections import deque
from collections.abc import Iterator

from dragoman_files.unit import Unit


class Backlog:
    """Hands units to one stream at a time; a thread of the stream before may be reading yet, or about to."""

    def __init__(self, units: Iterator[Unit]) -> None:
        self._units = units
        self._unfinished: deque[Unit] = deque()
        self._num_done = 0
        self._has_ended = False
        self._error: Exception | None = None
        self._streams = 0
        # Guards the five above.
        self._lock = threading.Lock()
        # Held while a unit is read, which takes for as long as whoever writes them likes.
        self._reading = threading.Lock()

    def stream(self) -> Iterator[Unit]:
        """All units that are not done, from the first. Ends what earlier calls returned.

        Raises what reading raised, of every stream anew: a file that can't be read on has not ended.
        """
        # Not when it is first asked for a unit: a thread that wakes late would end its successor's.
        with self._lock:
            self._streams += 1
            return self._units_of(self._streams, self._num_done)

    def _units_of(self, stream: int, number: int) -> Iterator[Unit]:
        while (unit := self._take(stream, number) or self._take_new(stream, number)) is not None:
            yield unit
            number += 1

    def _take(self, stream: int, number: int) -> Unit | None:
        """The unit of this number, counted from 0; None if it was not read, or the stream has a successor."""
        with self._lock:
            index = number - self._num_done
            is_there = stream == self._streams and index < len(self._unfinished)
            return self._unfinished[index] if is_there else None

    def _take_new(self, stream: int, number: int) -> Unit | None:
        """The next unit, read for this number; None also where there is none."""
        with self._reading:
            # Whoever was reading may have read it.
            with self._lock:
                is_missing = number == self._num_done + len(self._unfinished)
                may_read = stream == self._streams and is_missing and not self._has_ended
                if may_read and self._error is not None:
                    raise self._error
            if may_read:
                self._read()
        return self._take(stream, number)

    def _read(self) -> None:
        try:
            unit = next(self._units, None)
        except Exception as error:
            self._error = error
            raise
        with self._lock:
            if unit is None:
                self._has_ended = True
            else:
                self._unfinished.append(unit)

    def give_back(self) -> None:
        """There is nobody else to do what is not done."""

    def has_more(self) -> bool:
        """No: a stream ends where the units do."""
        return False

    @property
    def first(self) -> Unit:
        """The first unit that is not done, of those that were read."""
        return self._unfinished[0]

    def done(self, unit: Unit) -> None:
        """Strikes out the first unit of the backlog, which `unit` must be."""
        with self._lock:
            first = self._unfinished.popleft()
            self._num_done += 1
        assert first is unit, f"unit {unit.number} was done before unit {first.number}"

"""When the sentences of a priority came, for as long as they wait: how many of them have waited for how long.

Pure: is told the time. Sentences of a caller leave the queue in the order in which they came, but for a
bounded number that overtake, and callers take turns: those that wait are taken for the latest.
"""

from collections import deque


class Arrivals:
    """What came, in order. May be read while another thread notes."""

    def __init__(self) -> None:
        # When some came, and how many had come by then in all.
        self._came: deque[tuple[float, int]] = deque()
        self._num_came = 0

    def note(self, now: float, number: int, num_waiting: int) -> None:
        """So many came, with whom `num_waiting` wait."""
        self._num_came += number
        self._came.append((now, self._num_came))
        while self._came and self._came[0][1] <= self._num_came - num_waiting:
            self._came.popleft()

    def num_before(self, moment: float, num_waiting: int) -> int:
        """How many of the `num_waiting` that wait came before a moment."""
        num_left = self._num_came - num_waiting
        last = 0
        for came_at, num_came in tuple(self._came):
            if came_at >= moment:
                break
            last = num_came
        return max(0, last - num_left)

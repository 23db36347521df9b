"""How much came in the last minute and today, and when there is room for more. Pure: is given the time."""

from collections import deque

WINDOW_SECONDS = 60
"""A minute."""


class Window:
    """Amounts by the whole second in which they came.

    A minute reaches into 61 whole seconds: where these never hold more than a limit, no minute does, whenever
    it begins.
    """

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque()
        self._total = 0

    def total(self, now: float) -> int:
        """How much came in the minute up to now, and up to a second before."""
        while self._seconds and self._seconds[0][0] < int(now) - WINDOW_SECONDS:
            self._total -= self._seconds.popleft()[1]
        return self._total

    def seconds_until_room(self, amount: int, limit: int, now: float) -> float:
        """How long until so much fits: 0 where it does. It must be at most the limit."""
        assert amount <= limit
        excess = self.total(now) + amount - limit
        if excess <= 0:
            return 0.0
        for second, some in self._seconds:
            excess -= some
            if excess <= 0:
                return second + WINDOW_SECONDS + 1 - now
        raise AssertionError("what came is more than its parts")

    def add(self, amount: int, now: float) -> None:
        """So much came."""
        second = int(now)
        before = self._seconds.pop()[1] if self._seconds and self._seconds[-1][0] == second else 0
        self._seconds.append((second, before + amount))
        self._total += amount

    def give_back(self, amount: int, came_at: float) -> None:
        """So much of what came then does not count any more."""
        for index, (second, some) in enumerate(self._seconds):
            if second == int(came_at):
                self._seconds[index] = (second, some - amount)
                self._total -= amount
                return


_DAY_SECONDS = 86_400


def seconds_until_midnight(now: float) -> float:
    """Time until the next day begins."""
    return _DAY_SECONDS - now % _DAY_SECONDS


class Today:
    """An amount that begins anew at midnight."""

    def __init__(self) -> None:
        self._day = 0
        self._amount = 0

    def total(self, now: float) -> int:
        """How much came today."""
        # A clock that is set back brings no new day.
        if (day := int(now // _DAY_SECONDS)) > self._day:
            self._day, self._amount = day, 0
        return self._amount

    def add(self, amount: int, now: float) -> None:
        """So much came."""
        self._amount = self.total(now) + amount

    def give_back(self, amount: int, came_at: float) -> None:
        """So much of what came then does not count any more; that of another day counts no more anyway."""
        if int(came_at // _DAY_SECONDS) == self._day:
            self._amount -= amount

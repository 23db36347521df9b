"""How much came today. Pure: the time is told, in seconds since 1970, and a day is one of UTC."""

_DAY_SECONDS = 86_400


def seconds_until_midnight(now: float) -> float:
    """Until the next day begins."""
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
        """What came then does not count any more; that of another day counts no more anyway."""
        if int(came_at // _DAY_SECONDS) == self._day:
            self._amount -= amount

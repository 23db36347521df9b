"""The share of its limits that a caller has used: calls, and characters in the last minute and today.

Amounts are pure, and are given the time. All else belongs to the event loop's thread.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dragoman_server.errors import CallerLimitError, refusal
from dragoman_server.metrics.callers import CallerMetrics
from dragoman_server.service.callers import CallerLimits, limits_of, read_limits

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
    return _DAY_SECONDS - now % _DAY_SECONDS


class Today:
    """An amount that begins anew at midnight."""

    def __init__(self) -> None:
        self._day = 0
        self._amount = 0

    def total(self, now: float) -> int:
        # A clock that is set back brings no new day.
        if (day := int(now // _DAY_SECONDS)) > self._day:
            self._day, self._amount = day, 0
        return self._amount

    def add(self, amount: int, now: float) -> None:
        self._amount = self.total(now) + amount

    def give_back(self, amount: int, came_at: float) -> None:
        """So much of what came then does not count any more; that of another day counts no more anyway."""
        if int(came_at // _DAY_SECONDS) == self._day:
            self._amount -= amount


# A call may end at any moment.
_CALL_RETRY_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Two clocks: one that is never set, and one that knows the day."""

    seconds: Callable[[], float] = time.monotonic
    utc_seconds: Callable[[], float] = time.time


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Characters that were let through."""

    num_characters: int
    seconds: float
    utc_seconds: float


class Allowance:
    """One caller's calls and characters, held to its limits and counted in the metrics."""

    def __init__(self, name: str | None, limits: CallerLimits, metrics: CallerMetrics, clock: Clock) -> None:
        """`name`: None for everybody, where nobody is asked who they are."""
        self.limits = limits
        """May be changed at any time; what was let through counts on."""
        self.num_calls = 0
        """Calls in progress."""
        self._name = name
        self._metrics = metrics
        self._clock = clock
        self._calls, self._characters, self._today = Window(), Window(), Today()
        self._turn = asyncio.Lock()

    @property
    def characters_today(self) -> int:
        """Characters that were let through since midnight, UTC."""
        return self._today.total(self._clock.utc_seconds())

    @property
    def is_unused(self) -> bool:
        """Whether nothing that was had counts any more, and no call is in progress."""
        now = self._clock.seconds()
        had = self._calls.total(now) + self._characters.total(now) + self.characters_today
        return not self.num_calls and not had

    def enter(self) -> None:
        """A call comes in, which must `leave`. Raises CallerLimitError, and the call counts nowhere then."""
        limits, now = self.limits, self._clock.seconds()
        with self._refusals_counted():
            if limits.calls is not None and self.num_calls >= limits.calls:
                raise self._error(f"has {self.num_calls} calls in progress", "calls", _CALL_RETRY_SECONDS)
            maximum = limits.calls_per_minute
            if maximum is not None and (seconds := self._calls.seconds_until_room(1, maximum, now)):
                began = f"began {self._calls.total(now)} calls in the last minute"
                raise self._error(began, "calls_per_minute", seconds)
        self._calls.add(1, now)
        self.num_calls += 1
        self._metrics.on_enter(self._name)

    def leave(self) -> None:
        """A call that came in is answered, or will never be."""
        self.num_calls -= 1
        self._metrics.on_leave(self._name)

    def take(self, num_characters: int, field: str) -> Taken:
        """Lets characters through, which are `used` or given back.

        Raises CallerLimitError where there is no room for them now, InvalidRequestError, for `field`, where
        there never is; and takes nothing then.
        """
        with self._refusals_counted():
            return self._take(num_characters, field)

    async def take_in_turn(self, num_characters: int, field: str, until: asyncio.Event) -> Taken:
        """Waits for room that a minute brings, behind others that wait, until an event. Else it is `take`."""
        with self._refusals_counted():
            async with self._turn:
                while True:
                    try:
                        return self._take(num_characters, field)
                    except CallerLimitError as error:
                        if error.limit != "characters-per-minute" or until.is_set():
                            raise
                        seconds = error.retry_seconds
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            await until.wait()

    def use(self, taken: Taken) -> None:
        """Characters that were let through are translated or linked."""
        self._metrics.on_characters(self._name, taken.num_characters)

    def give_back(self, taken: Taken) -> None:
        """Characters that were let through came to nothing, and do not count."""
        self._characters.give_back(taken.num_characters, taken.seconds)
        self._today.give_back(taken.num_characters, taken.utc_seconds)

    def check_today(self, num_characters: int, field: str) -> None:
        """Raises as `take` where today has no room for so many. For what is taken bit by bit."""
        with self._refusals_counted():
            self._check_today(num_characters, field)

    def _take(self, num_characters: int, field: str) -> Taken:
        now, utc_now = self._clock.seconds(), self._clock.utc_seconds()
        self._check_today(num_characters, field)
        maximum = self.limits.characters_per_minute
        if maximum is not None:
            _check_size(num_characters, maximum, "characters_per_minute", field)
            if seconds := self._characters.seconds_until_room(num_characters, maximum, now):
                had = self._characters.total(now)
                excess = f"sends {num_characters} characters, and has had {had} in the last minute"
                raise self._error(excess, "characters_per_minute", seconds)
        self._characters.add(num_characters, now)
        self._today.add(num_characters, utc_now)
        return Taken(num_characters=num_characters, seconds=now, utc_seconds=utc_now)

    def _check_today(self, num_characters: int, field: str) -> None:
        maximum, utc_now = self.limits.characters_per_day, self._clock.utc_seconds()
        if maximum is None:
            return
        _check_size(num_characters, maximum, "characters_per_day", field)
        if (had := self._today.total(utc_now)) + num_characters > maximum:
            excess = f"sends {num_characters} characters, and has had {had} today"
            raise self._error(excess, "characters_per_day", seconds_until_midnight(utc_now))

    @contextmanager
    def _refusals_counted(self) -> Iterator[None]:
        try:
            yield
        except CallerLimitError as error:
            self._metrics.on_refusal(self._name, error.limit)
            raise

    def _error(self, excess: str, field: str, retry_seconds: float) -> CallerLimitError:
        return CallerLimitError(
            f"{self._name or 'the caller'} {excess}",
            limit=field.replace("_", "-"),
            value=getattr(self.limits, field),
            retry_seconds=retry_seconds,
        )


def _check_size(num_characters: int, maximum: int, limit: str, field: str) -> None:
    """Raises InvalidRequestError for more than there ever is room for."""
    if num_characters > maximum:
        bound = f"this caller's limit is {limit.replace('_', '-')}={maximum}"
        raise refusal(field, f"has {num_characters} characters, and {bound}; send less at once")


FORGETS_FROM = 1000
"""Callers that are known before any is forgotten."""


class Allowances:
    """One for each caller who has called since the server began."""

    def __init__(self, path: Path | None, metrics: CallerMetrics, clock: Clock | None = None) -> None:
        """`path`: a file as `read_limits` reads it, read by `read`; None limits nobody."""
        self._path = path
        self._clock = clock or Clock()
        self._limits: Mapping[str, CallerLimits] = {}
        self._by_name: dict[str | None, Allowance] = {}
        self._most_known = FORGETS_FROM
        self._metrics = metrics

    def read(self, known_names: Collection[str] | None) -> Mapping[str, CallerLimits]:
        """The file's content now, for `use`. Raises ServerFileError."""
        return {} if self._path is None else read_limits(self._path, known_names)

    def use(self, limits: Mapping[str, CallerLimits]) -> None:
        """Holds callers to these from now on. What they have had counts on."""
        self._limits = limits
        for name, allowance in self._by_name.items():
            allowance.limits = limits_of(name, limits)

    def of(self, name: str | None) -> Allowance:
        """A caller's; of everybody's, where nobody is asked who they are."""
        allowance = self._by_name.get(name)
        if allowance is None:
            if len(self._by_name) >= self._most_known:
                self._forget_unused()
            allowance = Allowance(name, limits_of(name, self._limits), self._metrics, self._clock)
            self._by_name[name] = allowance
        return allowance

    def _forget_unused(self) -> None:
        """Those of callers of whom nothing counts. Names of certificates come and go without end."""
        self._by_name = {name: each for name, each in self._by_name.items() if not each.is_unused}
        # Where many are in use it is not tried again at each new one.
        self._most_known = max(FORGETS_FROM, 2 * len(self._by_name))

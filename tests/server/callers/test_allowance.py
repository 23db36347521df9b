"""What a caller may: never more than its limits, whatever comes when, and nothing for what is refused."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dragoman_server.errors import CallerLimitError, InvalidRequestError
from dragoman_server.metrics.callers import CallerMetrics
from dragoman_server.service.allowance import FORGETS_FROM, Allowance, Allowances, Clock, Taken, Window
from dragoman_server.service.call import Call, Gate
from dragoman_server.service.callers import CallerLimits

DAY = 86_400.0
# Seconds in which windows move, whole and broken.
PAUSES = st.sampled_from([0.0, 0.001, 0.4, 1.0, 7.3, 29.9, 59.0, 59.999, 60.0, 60.5, 61.0, 200.0])


class Now:
    """Both clocks, moved by hand."""

    def __init__(self, seconds: float = 1_000.5, utc_seconds: float = 20_000 * DAY) -> None:
        self.seconds, self.utc_seconds = seconds, utc_seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
        self.utc_seconds += seconds


def allowance(now: Now, **limits: int) -> Allowance:
    clock = Clock(seconds=lambda: now.seconds, utc_seconds=lambda: now.utc_seconds)
    return Allowance("ada", CallerLimits(**limits), CallerMetrics(CollectorRegistry()), clock)


def refusal(act: Callable[[], object]) -> CallerLimitError | InvalidRequestError | None:
    try:
        act()
    except (CallerLimitError, InvalidRequestError) as error:
        return error
    return None


@given(st.lists(st.tuples(PAUSES, st.integers(0, 120)), max_size=60), st.floats(0, 2))
def test_no_minute_ever_has_more_than_the_limit(comers: list[tuple[float, int]], start: float) -> None:
    now = Now(seconds=start)
    caller = allowance(now, characters_per_minute=100)
    let_in: list[tuple[float, int]] = []
    for pause, number in comers:
        now.pass_by(pause)
        error = refusal(lambda number=number: caller.take(number, "texts"))
        if error is None:
            let_in.append((now.seconds, number))
        elif isinstance(error, CallerLimitError):
            assert 0 < error.retry_seconds <= 61
        else:
            assert number > 100
    for first, _ in let_in:
        assert sum(number for at, number in let_in if first <= at < first + 60) <= 100


@given(st.lists(st.tuples(PAUSES, st.integers(1, 100)), min_size=1, max_size=40))
def test_whoever_comes_again_when_told_is_let_in(comers: list[tuple[float, int]]) -> None:
    now = Now()
    caller = allowance(now, characters_per_minute=100)
    for pause, number in comers:
        now.pass_by(pause)
        try:
            caller.take(number, "texts")
        except CallerLimitError as error:
            # Of a clock's rounding, a little later.
            now.pass_by(error.retry_seconds + 1e-6)
            caller.take(number, "texts")


@given(st.lists(st.tuples(PAUSES, st.sampled_from(["enter", "leave", "refuse"])), max_size=80))
def test_calls_are_bounded_at_once_and_by_the_minute(steps: list[tuple[float, str]]) -> None:
    now = Now()
    caller = allowance(now, calls=3, calls_per_minute=5)
    inside, began = 0, []
    for pause, step in steps:
        now.pass_by(pause)
        if step == "leave" and inside:
            caller.leave()
            inside -= 1
        elif step == "enter":
            error = refusal(caller.enter)
            if error is None:
                inside += 1
                began.append(now.seconds)
            else:
                recent = sum(at > now.seconds - 62 for at in began)
                assert (error.limit, inside) == ("calls", 3) or recent >= 5
        assert caller.num_calls == inside <= 3
    for first in began:
        assert sum(first <= at < first + 60 for at in began) <= 5


@given(st.lists(st.tuples(st.sampled_from([0.0, 3_600.0, 40_000.0, DAY]), st.integers(1, 120)), max_size=30))
def test_no_day_has_more_than_its_limit_and_each_begins_at_midnight(comers: list[tuple[float, int]]) -> None:
    now = Now()
    caller = allowance(now, characters_per_day=100)
    by_day: dict[int, int] = {}
    for pause, number in comers:
        now.pass_by(pause)
        day = int(now.utc_seconds // DAY)
        error = refusal(lambda number=number: caller.take(number, "texts"))
        if error is None:
            by_day[day] = by_day.get(day, 0) + number
        elif isinstance(error, CallerLimitError):
            assert by_day.get(day, 0) + number > 100
            assert error.retry_seconds == pytest.approx((day + 1) * DAY - now.utc_seconds)
        else:
            assert number > 100
        assert caller.characters_today == by_day.get(day, 0) <= 100


@given(st.lists(st.tuples(PAUSES, st.integers(1, 100), st.booleans()), max_size=40))
def test_what_is_refused_or_given_back_takes_nothing(steps: list[tuple[float, int, bool]]) -> None:
    now = Now()
    caller, others = allowance(now, characters_per_minute=100), Window()
    for pause, number, fails in steps:
        now.pass_by(pause)
        room = others.seconds_until_room(number, 100, now.seconds) == 0
        taken: Taken | None = None
        with contextlib.suppress(CallerLimitError):
            taken = caller.take(number, "texts")
        assert (taken is not None) is room
        if taken is not None and fails:
            caller.give_back(taken)
        elif taken is not None:
            others.add(number, now.seconds)


def test_a_clock_that_is_set_back_brings_no_new_day() -> None:
    now = Now()
    caller = allowance(now, characters_per_day=10)
    caller.take(10, "texts")
    now.utc_seconds -= 10
    with pytest.raises(CallerLimitError):
        caller.take(1, "texts")


def test_callers_of_whom_nothing_counts_are_forgotten() -> None:
    now = Now()
    clock = Clock(seconds=lambda: now.seconds, utc_seconds=lambda: now.utc_seconds)
    callers = Allowances(None, CallerMetrics(CollectorRegistry()), clock)
    callers.of("ada").take(5, "texts")
    callers.of("bob").enter()
    idle = weakref.ref(callers.of("idle"))
    now.pass_by(100)
    for number in range(FORGETS_FROM + 1):
        callers.of(f"pod-{number}")
    gc.collect()
    assert idle() is None
    assert callers.of("ada").characters_today == 5
    assert callers.of("bob").num_calls == 1


async def test_of_work_that_fails_half_way_what_is_done_counts() -> None:
    callers = Allowances(None, CallerMetrics(CollectorRegistry()))
    call = Call(lambda: None, gate=cast(Gate, None), allowances=callers)

    async def fail(num_done: int) -> None:
        async with call.characters(100, field="texts") as note_done:
            note_done(num_done)
            raise InvalidRequestError([])

    for done, total in ((0, 0), (30, 30), (0, 30)):
        with pytest.raises(InvalidRequestError):
            await fail(done)
        assert callers.of(None).characters_today == total
    async with call.characters(100, field="texts") as note_done:
        note_done(30)
    assert callers.of(None).characters_today == 130
    assert call.fields["characters"] == 130


async def test_who_waits_is_let_in_behind_others_and_no_more_once_the_server_drains() -> None:
    now, draining = Now(), asyncio.Event()
    caller = allowance(now, characters_per_minute=10)
    caller.take(10, "texts")
    order: list[int] = []

    async def wait(number: int) -> None:
        try:
            await caller.take_in_turn(4, "item.text", draining)
            order.append(number)
        except CallerLimitError:
            order.append(-number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncio.timeout", _short(asyncio.timeout, now))
        tasks = [asyncio.create_task(wait(number)) for number in (1, 2, 3)]
        while len(order) < 2:
            await asyncio.sleep(0)
        draining.set()
        await asyncio.gather(*tasks)
    assert order == [1, 2, -3]


def _short(timeout: Callable[[float], asyncio.Timeout], now: Now) -> Callable[[float], asyncio.Timeout]:
    """A wait that takes no time, but the hand moves the clock, once."""
    waits = iter([61.0])

    def wait(seconds: float) -> asyncio.Timeout:
        passed = next(waits, None)
        if passed is None:
            return timeout(600)
        now.pass_by(passed)
        return timeout(0)

    return wait

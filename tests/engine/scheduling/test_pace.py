"""What turns cost, what a queue takes, and when an answer in time is given up: in virtual time, by hand."""

from collections.abc import Callable, Iterable

import pytest
from tests.engine.house import sentence

from dragoman_server.engine.scheduling.pace import (
    MAX_EXTRAPOLATION,
    MAX_SURPRISE,
    MEMORY_SECONDS,
    MEMORY_TURNS,
    MIN_TURNS,
    Pace,
    Throughput,
    TurnCost,
)

ROWS = (10, 20, 30, 40)


def after(turns: Iterable[int], seconds: Callable[[int], float], cost: TurnCost | None = None) -> TurnCost:
    cost = cost or TurnCost()
    for rows in turns:
        cost.observe(rows, seconds(rows))
    return cost


def test_as_long_as_nothing_is_known_a_turn_costs_nothing_but_its_rows() -> None:
    assert TurnCost().rows_beside(5, 3.0) == pytest.approx(10)
    assert TurnCost().seconds(5) == 0


def test_after_a_turn_far_quicker_than_any_before_these_are_forgotten() -> None:
    cost = after([10] * 3, lambda _: 5.0)
    cost.observe(10, 0.01)
    assert cost.seconds(10) == pytest.approx(0.01)


def test_a_turn_costs_nothing_but_its_rows_until_several_told_otherwise() -> None:
    def seconds(rows: int) -> float:
        return 0.004 + 0.001 * rows

    turns = ROWS * 8
    assert after(turns[: MIN_TURNS - 1], seconds).rows_beside(5, 3.0) == pytest.approx(10)
    # Five rows take 9 ms, and eighteen more 27.
    assert after(turns, seconds).rows_beside(5, 3.0) == pytest.approx(18)
    assert after(turns, seconds).rows_beside(5, 1.0) == 0


def test_rows_that_take_turns_of_their_own_are_fewer() -> None:
    cost = after(ROWS * 8, lambda rows: 0.009 + 0.001 * rows)
    # One row takes 10 ms, and in one turn 20 rows more take 20 ms more.
    assert cost.rows_beside(1, 3.0) == pytest.approx(20)
    assert cost.rows_beside(1, 3.0, num_more_turns=1) == pytest.approx(11)
    assert cost.rows_beside(1, 3.0, num_more_turns=3) == 0


def test_what_turns_took_long_ago_is_forgotten() -> None:
    cost = after(ROWS * 100, lambda rows: 0.004 + 0.001 * rows)
    after(ROWS * MEMORY_TURNS, lambda rows: 0.020 + 0.001 * rows, cost)
    # Five rows take 25 ms, and fifty more 75.
    assert cost.rows_beside(5, 3.0) == pytest.approx(50, rel=0.05)


def test_a_machine_that_stood_still_for_a_moment_changes_little() -> None:
    cost = after(ROWS * 100, lambda rows: 0.004 + 0.001 * rows)
    known = cost.rows_beside(5, 3.0)
    after([25], lambda rows: 60.0, cost)
    # As much as a turn that took MAX_SURPRISE times as long: 3 * 29 ms more in one of MEMORY_TURNS.
    later = 2 * ((0.004 + (MAX_SURPRISE - 1) * 0.029 / MEMORY_TURNS) / 0.001 + 5)
    assert known < cost.rows_beside(5, 3.0) == pytest.approx(later, rel=0.01)


def work_off(throughput: Throughput, rate: float, *, since: float = 0.0, seconds: float = 5.0) -> float:
    """Tells of work at that rate while more waits; the time afterwards."""
    now = since
    while now < since + seconds:
        now += 0.01
        throughput.observe(now, rate * 0.01, running=1, share=1.0, is_saturated=True)
    return now


def test_what_waits_takes_as_long_as_the_same_took_before() -> None:
    throughput = Throughput()
    assert throughput.seconds(0.0, 1000) == 0
    now = work_off(throughput, rate=200)
    assert throughput.seconds(now, 1000) == pytest.approx(5, rel=0.05)


def work_off_one_by_one(throughput: Throughput, *, since: float) -> float:
    """Tells of three sentences, one a second, of a machine that is busy with something else."""
    for now in (since + 1, since + 2, since + 3):
        throughput.observe(now, 15, running=15, share=1.0, is_saturated=True)
    return since + 3


def work_half_full(throughput: Throughput, rate: float, *, since: float = 0.0) -> float:
    now = since
    for _ in range(300):
        now += 0.01
        throughput.observe(now, rate * 0.01, running=1, share=0.5, is_saturated=False)
    return now


def test_before_anything_waited_it_is_told_by_what_half_full_engines_do() -> None:
    throughput = Throughput()
    now = work_half_full(throughput, rate=90)
    assert throughput.seconds(now, 1000) == pytest.approx(10, rel=0.05)
    # Once it is seen how much they do, that counts.
    now = work_off(throughput, rate=125, since=now)
    assert throughput.seconds(now, 1000) == pytest.approx(8, rel=0.05)
    now = work_half_full(throughput, rate=100, since=now)
    assert throughput.seconds(now, 1000) == pytest.approx(8, rel=0.05)


def test_it_follows_the_pace_as_that_changes_and_forgets_what_is_long_ago() -> None:
    throughput = Throughput()
    now = work_off(throughput, rate=200)
    now = work_off(throughput, rate=50, since=now, seconds=40)
    assert throughput.seconds(now, 1000) == pytest.approx(20, rel=0.05)
    assert throughput.seconds(now + MEMORY_SECONDS + 1, 1000) == 0


def test_long_sentences_that_end_together_are_not_taken_for_a_standstill_between() -> None:
    """Batches of 80,000 units end each 20 seconds; meanwhile a short sentence comes and goes all the time."""
    throughput = Throughput()
    told = []
    for hundredths in range(1, 30_000):
        now = hundredths / 100
        if not hundredths % 15:
            throughput.observe(now, 25, running=80_000, share=1.0, is_saturated=True)
        if not hundredths % 2000:
            for _ in range(160):
                throughput.observe(now, 500, running=80_000, share=1.0, is_saturated=True)
        told.append(throughput.seconds(now, 40_000))
    known = [seconds for seconds in told if seconds]
    assert known
    assert min(known) > 5
    assert max(known) < 20


def test_what_was_measured_for_a_moment_says_nothing_of_the_next_hour() -> None:
    throughput = Throughput()
    now = work_off_one_by_one(throughput, since=0.0)
    # Of the first nothing is learned: batches were filling up.
    assert throughput.seconds(now, 75_000) == MAX_EXTRAPOLATION
    # What takes less is told as ever.
    assert throughput.seconds(now, 150) == 10
    now = work_off(throughput, rate=15, since=now, seconds=300)
    assert throughput.seconds(now, 75_000) == pytest.approx(5000, rel=0.05)


def test_what_was_measured_of_half_full_engines_is_not_of_full_ones() -> None:
    throughput = Throughput()
    now = work_off_one_by_one(throughput, since=work_half_full(throughput, rate=900))
    assert throughput.seconds(now, 75_000) == pytest.approx(2 * MAX_EXTRAPOLATION)
    # Much later it is learned anew.
    throughput.observe(now, 15, running=0, share=0.0, is_saturated=False)
    now = work_off(throughput, rate=7500, since=now + MEMORY_SECONDS + 1)
    assert throughput.seconds(now, 75_000) == pytest.approx(10, rel=0.05)


def test_each_token_takes_a_turn_of_every_lane() -> None:
    cost = TurnCost()
    pace = Pace(cost)
    wanted = sentence(*[3] * 8, steps=99)
    assert pace.least_seconds(wanted, [1, 2]) == 0
    cost.observe(10, 0.1)
    pace.on_encode(0.5)
    pace.on_finish(source_tokens=10, steps=20)
    # 16 tokens; turns of one and of two rows take 10 and 20 ms. An answer in half of 0.98 s would be lucky.
    assert pace.least_seconds(wanted, [1, 2]) == pytest.approx(0.49)

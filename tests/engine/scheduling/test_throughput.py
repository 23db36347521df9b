"""What a queue takes is learned while something waits in it, in virtual time."""

import pytest

from dragoman_server.engine.scheduling.pace import (
    MAX_EXTRAPOLATION,
    MEMORY_SECONDS,
    Throughput,
)


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

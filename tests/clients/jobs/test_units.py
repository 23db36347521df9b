"""Units dealt to streams: none is lost or doubled, whichever stream breaks and whichever thread is first."""

import random
import threading

import pytest

from dragoman.jobs.units import Units
from dragoman_files.format import Unit
from dragoman_files.lines import TextLines, parse_line


def line(number: int) -> Unit:
    return parse_line(b"%d\n" % number, TextLines(), number=number, position=number)


def units_of(num_lines: int, **options: int) -> Units:
    return Units(map(line, range(1, num_lines + 1)), **options)


def test_nobody_runs_ahead_of_a_unit_that_hangs_further_than_allowed() -> None:
    dealt = units_of(10, max_ahead=4)
    hanging, other = dealt.share(), dealt.share()
    first = next(hanging.stream())
    for unit in other.stream():
        other.done(unit)
    assert next(other.stream(), None) is None
    hanging.done(first)
    dealt.hand_out()
    assert dealt.has_more()
    assert [unit.number for unit in other.stream()] == [5]


def test_a_stream_that_ends_waits_for_what_others_may_give_back() -> None:
    dealt = units_of(2)
    broken, other = dealt.share(), dealt.share()
    next(broken.stream())
    theirs = other.stream()
    other.done(next(theirs))
    assert next(theirs, None) is None
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(dealt.has_more()))
    waiting.start()
    broken.give_back()
    waiting.join(10)
    assert answers == [True]
    other.done(next(other.stream()))
    assert not dealt.has_more()


def test_what_reading_raised_is_raised_after_all_that_was_read() -> None:
    def units():
        yield line(1)
        yield line(2)
        raise ValueError("damaged")

    dealt = Units(units())
    one, other = dealt.share(), dealt.share()
    hanging = next(one.stream())
    for unit in other.stream():
        other.done(unit)
    one.done(hanging)
    assert not dealt.has_more()
    with pytest.raises(ValueError, match="damaged"):
        dealt.check_read()


def test_streams_that_break_at_random_lose_nothing_and_double_nothing() -> None:
    dealt = units_of(2000)
    finished: list[int] = []

    def work(seed: int) -> None:
        generator = random.Random(seed)
        share = dealt.share()
        while True:
            taken = []
            for unit in share.stream():
                taken.append(unit)
                if len(taken) == 10:
                    break
            for unit in taken[: generator.randint(0, len(taken))]:
                share.done(unit)
                finished.append(unit.number)
            share.give_back()
            if not dealt.has_more():
                return

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(finished) == list(range(1, 2001))
    assert not any(thread.is_alive() for thread in threads)


def test_nobody_waits_for_units_of_a_closed_job() -> None:
    dealt = units_of(6, max_ahead=2)
    share = dealt.share()
    units = share.stream()
    assert [next(units).number, next(units).number, next(units, None)] == [1, 2, None]
    told: list[bool] = []
    waiting = threading.Thread(target=lambda: told.append(share.units.has_more()), daemon=True)
    waiting.start()
    dealt.close()
    waiting.join(30)
    assert told == [False]


def test_a_stream_that_wakes_late_does_not_end_the_one_after_it() -> None:
    lines = units_of(5).share()
    late, newer = lines.stream(), lines.stream()
    assert next(newer).number == 1
    assert list(late) == []
    assert [line.number for line in newer] == [2, 3, 4, 5]


def test_who_waits_for_a_line_does_not_keep_another_from_those_that_are_there() -> None:
    may_end, is_asked = threading.Event(), threading.Event()

    def lines():
        yield line(1)
        is_asked.set()
        assert may_end.wait(30)
        yield line(2)
        yield line(3)

    share = Units(lines()).share()
    late = share.stream()
    assert next(late).number == 1
    found: list[Unit] = []
    thread = threading.Thread(target=lambda: found.extend(late))
    thread.start()
    assert is_asked.wait(30)
    newer = share.stream()
    assert next(newer).number == 1
    # What the other thread reads is its successor's.
    may_end.set()
    assert [line.number for line in newer] == [2, 3]
    thread.join(30)
    assert found == []

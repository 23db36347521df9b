"""Units dealt to several streams: none is lost or doubled, whichever stream breaks, and their order stays."""

import random
import threading

import pytest

from dragoman.errors import UnavailableError
from dragoman.jobs.streams.spread import Share, Spread
from dragoman.translation import StreamResult
from dragoman_files.lines import TextLines, parse_line
from dragoman_files.unit import Unit


def line(number: int) -> Unit:
    return parse_line(b"%d\n" % number, TextLines(), number=number, position=number)


def spread(num_lines: int, max_ahead: int = 1000) -> Spread:
    return Spread(map(line, range(1, num_lines + 1)), first=1, max_ahead=max_ahead)


def finish(dealt: Spread, share: Share, unit: Unit) -> None:
    share.done(unit)
    dealt.put(StreamResult(id=unit, translation=None, error=UnavailableError("away")))


def numbers(dealt: Spread) -> list[int]:
    return [item.id.number for item in dealt.results() if isinstance(item, StreamResult)]


def test_nobody_runs_ahead_of_a_unit_that_hangs_further_than_allowed() -> None:
    dealt = spread(10, max_ahead=4)
    hanging, other = dealt.share(), dealt.share()
    first = next(hanging.stream())
    for unit in other.stream():
        finish(dealt, other, unit)
    results = dealt.results()
    finish(dealt, hanging, first)
    assert [next(results).id.number for _ in range(4)] == [1, 2, 3, 4]
    assert dealt.has_more()
    assert next(other.stream()).number == 5


def test_a_stream_that_ends_waits_for_what_others_may_give_back() -> None:
    dealt = spread(2)
    broken, other = dealt.share(), dealt.share()
    next(broken.stream())
    theirs = other.stream()
    finish(dealt, other, next(theirs))
    assert next(theirs, None) is None
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(dealt.has_more()))
    waiting.start()
    broken.give_back()
    waiting.join(10)
    assert answers == [True]
    finish(dealt, other, next(other.stream()))
    assert not dealt.has_more()
    assert numbers(dealt) == [1, 2]


def test_what_reading_raised_is_raised_after_all_that_was_read() -> None:
    def units():
        yield line(1)
        yield line(2)
        raise ValueError("damaged")

    dealt = Spread(units(), first=1, max_ahead=100)
    one, other = dealt.share(), dealt.share()
    held = next(one.stream())
    for unit in other.stream():
        finish(dealt, other, unit)
    results = dealt.results()
    finish(dealt, one, held)
    assert [next(results).id.number for _ in range(2)] == [1, 2]
    with pytest.raises(ValueError, match="damaged"):
        next(results)


def test_streams_that_break_at_random_lose_nothing_and_double_nothing() -> None:
    dealt = spread(2000, max_ahead=64)

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
                finish(dealt, share, unit)
            share.give_back()
            if not dealt.has_more():
                return

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    assert numbers(dealt) == list(range(1, 2001))
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_nobody_waits_for_units_of_a_closed_job() -> None:
    dealt = spread(6, max_ahead=2)
    share = dealt.share()
    units = share.stream()
    assert [next(units).number, next(units).number, next(units, None)] == [1, 2, None]
    told: list[bool] = []
    waiting = threading.Thread(target=lambda: told.append(share.has_more()), daemon=True)
    waiting.start()
    dealt.close()
    waiting.join(30)
    assert told == [False]

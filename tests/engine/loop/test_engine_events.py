"""What the engine tells of itself."""

from concurrent.futures import wait

from tests.engine.house import House, sentence

from dragoman_server.engine.events import Outcome
from dragoman_server.engine.request import Priority


def test_a_burst_of_calls_ends_once_each(house: House) -> None:
    house.engine.start()
    futures = [house.engine.submit([sentence(7, steps=1)])[0] for _ in range(6000)]
    for future in futures[::3]:
        future.cancel()
    # Those that were answered before are not cancelled any more.
    wait(futures, timeout=120)
    num_cancelled = sum(future.cancelled() for future in futures)
    house.engine.close()
    assert num_cancelled > 0
    assert house.recorder.outcomes == {
        Outcome.CANCELLED: num_cancelled,
        Outcome.FINISHED: len(futures) - num_cancelled,
    }
    assert (sum(house.engine.num_left.values()), house.engine.num_running) == (6000, 0)


def test_a_step_is_told_with_its_rows_positions_and_padding(house: House) -> None:
    house.run(sentence(*[5] * 7, steps=2, beam_size=3), sentence(*[5] * 3, steps=1, beam_size=3))
    assert house.recorder.steps == [(2, 6, 10, 16), (1, 3, 7, 8)]


def test_a_step_is_told_with_the_rows_of_bulk_and_of_all_batches(house: House) -> None:
    house.run(sentence(7, steps=2, beam_size=3), sentence(8, steps=3, beam_size=2, priority=Priority.BULK))
    told = [(each.num_rows, each.num_bulk_rows, each.rows_in_use) for each in house.recorder.events]
    assert sorted(told[:2]) == [(2, 2, 2), (3, 0, 5)] or sorted(told[:2]) == [(2, 2, 5), (3, 0, 3)]
    assert told[-1] == (2, 2, 2)

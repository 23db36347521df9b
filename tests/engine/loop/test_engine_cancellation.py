"""Sentences that are cancelled or expire free what they hold at the next step."""

import time
from collections.abc import Sequence

import pytest
from tests.engine.house import House, one_place_limits, sentence, wait_until

from dragoman_server.engine.errors import DeadlineExpiredError
from dragoman_server.engine.events import Outcome


def test_a_cancelled_sentence_frees_its_rows_at_the_next_step(house: House) -> None:
    house.at_step[2] = lambda: house.futures[0].cancel()
    futures = house.run(sentence(7), sentence(8))
    assert house.steps == [[(7,), (8,)], [(7,), (8,)], [(8,)], [(8,)]]
    assert futures[0].cancelled()
    assert house.outcomes() == {Outcome.FINISHED: 1, Outcome.CANCELLED: 1}


def test_a_sentence_cancelled_in_its_last_step_counts_once(house: House) -> None:
    house.at_step[2] = lambda: house.futures[0].cancel()
    house.run(sentence(7, steps=2), sentence(8, steps=3))
    assert house.outcomes() == {Outcome.FINISHED: 1, Outcome.CANCELLED: 1}


def test_a_sentence_cancelled_while_it_waits_costs_no_step() -> None:
    house = House(one_place_limits())
    house.submit(sentence(7, steps=2), sentence(8))
    house.futures[1].cancel()
    house.run(sentence(9, steps=2))
    assert house.steps == [[(7,)], [(7,)], [(9,)], [(9,)]]
    house.engine.close()


def test_an_expired_sentence_frees_its_rows_at_the_next_step(house: House) -> None:
    deadline = time.monotonic() + 0.2
    house.at_step[2] = lambda: time.sleep(max(0.0, deadline - time.monotonic()) + 0.01)
    futures = house.run(sentence(7, steps=4, deadline=deadline), sentence(8, steps=3))
    assert house.steps == [[(7,), (8,)], [(7,), (8,)], [(8,)]]
    assert isinstance(futures[0].exception(), DeadlineExpiredError)
    assert house.outcomes() == {Outcome.FINISHED: 1, Outcome.EXPIRED: 1}


def test_work_whose_deadline_passed_costs_no_step(house: House) -> None:
    [late, good] = house.run(sentence(7, deadline=time.monotonic() - 1), sentence(8, steps=1))
    assert isinstance(late.exception(), DeadlineExpiredError)
    assert good.result().hypotheses
    assert house.steps == [[(8,)]]


def test_who_cannot_be_answered_in_time_any_more_is_told_so_at_once(house: House) -> None:
    for step in range(1, 20):
        house.at_step[step] = lambda: time.sleep(0.02)
    # Ten tokens for each of the source: ten thousand for a thousand, which take a hundred seconds at best.
    house.run(sentence(7, steps=10))
    hopeless = sentence(*range(1000), steps=10_000, deadline=time.monotonic() + 60)

    def come_late() -> None:
        house.submit(hopeless)
        time.sleep(0.02)

    house.at_step[12] = come_late
    house.submit(sentence(8, steps=5))
    assert house.futures[1].result(timeout=30)
    with pytest.raises(DeadlineExpiredError, match="too close for an answer in time"):
        house.futures[2].result(timeout=30)
    assert {source for step in house.steps for source in step} == {(7,), (8,)}
    assert house.outcomes() == {Outcome.FINISHED: 2, Outcome.EXPIRED: 1}


def test_who_ends_while_its_group_is_encoded_costs_no_step(house: House) -> None:
    deadline = time.monotonic() + 0.3

    def take_long(sources: Sequence[Sequence[int]]) -> None:
        house.futures[0].cancel()
        time.sleep(max(0.0, deadline - time.monotonic()))

    house.decoder.before_encode = take_long
    _, late, good = house.run(sentence(7), sentence(8, deadline=deadline), sentence(9, steps=2))
    assert good.result()
    assert house.steps == [[(9,)], [(9,)]]
    assert isinstance(late.exception(), DeadlineExpiredError)
    assert house.outcomes() == {Outcome.CANCELLED: 1, Outcome.EXPIRED: 1, Outcome.FINISHED: 1}


def test_a_group_of_which_everybody_ended_is_not_encoded(house: House) -> None:
    encoded: list[int] = []

    def cancel_the_others(sources: Sequence[Sequence[int]]) -> None:
        encoded.append(len(sources))
        for future in house.futures[1:]:
            future.cancel()

    house.decoder.before_encode = cancel_the_others
    # The longest are encoded first.
    long = tuple(range(100))
    assert house.run(sentence(*long, steps=2), *(sentence(7) for _ in range(3)))[0].result()
    assert encoded == [1]
    assert house.steps == [[long], [long]]


def test_an_engine_that_cancelling_empties_knows_that_nobody_waits() -> None:
    house = House(one_place_limits())

    def cancel_all(sources: Sequence[Sequence[int]]) -> None:
        # Whoever is encoded and whoever waits: the next turn finds nothing to do.
        for future in house.futures:
            future.cancel()

    house.decoder.before_encode = cancel_all
    house.run(sentence(7), sentence(8), sentence(9))
    wait_until(lambda: sum(house.engine.num_left.values()) == 3)
    house.engine.close()

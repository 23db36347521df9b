"""How sentences end: cancelled, expired, or where the decoder, a batch or the engine's thread fails."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from tests.engine.house import ONE_PLACE, House, endless, sentence, wait_until
from tests.engine.table_decoder import FloatArray, Tokens

from dragoman_server.engine.errors import DeadlineExpiredError, DecoderError, EngineClosedError
from dragoman_server.engine.events import Outcome
from dragoman_server.engine.scheduling.scheduler import Scheduler
from dragoman_server.engine.ticket import Ticket


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


def test_a_sentence_cancelled_while_it_waits_costs_no_step(build: Callable[..., House]) -> None:
    house = build(ONE_PLACE)
    house.submit(sentence(7, steps=2), sentence(8))
    house.futures[1].cancel()
    house.run(sentence(9, steps=2))
    assert house.steps == [[(7,)], [(7,)], [(9,)], [(9,)]]


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


def test_an_engine_that_cancelling_empties_knows_that_nobody_waits(build: Callable[..., House]) -> None:
    house = build(ONE_PLACE)

    def cancel_all(sources: Sequence[Sequence[int]]) -> None:
        # Whoever is encoded and whoever waits: the next turn finds nothing to do.
        for future in house.futures:
            future.cancel()

    house.decoder.before_encode = cancel_all
    house.run(sentence(7), sentence(8), sentence(9))
    wait_until(lambda: sum(house.engine.num_left.values()) == 3)


def test_a_failing_step_fails_its_batch_and_no_other(house: House) -> None:
    def explode() -> None:
        raise RuntimeError("out of smoke")

    # Lanes take turns: the first step is beam 1's, the second beam 2's.
    house.at_step[2] = explode
    futures = house.run(sentence(7, steps=2), sentence(8, beam_size=2), sentence(9, steps=2))
    error = futures[1].exception()
    assert isinstance(error, DecoderError)
    assert str(error) == "the decoder failed: RuntimeError: out of smoke"
    assert isinstance(error.__cause__, RuntimeError)
    assert futures[0].result().hypotheses
    assert futures[2].result().hypotheses
    [after] = house.engine.submit([sentence(8, beam_size=2)])
    assert after.result(timeout=30).hypotheses
    assert house.outcomes() == {Outcome.FINISHED: 3, Outcome.FAILED: 1}


@pytest.mark.parametrize(
    "broken",
    [
        "dragoman_server.engine.scheduling.lane.Lane.settle",
        "tests.engine.table_decoder.TableDecoder.open_batch",
        "dragoman_server.engine.search.beam.Beams.regroup",
        "dragoman_server.engine.search.beam.Beams.advance",
    ],
)
def test_a_failure_of_our_own_costs_its_batch_and_not_the_engine(
    house: House, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("our own bug")

    with monkeypatch.context() as patched:
        patched.setattr(broken, explode)
        futures = house.run(sentence(7), sentence(8))
    for future in futures:
        assert str(future.exception()) == "the decoder failed: RuntimeError: our own bug"
    [after] = house.engine.submit([sentence(9)])
    assert after.result(timeout=30).hypotheses
    assert house.outcomes() == {Outcome.FAILED: 2, Outcome.FINISHED: 1}


def test_a_group_that_cannot_be_encoded_fails_alone(house: House) -> None:
    def fragile(sources: Sequence[Sequence[int]]) -> None:
        if len(sources[0]) > 30:
            raise MemoryError("too long for me")

    house.decoder.before_encode = fragile
    long, short = house.run(sentence(*[5] * 40), sentence(6))
    assert isinstance(long.exception(), DecoderError)
    assert short.result().hypotheses
    assert house.steps[0] == [(6,)]


def test_scores_that_are_no_numbers_fail_their_sentence_and_not_its_neighbours() -> None:
    def spoilt(source: Tokens, prefix: Tokens) -> FloatArray:
        return endless(source, prefix) * (float("nan") if source == (8,) else 1.0)

    house = House(model=spoilt)
    good, bad = house.run(sentence(7), sentence(8))
    assert good.result().hypotheses
    assert isinstance(bad.exception(), DecoderError)
    assert house.outcomes() == {Outcome.FINISHED: 1, Outcome.FAILED: 1}


def test_a_batch_that_fails_late_fails_only_those_who_have_no_answer() -> None:
    learned: list[int] = []

    class Overburdened(Scheduler):
        def on_finish(self, ticket: Ticket, steps: int) -> None:
            learned.append(steps)
            if len(learned) == 2:
                raise ValueError("the second is too much")

    house = House(scheduler=Overburdened)
    [first, second] = house.run(sentence(7, steps=2), sentence(8, steps=2))
    assert first.result(30).hypotheses
    assert isinstance(second.exception(30), DecoderError)
    # And goes on.
    assert house.engine.submit([sentence(9)])[0].result(30).hypotheses
    assert house.outcomes() == {Outcome.FINISHED: 2, Outcome.FAILED: 1}


def test_a_thread_that_ends_takes_everybody_with_it_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Scheduler):
        def expire(self, now: float) -> set[Ticket]:
            raise ValueError("no clock")

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    house = House(scheduler=Broken)
    [future] = house.run(sentence(7))
    assert isinstance(future.exception(30), EngineClosedError)
    house.engine.wait()
    assert not house.engine.is_alive
    assert "nothing more is decoded" in caplog.text
    with pytest.raises(EngineClosedError):
        house.engine.submit([sentence(8)])

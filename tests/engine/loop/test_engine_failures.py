"""The engine where the decoder, a batch or its thread fails: who is told, and who goes on."""

import threading
from collections.abc import Sequence

import pytest
from tests.engine.house import House, endless, sentence
from tests.engine.table_decoder import FloatArray, Tokens

from dragoman_server.engine.errors import DecoderError, EngineClosedError
from dragoman_server.engine.events import Outcome
from dragoman_server.engine.scheduling.scheduler import Scheduler
from dragoman_server.engine.ticket import Ticket


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

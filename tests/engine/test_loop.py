"""The engine as its callers see it, over a decoder whose results are known."""

import gc
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait

import pytest
from tests.engine.house import VOCABULARY, House, endless, sentence
from tests.engine.table_decoder import FloatArray, TableBatch, TableDecoder, Tokens, random_model

from dragoman_server.engine import loop
from dragoman_server.engine.errors import (
    DeadlineExpiredError,
    DecoderError,
    EngineClosedError,
)
from dragoman_server.engine.events import Outcome
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.request import Priority, SentenceResult
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.scheduling.scheduler import Scheduler
from dragoman_server.engine.ticket import Ticket


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.engine.close()


def one_place_limits() -> EngineLimits:
    return EngineLimits(max_rows=1, max_beam_size=1)


def test_every_sentence_gets_its_own_answer(house: House) -> None:
    wanted = [sentence(i, steps=1 + i % 5, beam_size=1 + i % 3) for i in range(40)]
    together = [future.result() for future in house.run(*wanted)]
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 40}
    for one, result in zip(wanted, together, strict=True):
        alone = House()
        [future] = alone.run(one)
        assert [h.tokens for h in future.result().hypotheses] == [h.tokens for h in result.hypotheses]
        assert min(result.queue_seconds, result.encode_seconds, result.decode_seconds) >= 0
        alone.engine.close()


def test_finished_sentence_frees_its_rows_at_that_step_and_is_answered_at_once(house: House) -> None:
    answered: list[bool] = []
    futures: list[Future[SentenceResult]] = []
    house.at_step[3] = lambda: answered.extend(future.done() for future in futures)
    futures += house.engine.submit([sentence(7, steps=2), sentence(8, steps=3)])
    house.engine.start()
    wait(futures, timeout=30)
    assert house.steps == [[(7,), (8,)], [(7,), (8,)], [(8,)]]
    assert answered == [True, False]


def test_request_level_batching_answers_a_batch_at_its_end_and_then_begins_the_next() -> None:
    house = House(EngineLimits(continuous=False))
    answered: list[bool] = []
    late: list[Future[SentenceResult]] = []
    house.at_step[2] = lambda: late.extend(house.engine.submit([sentence(9, steps=1)]))
    house.at_step[3] = lambda: answered.extend(future.done() for future in futures)
    house.at_step[4] = lambda: answered.extend(future.done() for future in futures)
    futures = house.engine.submit([sentence(7, steps=1), sentence(8, steps=3)])
    house.engine.start()
    wait(futures, timeout=30)
    assert late[0].result(timeout=30).hypotheses
    assert house.steps == [[(7,), (8,)]] * 3 + [[(9,)]]
    assert answered == [False, False, True, True]
    assert [len(future.result().hypotheses[0].tokens) for future in futures] == [1, 3]
    house.engine.close()


def test_a_request_level_batch_ends_once_those_it_waits_for_are_cancelled() -> None:
    house = House(EngineLimits(continuous=False))
    futures: list[Future[SentenceResult]] = []
    house.at_step[2] = lambda: futures[1].cancel()
    futures += house.engine.submit([sentence(7, steps=1), sentence(8, steps=9)])
    house.engine.start()
    wait(futures, timeout=30)
    assert len(house.steps) == 3
    assert len(futures[0].result().hypotheses[0].tokens) == 1
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 1, Outcome.CANCELLED: 1}


def test_both_ways_of_batching_give_the_same_answers() -> None:
    wanted = [sentence(i, steps=1 + i % 5, beam_size=1 + i % 3) for i in range(40)]
    answers = []
    for continuous in (True, False):
        house = House(EngineLimits(max_rows=16, continuous=continuous), random_model(VOCABULARY))
        best = [future.result().hypotheses[0] for future in house.run(*wanted)]
        answers.append([(hypothesis.tokens, hypothesis.score) for hypothesis in best])
        house.engine.close()
    assert answers[0] == answers[1]


def test_a_newcomer_joins_the_running_batch_at_the_next_step(house: House) -> None:
    late: list[Future[SentenceResult]] = []
    house.at_step[2] = lambda: late.extend(house.engine.submit([sentence(9, steps=2)]))
    house.run(sentence(7, steps=4))
    assert house.steps == [[(7,)], [(7,)], [(7,), (9,)], [(7,), (9,)]]
    assert late[0].result(timeout=30).hypotheses


def test_a_cancelled_sentence_frees_its_rows_at_the_next_step(house: House) -> None:
    futures: list[Future[SentenceResult]] = []
    house.at_step[2] = lambda: futures[0].cancel()
    futures += house.engine.submit([sentence(7), sentence(8)])
    house.engine.start()
    wait(futures, timeout=30)
    assert house.steps == [[(7,), (8,)], [(7,), (8,)], [(8,)], [(8,)]]
    with pytest.raises(CancelledError):
        futures[0].result()
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 1, Outcome.CANCELLED: 1}


def test_a_sentence_cancelled_in_its_last_step_counts_once(house: House) -> None:
    futures: list[Future[SentenceResult]] = []
    house.at_step[2] = lambda: futures[0].cancel()
    futures += house.engine.submit([sentence(7, steps=2), sentence(8, steps=3)])
    house.engine.start()
    wait(futures, timeout=30)
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 1, Outcome.CANCELLED: 1}


def test_a_sentence_cancelled_while_it_waits_costs_no_step() -> None:
    house = House(one_place_limits())
    futures = house.engine.submit([sentence(7, steps=2), sentence(8), sentence(9, steps=2)])
    futures[1].cancel()
    house.engine.start()
    wait(futures, timeout=30)
    assert house.steps == [[(7,)], [(7,)], [(9,)], [(9,)]]
    house.engine.close()


def test_an_expired_sentence_frees_its_rows_at_the_next_step(house: House) -> None:
    deadline = time.monotonic() + 0.2
    house.at_step[2] = lambda: time.sleep(max(0.0, deadline - time.monotonic()) + 0.01)
    futures = house.run(sentence(7, steps=4, deadline=deadline), sentence(8, steps=3))
    assert house.steps == [[(7,), (8,)], [(7,), (8,)], [(8,)]]
    with pytest.raises(DeadlineExpiredError):
        futures[0].result()
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 1, Outcome.EXPIRED: 1}


def test_work_whose_deadline_passed_costs_no_step(house: House) -> None:
    [late, good] = house.run(sentence(7, deadline=time.monotonic() - 1), sentence(8, steps=1))
    assert isinstance(late.exception(), DeadlineExpiredError)
    assert good.result().hypotheses
    assert house.steps == [[(8,)]]


def test_who_cannot_be_answered_in_time_any_more_is_told_so_at_once(house: House) -> None:
    futures: list[Future[SentenceResult]] = []
    for step in range(1, 20):
        house.at_step[step] = lambda: time.sleep(0.02)
    # Ten tokens for each of the source: ten thousand for a thousand, which take a hundred seconds at best.
    house.run(sentence(7, steps=10))
    hopeless = sentence(*range(1000), steps=10_000, deadline=time.monotonic() + 60)

    def come_late() -> None:
        futures.extend(house.engine.submit([hopeless]))
        time.sleep(0.02)

    house.at_step[12] = come_late
    [other] = house.engine.submit([sentence(8, steps=5)])
    assert other.result(timeout=30)
    with pytest.raises(DeadlineExpiredError, match="too close for an answer in time"):
        futures[0].result(timeout=30)
    assert {source for step in house.steps for source in step} == {(7,), (8,)}
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 2, Outcome.EXPIRED: 1}


def test_the_scheduler_learns_what_encodings_take_and_turns_with_all_that_belongs_to_them() -> None:
    encodings: list[float] = []
    turns: list[float] = []

    class Noting(Scheduler):
        def on_encode(self, seconds: float) -> None:
            encodings.append(seconds)

        def on_turn(self, lane: Lane, seconds: float) -> None:
            turns.append(seconds)

    house = House(scheduler=Noting)
    house.decoder.before_encode = lambda _: time.sleep(0.05)
    house.run(sentence(7, steps=3))
    house.engine.close()
    assert (len(encodings), len(turns)) == (1, 3)
    assert min(encodings[0], turns[0]) >= 0.05


def test_who_ends_while_its_group_is_encoded_costs_no_step(house: House) -> None:
    futures: list[Future[SentenceResult]] = []
    deadline = time.monotonic() + 1

    def take_long(sources: Sequence[Sequence[int]]) -> None:
        futures[0].cancel()
        time.sleep(max(0.0, deadline - time.monotonic()))

    house.decoder.before_encode = take_long
    futures += house.engine.submit([sentence(7), sentence(8, deadline=deadline), sentence(9, steps=2)])
    house.engine.start()
    assert futures[2].result(timeout=30)
    assert house.steps == [[(9,)], [(9,)]]
    assert isinstance(futures[1].exception(), DeadlineExpiredError)
    outcomes = house.recorder.outcomes
    assert (outcomes[Outcome.CANCELLED], outcomes[Outcome.EXPIRED], outcomes[Outcome.FINISHED]) == (1, 1, 1)


def test_a_group_of_which_everybody_ended_is_not_encoded(house: House) -> None:
    futures: list[Future[SentenceResult]] = []
    encoded: list[int] = []

    def cancel_the_others(sources: Sequence[Sequence[int]]) -> None:
        encoded.append(len(sources))
        for future in futures[1:]:
            future.cancel()

    house.decoder.before_encode = cancel_the_others
    # The longest are encoded first.
    long = tuple(range(100))
    futures += house.engine.submit([sentence(*long, steps=2), *(sentence(7) for _ in range(3))])
    house.engine.start()
    assert futures[0].result(timeout=30)
    assert encoded == [1]
    assert house.steps == [[long], [long]]


def test_an_engine_that_cancelling_empties_knows_that_nobody_waits() -> None:
    house = House(one_place_limits())
    futures: list[Future[SentenceResult]] = []

    def cancel_all(sources: Sequence[Sequence[int]]) -> None:
        # Whoever is encoded and whoever waits: the next turn finds nothing to do.
        for future in futures:
            future.cancel()

    house.decoder.before_encode = cancel_all
    futures += house.engine.submit([sentence(7), sentence(8), sentence(9)])
    house.engine.start()
    end = time.monotonic() + 30
    while sum(house.engine.num_left.values()) < 3 and time.monotonic() < end:
        time.sleep(0.001)
    assert sum(house.engine.num_left.values()) == 3
    house.engine.close()


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
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 3, Outcome.FAILED: 1}


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
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FAILED: 2, Outcome.FINISHED: 1}


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
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 1, Outcome.FAILED: 1}
    house.engine.close()


def test_closing_fails_what_is_left() -> None:
    house = House(one_place_limits())
    entered, gate = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        gate.wait()

    house.at_step[1] = hold
    futures = house.engine.submit([sentence(7), sentence(8), sentence(9)])
    futures[2].cancel()
    house.engine.start()
    entered.wait()
    closer = threading.Thread(target=house.engine.close)
    closer.start()
    gate.set()
    closer.join(timeout=30)
    assert [isinstance(future.exception(), EngineClosedError) for future in futures[:2]] == [True, True]
    with pytest.raises(EngineClosedError):
        house.engine.submit([sentence(9)])
    assert house.recorder.outcomes == {Outcome.CLOSED: 2, Outcome.CANCELLED: 1}
    house.engine.close()


def test_a_thread_that_hangs_counts_as_ended_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_GRACE_SECONDS", 0.1)
    gate, has_ended = threading.Event(), threading.Event()
    decoder = TableDecoder(endless, VOCABULARY, lambda sources: gate.wait())
    engine = Engine(decoder, limits=EngineLimits(), timeout_seconds=0.5)
    engine.watch(lambda: has_ended.set() if engine.has_ended else None)
    engine.start()
    assert engine.is_alive
    [future] = engine.submit([sentence(7)])
    assert has_ended.wait(60)
    assert (engine.is_alive, engine.has_ended) == (False, True)
    engine.close()
    assert isinstance(future.exception(0), EngineClosedError)
    gate.set()


def test_an_engine_that_is_idle_or_at_work_does_not_count_as_hanging() -> None:
    decoder = TableDecoder(endless, VOCABULARY, lambda sources: time.sleep(0.01))
    engine = Engine(decoder, limits=EngineLimits(), timeout_seconds=4.0)
    engine.start()
    time.sleep(4.5)
    assert engine.submit([sentence(7, steps=450)])[0].result(60).hypotheses
    assert engine.is_alive
    engine.close()


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


def test_a_full_step_holds_up_nobody_who_submits_or_cancels(house: House) -> None:
    entered, gate = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        gate.wait(30)

    house.at_step[1] = hold
    [first] = house.engine.submit([sentence(7, steps=2)])
    house.engine.start()
    entered.wait(30)
    [second, third] = house.engine.submit([sentence(8, steps=1), sentence(9, steps=1)])
    assert second.cancel()
    assert not first.done()
    gate.set()
    assert third.result(30).hypotheses
    assert house.steps == [[(7,)], [(7,), (9,)]]


def test_who_was_cancelled_before_the_end_is_told_as_cancelled() -> None:
    house = House()
    futures = house.engine.submit([sentence(7), sentence(8)])
    futures[0].cancel()
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.CANCELLED: 1, Outcome.CLOSED: 1}


def test_an_engine_that_was_never_started_can_be_closed() -> None:
    house = House()
    [future] = house.engine.submit([sentence(7)])
    house.engine.close()
    assert isinstance(future.exception(), EngineClosedError)


def test_a_step_is_told_with_its_rows_positions_and_padding(house: House) -> None:
    house.run(sentence(*[5] * 7, steps=2, beam_size=3), sentence(*[5] * 3, steps=1, beam_size=3))
    assert house.recorder.steps == [(2, 6, 10, 16), (1, 3, 7, 8)]


def test_a_step_is_told_with_the_rows_of_bulk_and_of_all_batches(house: House) -> None:
    house.run(sentence(7, steps=2, beam_size=3), sentence(8, steps=3, beam_size=2, priority=Priority.BULK))
    told = [(each.num_rows, each.num_bulk_rows, each.rows_in_use) for each in house.recorder.events]
    assert sorted(told[:2]) == [(2, 2, 2), (3, 0, 5)] or sorted(told[:2]) == [(2, 2, 5), (3, 0, 3)]
    assert told[-1] == (2, 2, 2)


def test_an_engine_that_waits_is_not_busy(house: House) -> None:
    house.run(sentence(7, steps=1))
    time.sleep(0.2)
    house.engine.submit([sentence(7, steps=3)])[0].result(30)
    assert max(each.busy_seconds for each in house.recorder.events) < 0.2
    assert sum(each.busy_seconds for each in house.recorder.events) > 0


def test_a_result_goes_with_whoever_asked_for_it(house: House) -> None:
    [future] = house.run(sentence(7))
    result = weakref.ref(future.result())
    gc.disable()
    try:
        del future
        # The thread's own variables name what it answered last until it answers another.
        house.engine.submit([sentence(8)])[0].result(30)
        assert result() is None
    finally:
        gc.enable()


def test_nobody_keeps_what_was_cancelled(house: House) -> None:
    futures: list[Future[SentenceResult]] = []
    house.at_step[2] = lambda: futures[0].cancel()
    futures += house.engine.submit([sentence(7), sentence(8)])
    house.engine.start()
    wait(futures, timeout=30)
    cancelled = weakref.ref(futures[0])
    gc.disable()
    try:
        futures.clear()
        house.engine.submit([sentence(9)])[0].result(30)
        assert cancelled() is None
    finally:
        gc.enable()


def test_an_idle_engine_keeps_no_batch(house: House) -> None:
    opened: list[weakref.ref[TableBatch]] = []
    house.decoder.on_open = lambda batch: opened.append(weakref.ref(batch))
    house.run(sentence(7), sentence(8, beam_size=2))
    # The thread drops it after it has answered.
    latest = time.monotonic() + 30
    while any(batch() for batch in opened) and time.monotonic() < latest:
        time.sleep(0.01)
    assert [batch() for batch in opened] == [None, None]


def test_a_lane_keeps_its_batch_from_step_to_step(house: House) -> None:
    opened: list[int] = []
    house.decoder.on_open = lambda batch: opened.append(batch.beam_size)
    house.run(sentence(7, steps=4), sentence(8, steps=2, beam_size=2))
    assert sorted(opened) == [1, 2]


def test_a_lane_that_ran_empty_takes_up_new_work() -> None:
    house = House(one_place_limits())
    futures = house.run(sentence(7, steps=2), sentence(8, steps=1), sentence(9, steps=3))
    assert house.steps == [[(7,)]] * 2 + [[(8,)]] + [[(9,)]] * 3
    alone = House()
    [future] = alone.run(sentence(9, steps=3))
    assert futures[2].result().hypotheses[0].tokens == future.result().hypotheses[0].tokens
    house.engine.close()
    alone.engine.close()


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize("is_cancelled", [True, False])
def test_who_comes_as_the_last_one_goes_gets_its_own_answer(continuous: bool, is_cancelled: bool) -> None:
    house = House(EngineLimits(continuous=continuous))
    deadline = None if is_cancelled else time.monotonic() + 0.2
    futures = house.engine.submit([sentence(7, steps=5, deadline=deadline)])

    def swap() -> None:
        if deadline is None:
            futures[0].cancel()
        else:
            time.sleep(max(0.0, deadline - time.monotonic()) + 0.01)
        futures.extend(house.engine.submit([sentence(9, steps=3)]))

    house.at_step[2] = swap
    house.engine.start()
    wait(futures[:1], timeout=30)
    wait(futures, timeout=30)
    house.engine.close()
    assert house.steps == [[(7,)]] * 2 + [[(9,)]] * 3
    alone = House()
    [future] = alone.run(sentence(9, steps=3))
    alone.engine.close()
    assert futures[1].result().hypotheses[0].tokens == future.result().hypotheses[0].tokens


def test_bulk_that_was_set_back_begins_anew_and_gets_the_same_answers() -> None:
    house = House(EngineLimits(max_bulk_slowdown=1.0))
    job = [sentence(number, steps=4, beam_size=2, priority=Priority.BULK) for number in (6, 7, 8)]
    futures = house.engine.submit(job)
    house.at_step[2] = lambda: futures.extend(house.engine.submit([sentence(9, steps=3, beam_size=2)]))
    house.engine.start()
    wait(futures, timeout=30)
    wait(futures, timeout=30)
    house.engine.close()
    assert house.steps == [
        *[[(6,), (7,), (8,)]] * 2,
        *[[(6,), (9,)]] * 2,
        [(7,), (9,)],
        *[[(7,)]] * 3,
        *[[(8,)]] * 4,
    ]
    assert house.recorder.outcomes == {Outcome.FINISHED: 4}
    for one, future in zip(job, futures, strict=False):
        alone = House()
        [expected] = alone.run(one)
        alone.engine.close()
        assert future.result().hypotheses[0].tokens == expected.result().hypotheses[0].tokens


def test_callers_of_many_threads_are_all_answered(house: House) -> None:
    house.engine.start()
    results: list[SentenceResult] = []

    def call(number: int) -> None:
        for i in range(20):
            wanted = sentence(number, i, steps=1 + (number + i) % 4, beam_size=1 + i % 2)
            futures = house.engine.submit([wanted, wanted])
            if i % 5 == 0:
                futures[1].cancel()
            results.append(futures[0].result(timeout=30))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 160
    house.engine.close()
    assert sum(house.recorder.outcomes.values()) == 320


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
    house.engine.close()
    assert house.recorder.outcomes == {Outcome.FINISHED: 2, Outcome.FAILED: 1}


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


def test_memory_is_given_back_once_when_there_is_nothing_to_do(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "RELEASE_SECONDS", 0.0)
    released = threading.Semaphore(0)
    num_released: list[int] = []

    def release() -> None:
        # Nobody is in it.
        num_released.append(house.engine.num_running)
        released.release()

    house.decoder.release_memory = release  # type: ignore[method-assign]
    house.run(sentence(7), sentence(8))
    assert released.acquire(timeout=60)
    # Without work in between there is nothing more to give back.
    house.engine.wake()
    house.engine.submit([sentence(9)])
    assert released.acquire(timeout=60)
    house.engine.close()
    assert num_released == [0, 0]


def test_an_engine_that_can_give_no_memory_back_decodes_on(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "RELEASE_SECONDS", 0.0)
    released = threading.Semaphore(0)

    def release() -> None:
        released.release()
        raise MemoryError("none left")

    house.decoder.release_memory = release  # type: ignore[method-assign]
    house.run(sentence(7))
    assert released.acquire(timeout=60)
    assert house.engine.submit([sentence(8)])[0].result(timeout=60).hypotheses
    house.engine.close()
    assert "memory could not be given back" in caplog.text

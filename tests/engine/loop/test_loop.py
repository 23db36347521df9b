"""The engine as its callers see it, over a decoder whose results are known."""

import gc
import threading
import time
import weakref
from concurrent.futures import wait

import pytest
from tests.engine.house import ONE_PLACE, VOCABULARY, House, endless, sentence, tokens_alone, wait_until
from tests.engine.table_decoder import TableBatch, TableDecoder

from dragoman_server.engine import loop
from dragoman_server.engine.errors import EngineClosedError
from dragoman_server.engine.events import Outcome
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.request import Priority, SentenceResult


def test_every_sentence_gets_its_own_answer(house: House) -> None:
    wanted = [sentence(i, steps=1 + i % 5, beam_size=1 + i % 3) for i in range(40)]
    together = [future.result() for future in house.run(*wanted)]
    assert house.outcomes() == {Outcome.FINISHED: 40}
    for one, result in zip(wanted, together, strict=True):
        assert result.hypotheses[0].tokens == tokens_alone(one)
        assert min(result.queue_seconds, result.encode_seconds, result.decode_seconds) >= 0


def test_finished_sentence_frees_its_rows_at_that_step_and_is_answered_at_once(house: House) -> None:
    answered: list[bool] = []
    house.at_step[3] = lambda: answered.extend(future.done() for future in house.futures)
    house.run(sentence(7, steps=2), sentence(8, steps=3))
    assert house.steps == [[(7,), (8,)], [(7,), (8,)], [(8,)]]
    assert answered == [True, False]


def test_request_level_batching_answers_a_batch_at_its_end_and_then_begins_the_next() -> None:
    house = House(EngineLimits(continuous=False))
    answered: list[bool] = []
    house.at_step[2] = lambda: house.submit(sentence(9, steps=1))
    for step in (3, 4):
        house.at_step[step] = lambda: answered.extend(future.done() for future in house.futures[:2])
    futures = house.run(sentence(7, steps=1), sentence(8, steps=3))
    assert house.steps == [[(7,), (8,)]] * 3 + [[(9,)]]
    assert answered == [False, False, True, True]
    assert [len(future.result().hypotheses[0].tokens) for future in futures] == [1, 3, 1]
    house.engine.close()


def test_a_request_level_batch_ends_once_those_it_waits_for_are_cancelled() -> None:
    house = House(EngineLimits(continuous=False))
    house.at_step[2] = lambda: house.futures[1].cancel()
    futures = house.run(sentence(7, steps=1), sentence(8, steps=9))
    assert len(house.steps) == 3
    assert len(futures[0].result().hypotheses[0].tokens) == 1
    assert house.outcomes() == {Outcome.FINISHED: 1, Outcome.CANCELLED: 1}


def test_a_newcomer_joins_the_running_batch_at_the_next_step(house: House) -> None:
    house.at_step[2] = lambda: house.submit(sentence(9, steps=2))
    assert house.run(sentence(7, steps=4))[1].result().hypotheses
    assert house.steps == [[(7,)], [(7,)], [(7,), (9,)], [(7,), (9,)]]


def test_closing_fails_what_is_left() -> None:
    house = House(ONE_PLACE)
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


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize("is_cancelled", [True, False])
def test_who_comes_as_the_last_one_goes_gets_its_own_answer(continuous: bool, is_cancelled: bool) -> None:
    house = House(EngineLimits(continuous=continuous))
    deadline = None if is_cancelled else time.monotonic() + 0.2

    def swap() -> None:
        if deadline is None:
            house.futures[0].cancel()
        else:
            time.sleep(max(0.0, deadline - time.monotonic()) + 0.01)
        house.submit(sentence(9, steps=3))

    house.at_step[2] = swap
    futures = house.run(sentence(7, steps=5, deadline=deadline))
    wait_until(lambda: len(futures) == 2 and futures[1].done())
    house.engine.close()
    assert house.steps == [[(7,)]] * 2 + [[(9,)]] * 3
    assert futures[1].result().hypotheses[0].tokens == tokens_alone(sentence(9, steps=3))


def test_bulk_that_was_set_back_begins_anew_and_gets_the_same_answers() -> None:
    house = House(EngineLimits(max_bulk_slowdown=1.0))
    job = [sentence(number, steps=4, beam_size=2, priority=Priority.BULK) for number in (6, 7, 8)]
    house.at_step[2] = lambda: house.submit(sentence(9, steps=3, beam_size=2))
    futures = house.run(*job)
    assert house.outcomes() == {Outcome.FINISHED: 4}
    assert house.steps == [
        *[[(6,), (7,), (8,)]] * 2,
        *[[(6,), (9,)]] * 2,
        [(7,), (9,)],
        *[[(7,)]] * 3,
        *[[(8,)]] * 4,
    ]
    for one, future in zip(job, futures, strict=False):
        assert future.result().hypotheses[0].tokens == tokens_alone(one)


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
    assert sum(house.outcomes().values()) == 320


def test_a_burst_of_calls_ends_once_each(house: House) -> None:
    house.engine.start()
    futures = [house.engine.submit([sentence(7, steps=1)])[0] for _ in range(6000)]
    for future in futures[::3]:
        future.cancel()
    # Those that were answered before are not cancelled any more.
    wait(futures, timeout=120)
    num_cancelled = sum(future.cancelled() for future in futures)
    assert num_cancelled > 0
    expected = {Outcome.CANCELLED: num_cancelled, Outcome.FINISHED: len(futures) - num_cancelled}
    assert house.outcomes() == expected
    assert (sum(house.engine.num_left.values()), house.engine.num_running) == (6000, 0)


def test_a_step_is_told_with_its_rows_positions_and_padding(house: House) -> None:
    house.run(sentence(*[5] * 7, steps=2, beam_size=3), sentence(*[5] * 3, steps=1, beam_size=3))
    assert house.recorder.steps == [(2, 6, 10, 16), (1, 3, 7, 8)]


def test_a_step_is_told_with_the_rows_of_bulk_and_of_all_batches(house: House) -> None:
    house.run(sentence(7, steps=2, beam_size=3), sentence(8, steps=3, beam_size=2, priority=Priority.BULK))
    told = [(each.num_rows, each.num_bulk_rows, each.rows_in_use) for each in house.recorder.events]
    assert sorted(told[:2]) == [(2, 2, 2), (3, 0, 5)] or sorted(told[:2]) == [(2, 2, 5), (3, 0, 3)]
    assert told[-1] == (2, 2, 2)


def test_a_result_goes_with_whoever_asked_for_it(house: House) -> None:
    result = weakref.ref(house.run(sentence(7))[0].result())
    gc.disable()
    try:
        house.futures.clear()
        # The thread's own variables name what it answered last until it answers another.
        house.engine.submit([sentence(8)])[0].result(30)
        assert result() is None
    finally:
        gc.enable()


def test_nobody_keeps_what_was_cancelled(house: House) -> None:
    house.at_step[2] = lambda: house.futures[0].cancel()
    cancelled = weakref.ref(house.run(sentence(7), sentence(8))[0])
    gc.disable()
    try:
        house.futures.clear()
        house.engine.submit([sentence(9)])[0].result(30)
        assert cancelled() is None
    finally:
        gc.enable()


def test_an_idle_engine_keeps_no_batch(house: House) -> None:
    opened: list[weakref.ref[TableBatch]] = []
    house.decoder.on_open = lambda batch: opened.append(weakref.ref(batch))
    house.run(sentence(7), sentence(8, beam_size=2))
    # The thread drops it after it has answered.
    wait_until(lambda: [batch() for batch in opened] == [None, None])

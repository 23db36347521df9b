"""Several engines in one process, over one decoder: to its callers they are one engine."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from tests.engine import openers
from tests.engine.house import Recorder, sentence

from dragoman_server.engine import Admission, EngineLimits, EngineLostError, Priority, SentenceResult
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.pool.process import EngineProcess
from dragoman_server.models.loader import HOST_SECONDS, MAX_LOCK_SHARE, engines_a_process


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def shared(recorder: Recorder) -> Iterator[EngineProcess]:
    limits = EngineLimits(max_rows=4, max_beam_size=4)
    engine = EngineProcess(openers.open_slow, limits=limits, listener=recorder.hear, num_engines=3)
    engine.start()
    yield engine
    engine.close()


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_every_sentence_gets_the_answer_that_one_engine_gives(recorder: Recorder) -> None:
    wanted = [sentence(i, 5, *range(i % 7), steps=1 + i % 5, beam_size=1 + i % 3) for i in range(60)]
    answers = []
    for num_engines in (1, 3):
        engine = EngineProcess(
            openers.open_random, limits=EngineLimits(), listener=recorder.hear, num_engines=num_engines
        )
        engine.start()
        found = [future.result(30).hypotheses for future in engine.submit(wanted)]
        answers.append([[each.tokens for each in hypotheses] for hypotheses in found])
        wait_until(lambda engine=engine: engine.num_running == 0)
        assert sum(engine.num_left.values()) == len(wanted)
        engine.close()
    assert answers[0] == answers[1]


def test_each_engine_has_a_batch_of_its_own(shared: EngineProcess, recorder: Recorder) -> None:
    # Four rows are a batch: of twelve sentences nobody waits.
    futures = shared.submit([sentence(7 + i, steps=200) for i in range(12)])
    wait_until(lambda: sum(shared.num_left.values()) == 12)
    for future in futures:
        future.cancel()
    wait_until(lambda: sum(recorder.outcomes.values()) == 12)
    assert max(rows for _, rows, _, _ in recorder.steps) == 4
    assert {step.engine for step in recorder.events} == {0, 1, 2}


def test_who_is_cancelled_leaves_an_empty_queue(shared: EngineProcess) -> None:
    futures = shared.submit([sentence(7, steps=500) for _ in range(50)])
    for future in futures:
        future.cancel()
    wait_until(lambda: sum(shared.num_left.values()) == 50 and shared.num_running == 0)
    assert shared.submit([sentence(7, steps=2)])[0].result(30).hypotheses


def test_one_engine_that_hangs_has_the_process_replaced(recorder: Recorder) -> None:
    limits = EngineLimits(max_rows=1, max_beam_size=1)
    engine = EngineProcess(
        openers.open_hanging, limits=limits, listener=recorder.hear, num_engines=3, timeout_seconds=2.0
    )
    engine.start()
    try:
        futures: list[Future[SentenceResult]] = engine.submit([sentence(15, steps=3)])
        time.sleep(0.2)
        futures += engine.submit([sentence(7 + i % 3, steps=3) for i in range(30)])
        errors = [future.exception(60) for future in futures]
        # It hangs whichever process has it, and holds up those of its engine. The other engines go on.
        assert isinstance(errors[0], EngineLostError)
        assert errors.count(None) >= 20
        assert engine.submit([sentence(7, steps=3)])[0].result(60).hypotheses
    finally:
        engine.close()
    assert recorder.num_losses >= 1


def test_a_pool_counts_engines_and_not_processes() -> None:
    limits = EngineLimits()
    engines = [EngineProcess(openers.open_random, limits=limits, num_engines=size) for size in (2, 1)]
    pool = EnginePool(engines, Admission.to(openers.open_random(), limits))
    pool.start()
    assert pool.num_alive == 3
    assert len(pool.pids) == 2
    assert pool.num_waiting(Priority.INTERACTIVE) == 0
    pool.close()


def test_as_many_share_a_process_as_the_lock_allows() -> None:
    assert engines_a_process(HOST_SECONDS) == 1
    assert engines_a_process(0.0) == 1
    assert engines_a_process(8 * HOST_SECONDS / MAX_LOCK_SHARE) == 8

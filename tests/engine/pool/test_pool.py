"""Several engines are to their callers what one of them is."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Any

import pytest
from dragoman_bundle.bundle import Bundle
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.exported import random_sentences
from tests.engine.house import VOCABULARY, endless, pool_over, sentence, wait_until
from tests.engine.table_decoder import TableDecoder, Tokens

from dragoman_server.engine.errors import EngineClosedError, QueueFullError, QueueTooSlowError
from dragoman_server.engine.limits import Admission, EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.engine.pool.pool import Arrivals, EnginePool
from dragoman_server.engine.request import Priority, Sentence, SentenceResult


class Crew:
    """Engines over a table decoder, and which thread took which sources in its steps."""

    def __init__(self, num_engines: int, limits: EngineLimits | None = None) -> None:
        self.steps: dict[int, list[list[Tokens]]] = {}
        self.may_step = threading.Event()
        self.may_step.set()
        decoder = TableDecoder(endless, VOCABULARY, self._observe)
        self.pool = pool_over(decoder, limits, num_engines=num_engines)

    def _observe(self, sources: list[Tokens]) -> None:
        self.may_step.wait(30)
        self.steps.setdefault(threading.get_ident(), []).append(list(sources))

    @property
    def shares(self) -> list[set[Tokens]]:
        """The sources of each thread."""
        return [{source for step in steps for source in step} for steps in self.steps.values()]


@pytest.fixture
def enlist(request: pytest.FixtureRequest) -> Callable[..., Crew]:
    """Makes crews, one row for each of their engines, that are closed at the end."""

    def enlist(num_engines: int, **limits: Any) -> Crew:
        crew = Crew(num_engines, EngineLimits(max_rows=1, max_beam_size=1, **limits))
        request.addfinalizer(crew.pool.close)
        return crew

    return enlist


@pytest.fixture
def crew() -> Iterator[Crew]:
    crew = Crew(3)
    yield crew
    crew.pool.close()


def test_sentences_go_where_least_is_to_do(crew: Crew) -> None:
    long, *short = [sentence(*range(2, 12)), *(sentence(20 + i) for i in range(4))]
    futures = crew.pool.submit([long, *short])
    crew.pool.start()
    wait(futures, timeout=30)
    assert sorted(map(len, crew.shares)) == [1, 2, 2]
    assert {long.source} in crew.shares
    # All is done and nothing left over of it: the next ones are dealt out evenly again.
    crew.steps.clear()
    wait(crew.pool.submit([sentence(30 + i) for i in range(3)]), timeout=30)
    assert sorted(map(len, crew.shares)) == [1, 1, 1]


def test_an_interactive_sentence_does_not_mind_the_bulk_that_it_overtakes(crew: Crew) -> None:
    first = sentence(2, 3)
    # More than what the first one takes, on each of the other two engines.
    bulk = [sentence(*range(2, 7), 10 + i, priority=Priority.BULK) for i in range(2)]
    second = sentence(4, 5, 6)
    futures = [*crew.pool.submit([first]), *crew.pool.submit(bulk), *crew.pool.submit([second])]
    crew.pool.start()
    wait(futures, timeout=30)
    [with_first] = [share for share in crew.shares if first.source in share]
    assert second.source not in with_first


def test_the_queue_is_one_for_all(enlist: Callable[..., Crew]) -> None:
    crew = enlist(2, max_queue=4)
    futures = crew.pool.submit([sentence(7), sentence(8), sentence(9)])
    with pytest.raises(QueueFullError, match="2 sentences do not fit"):
        crew.pool.submit([sentence(10), sentence(11)])
    futures += crew.pool.submit([sentence(12)])
    crew.pool.start()
    assert all(future.result(30).hypotheses for future in futures)


def test_bulk_has_its_share_of_the_queue_of_all(enlist: Callable[..., Crew]) -> None:
    crew = enlist(2, max_queue=4, max_bulk_share=0.5)
    bulk = replace(sentence(7), priority=Priority.BULK)
    crew.pool.submit([bulk, bulk])
    with pytest.raises(QueueFullError, match="1 bulk sentences do not fit in the queue: 2 of 2 are waiting"):
        crew.pool.submit([bulk])
    crew.pool.submit([sentence(7), sentence(8)])


def learn_pace(crew: Crew, rate: float) -> None:
    """As if work had been done at that pace while more was waiting."""
    began = time.monotonic() - 5
    for tick in range(500):
        crew.pool._throughput.observe(began + tick / 100, rate / 100, running=0, share=1.0, is_saturated=True)


@pytest.mark.parametrize("priority", Priority)
def test_no_more_may_wait_than_is_answered_in_time_by_priority(
    enlist: Callable[..., Crew], priority: Priority
) -> None:
    crew = enlist(2, max_queue=1000, max_queue_seconds=5.0)
    [other] = [each for each in Priority if each is not priority]
    # As long as nobody knows how long it takes, it is no reason.
    crew.pool.submit([sentence(7, priority=priority) for _ in range(60)])
    assert crew.pool.expected_seconds(priority) == 0
    learn_pace(crew, 10)
    assert crew.pool.expected_seconds(priority) == pytest.approx(6, rel=0.1)
    assert not crew.pool.has_room(priority, 1)
    with pytest.raises(QueueTooSlowError, match=r"what waits takes about [56]\.\d seconds") as raised:
        crew.pool.submit([sentence(7, priority=priority)])
    assert raised.value.expected_seconds == pytest.approx(6, rel=0.1)
    # Nobody pays for those whom it does not wait for. However many come, it is those before them that count.
    assert len(crew.pool.submit([sentence(7, priority=other) for _ in range(200)])) == 200


def test_who_is_refused_for_want_of_room_is_told_how_long_it_takes(enlist: Callable[..., Crew]) -> None:
    crew = enlist(1, max_queue=50)
    crew.pool.submit([sentence(7) for _ in range(50)])
    learn_pace(crew, 10)
    with pytest.raises(QueueFullError, match="50 of 50 are waiting") as raised:
        crew.pool.submit([sentence(8)])
    assert raised.value.expected_seconds == pytest.approx(5, rel=0.1)


def test_who_waits_for_room_is_told_when_the_queue_moves(enlist: Callable[..., Crew]) -> None:
    crew = enlist(2, max_queue=4)
    pool, told = crew.pool, threading.Semaphore(0)
    futures = pool.submit([sentence(7 + i) for i in range(4)])
    with pool.told_of_room(told.release):
        assert not pool.has_room(Priority.INTERACTIVE, 1)
        pool.start()
        while not pool.has_room(Priority.INTERACTIVE, 1):
            assert told.acquire(timeout=30)
        # A sentence that leaves the queue for another reason makes room, too.
        wait(futures, timeout=30)
        crew.may_step.clear()
        futures = pool.submit([sentence(17 + i) for i in range(4)])
        wait_until(lambda: pool.num_running == 2)
        futures += pool.submit([sentence(27 + i) for i in range(2)])
        assert not pool.has_room(Priority.INTERACTIVE, 1)
        futures[-1].cancel()
        crew.may_step.set()
        while not pool.has_room(Priority.INTERACTIVE, 1):
            assert told.acquire(timeout=30)


def test_who_waits_and_who_runs_is_added_up(enlist: Callable[..., Crew]) -> None:
    crew = enlist(2, max_queue=8, max_bulk_share=0.5)
    pool = crew.pool
    crew.may_step.clear()
    pool.submit([sentence(7 + i, steps=1) for i in range(6)])
    assert (pool.num_waiting(Priority.INTERACTIVE), pool.num_running) == (6, 0)
    pool.submit([replace(sentence(7), priority=Priority.BULK)])
    assert [pool.num_waiting(priority) for priority in Priority] == [6, 1]
    assert [pool.max_waiting(priority) for priority in Priority] == [7, 2]
    pool.start()
    wait_until(lambda: pool.num_running == 2)
    assert [pool.num_waiting(priority) for priority in Priority] == [4, 1]
    assert [pool.max_waiting(priority) for priority in Priority] == [7, 4]
    crew.may_step.set()
    pool.close()
    # Whatever was left failed.
    assert ([pool.num_waiting(priority) for priority in Priority], pool.num_running) == ([0, 0], 0)


def test_who_is_on_the_way_to_an_engine_is_counted_once(
    enlist: Callable[..., Crew], monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = enlist(1, max_queue=4)
    submit, between = Engine.submit, [sentence(10)]

    def submit_with_another_between(engine: Engine, own: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        accepted = submit(engine, own)
        if between:
            crew.pool.submit([between.pop()])
        return accepted

    monkeypatch.setattr(Engine, "submit", submit_with_another_between)
    crew.pool.submit([sentence(7), sentence(8), sentence(9)])
    assert crew.pool.num_waiting(Priority.INTERACTIVE) == 4
    with pytest.raises(QueueFullError, match="4 of 4 are waiting"):
        crew.pool.submit([sentence(11)])


def test_what_is_left_at_the_end_fails_and_nothing_more_is_taken(crew: Crew) -> None:
    futures: list[Future[SentenceResult]] = crew.pool.submit([sentence(7 + i) for i in range(5)])
    assert not crew.pool.is_alive
    crew.pool.start()
    assert crew.pool.is_alive
    crew.pool.close()
    for future in futures:
        assert isinstance(future.exception(30), EngineClosedError | None)
    with pytest.raises(EngineClosedError):
        crew.pool.submit([sentence(7)])
    assert not crew.pool.is_alive


def test_engines_that_share_real_graphs_say_what_one_says(bundle: Bundle) -> None:
    sentences = random_sentences(1, 4)
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision="fp32"))
    answers = []
    for num_engines in (1, 3):
        pool = pool_over(decoder, EngineLimits(max_rows=40), num_engines=num_engines)
        pool.start()
        answers.append([future.result(60) for future in pool.submit(sentences)])
        pool.close()
    for one, three in zip(*answers, strict=True):
        assert [each.tokens for each in one.hypotheses] == [each.tokens for each in three.hypotheses]
        for mine, theirs in zip(one.hypotheses, three.hypotheses, strict=True):
            assert mine.score == pytest.approx(theirs.score, abs=1e-5)


def test_whom_the_pool_let_in_no_engine_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    may_step = threading.Semaphore(0)
    limits = EngineLimits(max_rows=16, max_queue=16, max_bulk_share=1.0, max_bulk_slowdown=1.0)
    decoder = TableDecoder(endless, VOCABULARY, lambda sources: may_step.acquire())
    engine = Engine(decoder, limits=limits)
    pool = EnginePool([engine], Admission.to(decoder, limits))

    def job(number: int) -> list[Sentence]:
        return [sentence(1, steps=6, priority=Priority.BULK) for _ in range(number)]

    def wait_for(num_waiting: int) -> None:
        wait_until(lambda: len(futures) - sum(engine.num_left.values()) == num_waiting)

    futures = pool.submit(job(12))
    pool.start()
    wait_for(0)
    may_step.release()
    futures += pool.submit(job(10))
    futures += pool.submit([sentence(9, steps=6)])
    submit = engine.submit

    def submit_late(sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        # Meanwhile all but one of the running twelve are set back.
        may_step.release()
        wait_for(21)
        return submit(sentences)

    monkeypatch.setattr(engine, "submit", submit_late)
    futures += pool.submit(job(4))
    may_step.release(1000)
    assert all(future.result(timeout=30).hypotheses for future in futures)
    pool.close()
    assert pool.num_waiting(Priority.BULK) == 0
    assert pool._load == [0]


BURSTS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=30)


@given(BURSTS)
def test_those_who_came_before_a_moment_are_counted_where_all_leave_in_order(
    bursts: list[tuple[int, int]],
) -> None:
    arrivals, waiting = Arrivals(), list[int]()
    for now, (number, num_leaving) in enumerate(bursts):
        waiting += [now] * number
        arrivals.note(now, number, len(waiting))
        del waiting[:num_leaving]
        for moment in range(now + 2):
            older = sum(came < moment for came in waiting)
            assert arrivals.num_before(moment, len(waiting)) == older

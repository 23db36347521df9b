"""What a process of engines is sent, several engines in one, and how long the next waits for its start."""

import os
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest
from tests.engine import openers
from tests.engine.house import Recorder, sentence, wait_until
from tests.engine.pool.conftest import Start

from dragoman_server.engine import EngineLimits, EngineLostError
from dragoman_server.engine.pool.pipe import Outgoing
from dragoman_server.engine.pool.process import MAX_SECONDS, RESET_SECONDS, Backoff, EngineProcess
from dragoman_server.models.loader import HOST_SECONDS, MAX_LOCK_SHARE, engines_a_process


@pytest.fixture
def shared(start: Start) -> EngineProcess:
    return start(openers.open_slow, EngineLimits(max_rows=4, max_beam_size=4), num_engines=3)


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


def test_one_engine_that_hangs_has_the_process_replaced(start: Start, recorder: Recorder) -> None:
    limits = EngineLimits(max_rows=1, max_beam_size=1)
    engine = start(openers.open_hanging, limits, num_engines=3, timeout_seconds=2.0)
    futures = engine.submit([sentence(15, steps=3)])
    time.sleep(0.2)
    futures += engine.submit([sentence(7 + i % 3, steps=3) for i in range(30)])
    errors = [future.exception(60) for future in futures]
    # It hangs whichever process has it, and holds up those of its engine. The other engines go on.
    assert isinstance(errors[0], EngineLostError)
    assert errors.count(None) >= 20
    assert engine.submit([sentence(7, steps=3)])[0].result(60).hypotheses
    assert recorder.num_losses >= 1


def test_as_many_share_a_process_as_the_lock_allows() -> None:
    assert engines_a_process(HOST_SECONDS) == 1
    assert engines_a_process(0.0) == 1
    assert engines_a_process(8 * HOST_SECONDS / MAX_LOCK_SHARE) == 8


@pytest.fixture
def pipe() -> Iterator[tuple[Outgoing, Connection]]:
    reader, writer = os.pipe()
    outgoing, incoming = Outgoing(writer), Connection(reader, writable=False)
    yield outgoing, incoming
    outgoing.close()
    incoming.close()


def writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dragoman-engine-writer"]


def test_more_than_a_pipe_takes_is_kept_until_somebody_reads(pipe: tuple[Outgoing, Connection]) -> None:
    outgoing, incoming = pipe
    sent = [bytes([number]) * 50_000 for number in range(20)]
    for message in sent:
        outgoing.send(message)
    assert [incoming.recv() for _ in sent] == sent
    # What is small goes at once, without another thread.
    wait_until(lambda: not writers())
    outgoing.send("last")
    assert not writers()
    assert incoming.recv() == "last"


@pytest.mark.parametrize("closed", ["here", "there"])
def test_a_pipe_that_is_closed_while_much_is_left_ends_at_the_other_side(
    pipe: tuple[Outgoing, Connection], closed: str
) -> None:
    outgoing, incoming = pipe
    outgoing.send(b"a" * 1_000_000)
    (outgoing if closed == "here" else incoming).close()
    outgoing.send("nobody gets it")
    with pytest.raises((EOFError, OSError)):
        incoming.recv()


def test_the_first_is_replaced_at_once_and_each_one_after_it_waits_twice_as_long() -> None:
    backoff = Backoff()
    backoff.started(10.0)
    assert [backoff.delay(11.0) for _ in range(8)] == [0, 1, 2, 4, 8, 16, MAX_SECONDS, MAX_SECONDS]


def test_one_that_lived_for_long_begins_anew() -> None:
    backoff = Backoff()
    for now in (10.0, 20.0, 30.0):
        backoff.started(now)
        last = backoff.delay(now + 1)
    assert last == 2
    backoff.started(40.0)
    assert backoff.delay(40.0 + RESET_SECONDS) == 0

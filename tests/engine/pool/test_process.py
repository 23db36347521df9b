"""An engine in a process of its own is to its callers what one in a thread is, until the process ends."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle.bundle import open_bundle
from tests.engine import openers
from tests.engine.house import Recorder, pool_over, searched, sentence, wait_until
from tests.engine.pool.conftest import Start
from tests.engine.table_decoder import TableDecoder
from tests.shipped import shipped_bundle

from dragoman_server.engine.errors import (
    DeadlineExpiredError,
    DecoderError,
    EngineClosedError,
    EngineLostError,
)
from dragoman_server.engine.events import BatchStepped, Event, Outcome
from dragoman_server.engine.limits import Admission, EngineLimits
from dragoman_server.engine.onnx.opening import open_decoder, reopen_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.pool.process import EngineProcess
from dragoman_server.engine.request import Priority, Sentence, SentenceResult

Pair = tuple[EnginePool, list[EngineProcess]]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_every_sentence_gets_the_answer_that_one_thread_gives() -> None:
    """From several threads, several processes, and several threads of a process."""
    wanted = [sentence(i, 5, *range(i % 7), steps=1 + i % 5, beam_size=1 + i % 3) for i in range(60)]
    decoder, limits, answers = openers.open_random(), EngineLimits(), []
    for num_threads, sizes in ((1, ()), (4, ()), (0, (1, 1)), (0, (3,))):
        recorder = Recorder()
        engines = [
            EngineProcess(openers.open_random, limits=limits, listener=recorder.hear, num_engines=size)
            for size in sizes
        ]
        threads = pool_over(decoder, num_engines=num_threads, listener=recorder.hear)
        pool = EnginePool(engines, Admission.to(decoder, limits)) if engines else threads
        pool.start()
        assert (pool.is_alive, pool.num_alive, len(pool.pids)) == (True, num_threads + sum(sizes), len(sizes))
        found = [future.result(30).hypotheses for future in pool.submit(wanted)]
        answers.append([[each.tokens for each in hypotheses] for hypotheses in found])
        wait_until(lambda pool=pool: pool.num_waiting(Priority.INTERACTIVE) == pool.num_running == 0)
        pool.close()
        assert not pool.is_alive
        assert pool.pids == []
        assert recorder.outcomes == {Outcome.FINISHED: 60}
        assert sum(rows for _, rows, _, _ in recorder.steps) > 60
    assert answers == answers[:1] * 4


def test_real_graphs_give_the_same_numbers_there() -> None:
    bundle = open_bundle(shipped_bundle("de-en"))
    decoder, limits = open_decoder(bundle, DecoderOptions(device="cpu")), EngineLimits(max_rows=40)
    elsewhere = EnginePool(
        [EngineProcess(partial(reopen_decoder, bundle.graphs, decoder.options), limits=limits)],
        Admission.to(decoder, limits),
    )
    options = searched(4, 40, num_hypotheses=2)
    lines = ["Guten Morgen.", "Wo ist der Bahnhof?", "Ich habe das Buch gestern gelesen."]
    sentences = [
        Sentence(source=(*ids, bundle.manifest.source_ids.eos), options=options, return_attention=True)
        for ids in bundle.source_tokenizer.encode_ids(lines)
    ]
    answers = []
    for pool in (pool_over(decoder, limits), elsewhere):
        pool.start()
        # One by one: alone, each has one result to the last bit.
        answers.append([pool.submit([each])[0].result(300) for each in sentences])
        pool.close()
    for here, there in zip(*answers, strict=True):
        assert there.encode_seconds > 0
        assert there.decode_seconds > 0
        assert len(here.hypotheses) == 2
        for mine, theirs in zip(here.hypotheses, there.hypotheses, strict=True):
            assert mine.tokens == theirs.tokens
            assert mine.score == theirs.score
            assert mine.finish_reason == theirs.finish_reason
            assert theirs.attention is not None
            np.testing.assert_array_equal(mine.attention, theirs.attention)


def test_who_is_cancelled_ends_there_too(start: Start, recorder: Recorder) -> None:
    engine = start(openers.open_slow, EngineLimits(max_rows=1, max_beam_size=1))
    running, waiting, last = engine.submit([sentence(7, steps=10_000), sentence(8), sentence(9, steps=2)])
    wait_until(lambda: engine.num_running == 1)
    assert waiting.cancel()
    assert running.cancel()
    assert last.result(30).hypotheses
    wait_until(lambda: recorder.outcomes == {Outcome.CANCELLED: 2, Outcome.FINISHED: 1})
    assert engine.num_running == 0
    assert sum(engine.num_left.values()) == 3


def test_who_is_cancelled_while_others_are_encoded_leaves_an_empty_queue(start: Start) -> None:
    engine = start(openers.open_slow_encoder, EngineLimits(max_rows=2, max_beam_size=1))
    for repeat in range(1, 4):
        futures = engine.submit([sentence(7 + i) for i in range(10)])
        # The first two are being encoded, which lasts.
        time.sleep(0.02)
        for future in futures:
            future.cancel()
        wait_until(lambda: engine.num_running == 0)
        wait_until(lambda repeat=repeat: sum(engine.num_left.values()) == 10 * repeat)


def test_a_deadline_holds_there_too(start: Start, recorder: Recorder) -> None:
    engine = start(openers.open_slow)
    late = engine.submit([sentence(7, steps=10_000, deadline=time.monotonic() + 0.3)])[0]
    assert isinstance(late.exception(30), DeadlineExpiredError)
    wait_until(lambda: recorder.outcomes == {Outcome.EXPIRED: 1})


def test_a_failure_is_told_with_its_cause_and_harms_nobody_after(start: Start) -> None:
    engine = start(openers.open_fragile)
    error = engine.submit([sentence(13)])[0].exception(30)
    assert isinstance(error, DecoderError)
    assert str(error) == "the decoder failed: RuntimeError: out of smoke"
    (note,) = error.__notes__
    assert "the cause's cause" in note
    assert "openers.py" in note
    assert engine.submit([sentence(7)])[0].result(30).hypotheses


@pytest.mark.parametrize("opener", [openers.refuse, openers.vanish])
def test_what_cannot_be_opened_there_is_told_here(start: Start, opener: Callable[[], TableDecoder]) -> None:
    with pytest.raises(DecoderError, match=r"nothing to open|did not start: exit status 3"):
        start(opener)


def test_where_one_cannot_be_started_none_is_left() -> None:
    engines = [
        EngineProcess(opener, limits=EngineLimits())
        for opener in (openers.open_slow, openers.refuse, openers.open_slow)
    ]
    pool = EnginePool(engines, Admission.to(openers.open_slow(), EngineLimits()))
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    # Python has one of its own that stays, if anything before has shared memory.
    before = children.read_text()
    with pytest.raises(DecoderError, match="nothing to open"):
        pool.start()
    assert set(children.read_text().split()) <= set(before.split())
    assert pool.pids == []


def test_what_is_printed_there_is_no_answer_and_what_is_logged_comes_here(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    engine = start(openers.open_random)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("tests.openers", "opened in another process")
    ]
    assert engine.submit([sentence(7)])[0].result(30).hypotheses


def test_warming_up_is_told_to_nobody(start: Start, recorder: Recorder) -> None:
    engine = start(openers.open_slow, warm_up=sentence(7, steps=3))
    assert engine.submit([sentence(8, steps=2)])[0].result(30).hypotheses
    wait_until(lambda: recorder.outcomes == {Outcome.FINISHED: 1})
    assert len(recorder.steps) == 2


def test_signals_that_are_meant_for_others_end_nothing(start: Start) -> None:
    engine = start(openers.open_slow)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        future = engine.submit([sentence(7, steps=20)])[0]
        assert engine.pid is not None
        os.kill(engine.pid, number)
        assert future.result(30).hypotheses


def test_what_is_left_when_it_is_closed_fails(start: Start, recorder: Recorder) -> None:
    engine = start(openers.open_slow, EngineLimits(max_rows=1, max_beam_size=1))
    futures = engine.submit([sentence(7 + i, steps=10_000) for i in range(3)])
    wait_until(lambda: engine.num_running == 1)
    engine.close()
    assert all(isinstance(future.exception(0), EngineClosedError) for future in futures)
    assert recorder.outcomes == {Outcome.CLOSED: 3}
    assert sum(engine.num_left.values()) == 3
    with pytest.raises(EngineClosedError):
        engine.submit([sentence(7)])


def end(engine: EngineProcess, number: signal.Signals = signal.SIGKILL) -> int:
    """Sends a signal to the process that runs now, once there is one; its number."""
    wait_until(lambda: engine.pid is not None)
    pid = engine.pid
    assert pid is not None
    os.kill(pid, number)
    return pid


@pytest.mark.parametrize("by_itself", [False, True])
def test_who_was_in_a_process_that_ends_is_answered_by_another(
    start: Start, recorder: Recorder, caplog: pytest.LogCaptureFixture, by_itself: bool
) -> None:
    engine = start(openers.open_fragile)
    first = engine.pid
    futures = engine.submit([sentence(7 + i, steps=600) for i in range(3)])
    lost: list[Future[SentenceResult]] = []
    if by_itself:
        # Its thread ends, and there is nothing left that decodes; so it does with the next process.
        lost = engine.submit([sentence(14)])
    else:
        end(engine)
        assert all(future.result(300).hypotheses for future in futures)
        assert engine.pid != first
    assert not wait(futures + lost, timeout=300).not_done
    for future in lost:
        assert isinstance(future.exception(0), EngineLostError)
    assert sum(recorder.outcomes.values()) == len(futures + lost)
    ended = [record for record in caplog.records if record.message == "an engine's process ended"]
    assert ended[0].__dict__["reason"] == ("exit status 0" if by_itself else "signal 9")
    assert recorder.num_losses == len(ended) == (2 if by_itself else 1)
    # It goes on, and whoever ended it is in it no more.
    assert engine.submit([sentence(7)])[0].result(300).hypotheses
    wait_until(lambda: engine.num_running == 0)
    assert sum(engine.num_left.values()) == len(futures + lost) + 1


def test_a_process_that_hangs_is_killed_and_who_was_in_it_is_answered_by_another(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    engine = start(openers.open_slow, timeout_seconds=2.0)
    futures = engine.submit([sentence(7, steps=20)])
    pid = end(engine, signal.SIGSTOP)
    # More than a pipe takes: to submit it waits for nobody.
    futures += engine.submit([sentence(*range(500), steps=2) for _ in range(200)])
    assert all(future.result(120).hypotheses for future in futures)
    assert engine.pid != pid
    assert not is_running(pid)
    reasons = [each.__dict__["reason"] for each in caplog.records if "process ended" in each.message]
    assert reasons[0] == "no answer for 2 seconds"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_one_engine_of_two_is_lost_under_load_and_nothing_with_it(pair: Pair, number: signal.Signals) -> None:
    pool, engines = pair
    changes: list[int] = []
    pool.watch(lambda: changes.append(pool.num_alive))
    futures: list[Future[SentenceResult]] = []
    for attempt in range(30):
        futures += pool.submit([sentence(7 + i, steps=3) for i in range(20)])
        if attempt == 5:
            end(engines[0], number)
        time.sleep(0.01)
    assert all(future.result(120).hypotheses for future in futures)
    wait_until(lambda: pool.num_alive == 2)
    assert changes == [1, 2]
    wait_until(lambda: pool.num_waiting(Priority.INTERACTIVE) == pool.num_running == 0)
    assert pool._load == [0, 0]


def test_while_no_engine_runs_sentences_are_refused_and_those_accepted_are_answered(pair: Pair) -> None:
    pool, engines = pair
    refused: list[EngineLostError] = []

    def submit_while_none_runs() -> None:
        if pool.num_alive == 0:
            with pytest.raises(EngineLostError, match="no engine of the model runs") as raised:
                pool.submit([sentence(9)])
            refused.append(raised.value)

    pool.watch(submit_while_none_runs)
    futures = pool.submit([sentence(7 + i, steps=100) for i in range(4)])
    for engine in engines:
        end(engine)
    assert all(future.result(300).hypotheses for future in futures)
    assert len(refused) >= 1
    assert not pool.has_ended


def test_a_stopped_process_does_not_hold_up_the_end(start: Start) -> None:
    engine = start(openers.open_slow)
    futures = engine.submit([sentence(7, steps=10_000)])
    pid = end(engine, signal.SIGSTOP)
    engine.close()
    assert isinstance(futures[0].exception(0), EngineClosedError)
    assert not is_running(pid)


def test_who_is_cancelled_between_two_processes_is_counted_once(start: Start, recorder: Recorder) -> None:
    engine = start(openers.open_slow)
    futures = engine.submit([sentence(7, steps=10_000), sentence(8, steps=2)])
    engine.watch(lambda: engine.is_alive or futures[0].cancel())
    end(engine)
    assert futures[1].result(300).hypotheses
    assert futures[0].cancelled()
    wait_until(lambda: recorder.outcomes == {Outcome.CANCELLED: 1, Outcome.FINISHED: 1})
    wait_until(lambda: sum(engine.num_left.values()) == 2)


def test_whom_this_side_cannot_hear_is_replaced(start: Start, recorder: Recorder) -> None:
    is_deaf = threading.Event()
    is_deaf.set()

    def hear(event: Event) -> None:
        if is_deaf.is_set() and isinstance(event, BatchStepped):
            raise RuntimeError("no metrics")
        recorder.hear(event)

    engine = start(openers.open_slow, listener=hear)
    pid = engine.pid
    assert pid is not None
    # What is told of the first one's answer, its steps, can't be taken.
    futures = engine.submit([sentence(7, steps=2), sentence(8, steps=1_000_000)])
    wait_until(lambda: recorder.num_losses > 0)
    is_deaf.clear()
    futures[1].cancel()
    assert not wait(futures, timeout=300).not_done
    wait_until(lambda: not is_running(pid))


def test_it_does_not_outlive_whoever_started_it(tmp_path: Path) -> None:
    program = """
        import sys, time
        from tests.engine import openers
        from dragoman_server.engine import EngineLimits
        from dragoman_server.engine.pool.process import EngineProcess
        engine = EngineProcess(openers.open_slow, limits=EngineLimits())
        engine.start()
        print(engine.pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    wait_until(lambda: not is_running(pid))


def test_nothing_is_imported_from_the_folder_that_it_is_started_in(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert start(openers.open_random).is_alive

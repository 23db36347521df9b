"""What the engine holds in memory, and for how long."""

import gc
import time
import weakref
from concurrent.futures import Future, wait

from tests.engine.house import House, sentence
from tests.engine.table_decoder import TableBatch

from dragoman_server.engine.request import SentenceResult


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

"""Callers take turns wherever one waits for another, and futures of other threads are awaited together."""

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.access import ADA, BOB, shows
from tests.server.calls import GERMAN, until
from tests.server.conftest import CPU, StartServer

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.call import host_of
from dragoman_server.service.searching import notify_when_done
from dragoman_server.turns import BusyThreadsError, FairLock, FairThreads


@pytest.mark.parametrize(
    ("text", "priority"),
    [("Ja." + " " * 120, pb.PRIORITY_INTERACTIVE), ("Ja.", pb.PRIORITY_BULK)],
    ids=["a call in a thread", "a job on the loop"],
)
async def test_a_caller_with_one_text_waits_for_no_crowd_of_another(
    start_server: StartServer, slow_models: Path, tokens: Path, text: str, priority: pb.Priority
) -> None:
    running = await start_server(models=slow_models, tokens=tokens, engine=replace(CPU, max_rows=16))

    async def call(token: str, texts: list[str]) -> None:
        message = pb.TranslateRequest(texts=texts, priority=priority, **GERMAN)
        await running.stub.Translate(message, metadata=shows(token))

    crowd = {asyncio.create_task(call(ADA, [f"Haus {n} und {m}." for m in range(8)])) for n in range(16)}
    await running.until("dragoman_queue_sentences")
    await call(BOB, [text])
    assert sum(task.done() for task in crowd) <= 5
    for task in crowd:
        task.cancel()


async def test_streams_take_turns_too(start_server: StartServer, slow_models: Path, tokens: Path) -> None:
    engine = replace(CPU, max_rows=16, max_queue=8)
    running = await start_server(models=slow_models, tokens=tokens, engine=engine)

    async def stream(token: str, num_items: int) -> int:
        call = running.stub.TranslateStream(metadata=shows(token))
        await call.write(pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**GERMAN)))
        for number in range(num_items):
            item = pb.TranslateStreamItem(id=f"{number}", text=f"Haus {number}.")
            await call.write(pb.TranslateStreamRequest(item=item))
        await call.done_writing()
        results = 0
        async for _ in call:
            results += 1
            done[token] = results
        return results

    done = {ADA: 0, BOB: 0}
    many = asyncio.create_task(stream(ADA, 100))
    await until(lambda: done[ADA])
    assert await stream(BOB, 1) == 1
    assert done[ADA] < 50
    many.cancel()


async def test_threads_take_one_of_each_caller_in_turn_and_no_more_than_may_wait() -> None:
    threads = FairThreads(1, "test", max_waiting=6)
    begun, goes_on = threading.Event(), threading.Event()
    held = threads.submit("a", lambda: (begun.set(), goes_on.wait()))
    begun.wait()
    done: list[str] = []
    futures = [
        threads.submit(name[0], lambda name=name: done.append(name)) for name in ("a1", "a2", "a3", "b1")
    ]
    futures += [threads.of("c").submit(done.append, name) for name in ("c1", "c2")]
    with pytest.raises(BusyThreadsError):
        threads.submit("d", goes_on.wait)
    futures[1].cancel()
    goes_on.set()
    for future in (held, futures[0], *futures[2:]):
        await asyncio.wrap_future(future)
    assert done == ["a1", "b1", "c1", "c2", "a3"]
    with pytest.raises(ZeroDivisionError):
        await threads.run("a", lambda: 1 // 0)
    threads.close()


async def test_a_lock_goes_to_one_of_each_caller_in_turn() -> None:
    lock, held = FairLock(), []

    async def hold(name: str) -> None:
        async with lock.held(name[0]):
            held.append(name)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(hold(name)) for name in ("a0", "a1", "a2", "a3", "b1", "b2", "c1")]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert held == ["a0", "a1", "b1", "c1", "b2", "a3"]


def test_a_caller_is_its_address_at_either_door() -> None:
    for peer in ("ipv4:192.0.2.1:50000", "192.0.2.1:4"):
        assert host_of(peer) == "192.0.2.1"
    for peer in ("ipv6:%5B2001:db8::1%5D:50000", "2001:db8::1:4"):
        assert host_of(peer) == "2001:db8::1"


async def first_error(futures: list[Future[int]]) -> BaseException | None:
    """Waits as who submitted them does."""
    ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    await asyncio.to_thread(notify_when_done, ended, futures)
    return await ended


async def test_results_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    wake = loop.call_soon_threadsafe
    wakings: list[object] = []

    def count(callback: object, *arguments: object) -> object:
        wakings.append(callback)
        return wake(callback, *arguments)  # type: ignore[arg-type]

    futures: list[Future[int]] = [Future() for _ in range(100)]
    ended: asyncio.Future[BaseException | None] = loop.create_future()
    futures[7].set_result(7)

    def answer(numbers: range) -> None:
        for number in numbers:
            if number != 7:
                futures[number].set_result(number)

    monkeypatch.setattr(loop, "call_soon_threadsafe", count)
    notify_when_done(ended, futures)
    threads = [threading.Thread(target=answer, args=(range(start, 100, 2),)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(30):
        assert await ended is None
    assert [future.result() for future in futures] == list(range(100))
    assert len(wakings) == 1


async def test_the_first_failure_is_told_while_others_are_still_at_work() -> None:
    futures: list[Future[int]] = [Future() for _ in range(3)]
    threading.Timer(0, futures[1].set_exception, [KeyError("second")]).start()
    async with asyncio.timeout(30):
        assert await first_error(futures) is futures[1].exception()
    futures[0].set_exception(KeyError("too late to matter"))


async def test_who_was_cancelled_is_not_disturbed_by_what_ends_later() -> None:
    futures: list[Future[int]] = [Future(), Future()]
    waiting = asyncio.ensure_future(first_error(futures))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    futures[0].cancel()
    futures[1].set_exception(KeyError("nobody waits"))
    await asyncio.sleep(0)


async def test_of_nothing_there_is_nothing_to_wait_for() -> None:
    assert await first_error([]) is None

"""Futures of other threads, awaited together."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from dragoman_server.service.searching import notify_when_done


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

"""Waits on the event loop for futures that other threads end, and wakes it once, however many there are."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def gather_results(futures: Sequence[Future[T]]) -> list[T]:
    """The futures' results in their order, or the error of the first that fails, at once.

    Cancels none of them, and takes it that only who no longer waits here does.
    """
    if not futures:
        return []
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    num_pending = len(futures)
    # Guards the count above.
    lock = threading.Lock()

    def note(future: Future[T]) -> None:
        nonlocal num_pending
        if future.cancelled():
            return
        with lock:
            num_pending -= 1
            is_last = num_pending == 0
        error = future.exception()
        if is_last or error is not None:
            loop.call_soon_threadsafe(end, error)

    def end(error: BaseException | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    for future in futures:
        future.add_done_callback(note)
    await ended
    return [future.result() for future in futures]

"""Tells the event loop when futures that other threads end have ended: once, however many there are."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any


def notify_when_done(ended: "asyncio.Future[BaseException | None]", futures: Sequence[Future[Any]]) -> None:
    """Sets `ended` to None once all of `futures` have a result, or at once to the error of the first to fail.

    May be called from any thread. Assumes that whoever cancels one of `futures` no
    longer waits for `ended`.
    """
    loop = ended.get_loop()
    num_pending = len(futures)
    # Guards the count above.
    lock = threading.Lock()

    def note(future: Future[Any]) -> None:
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
        if not ended.done():
            ended.set_result(error)

    for future in futures:
        future.add_done_callback(note)
    if not futures:
        loop.call_soon_threadsafe(end, None)

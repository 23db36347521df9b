"""Work that nobody has to wait for, each in a thread of its own, which ends with the process in any case.

For what reads files, as a file system that hangs holds its reader up for as long as it likes. asyncio's own
threads are waited for when the process ends.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def run_in_daemon_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Starts the function. Its result or error comes with the future, which may be left alone."""
    future: Future[T] = Future()
    # From here on nobody can cancel it: what it does is done.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=f"dragoman-{function.__name__.strip('_')}", daemon=True).start()
    return future


async def wait_for(work: Future[T], max_seconds: float | None) -> T:
    """Its result. After so long raises TimeoutError; then, and where this is cancelled, it goes on."""
    return await asyncio.wait_for(asyncio.wrap_future(work), max_seconds)

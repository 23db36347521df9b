"""Threads that end with the process in any case; callers' turns at them, and at what one holds at a time.

Of each caller in turn comes its oldest: so whoever asks for little waits for at most one piece of work of
each other, however much those want. What reads files has a thread of its own: a file system that hangs holds
its reader up for as long as it likes.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future
from typing import Any, Generic, ParamSpec, TypeVar

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


class Turns(Generic[T]):
    """Waiting items, by caller."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def add(self, caller: str, item: T) -> None:
        """Puts it behind those of its caller, who is the last in turn where none of its own wait."""
        self._waiting.setdefault(caller, deque()).append(item)
        self._number += 1

    def pop(self) -> T:
        """Takes out the one that is next in turn."""
        caller = next(iter(self._waiting))
        items = self._waiting.pop(caller)
        item = items.popleft()
        if items:
            self._waiting[caller] = items
        self._number -= 1
        return item


class BusyThreadsError(Exception):
    """The work that waits for threads is as much as may."""


class FairThreads:
    """A few threads for the work of callers. They end with the process in any case, whatever they are at."""

    def __init__(self, number: int, name: str, *, max_waiting: int | None = None) -> None:
        """`max_waiting`: most pieces of work that wait for a thread; None for any number."""
        self._number, self._name, self._max_waiting = number, name, max_waiting
        self._waiting: Turns[tuple[Future[Any], Callable[[], Any]]] = Turns()
        self._num_threads = self._num_idle = 0
        self._is_closed = False
        self._has_moved = threading.Condition()

    def of(self, caller: str) -> Executor:
        """The threads for work of one caller. What is submitted raises BusyThreadsError."""
        return _Threads(self, caller)

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """The result of the work. Raises BusyThreadsError."""
        return await asyncio.wrap_future(self.submit(caller, work))

    def submit(self, caller: str, work: Callable[[], T]) -> Future[T]:
        """Has the work done in the caller's turn. Raises BusyThreadsError."""
        future: Future[T] = Future()
        with self._has_moved:
            if self._max_waiting is not None and len(self._waiting) >= self._max_waiting + self._num_idle:
                raise BusyThreadsError
            self._waiting.add(caller, (future, work))
            if len(self._waiting) > self._num_idle and self._num_threads < self._number:
                self._num_threads += 1
                # As a daemon: the process does not wait for it when it ends.
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            self._has_moved.notify()
        return future

    def close(self) -> None:
        """Cancels what has not begun. Threads end with what they are at."""
        with self._has_moved:
            self._is_closed = True
            while self._waiting:
                self._waiting.pop()[0].cancel()
            self._has_moved.notify_all()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            future, work = taken
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            # The next may not come for long.
            del taken, future, work

    def _take(self) -> "tuple[Future[Any], Callable[[], Any]] | None":
        with self._has_moved:
            self._num_idle += 1
            while not self._waiting and not self._is_closed:
                self._has_moved.wait()
            self._num_idle -= 1
            return self._waiting.pop() if self._waiting else None


class _Threads(Executor):
    def __init__(self, threads: FairThreads, caller: str) -> None:
        self._threads, self._caller = threads, caller

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._threads.submit(self._caller, lambda: function(*args, **kwargs))


class FairLock:
    """A lock that one caller holds at a time. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: Turns[asyncio.Future[None]] = Turns()

    @contextlib.asynccontextmanager
    async def held(self, caller: str) -> AsyncIterator[None]:
        """Holds it once it is the caller's turn."""
        if self._is_held:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(caller, turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_on()
                raise
        self._is_held = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        self._is_held = False
        while self._waiting:
            turn = self._waiting.pop()
            if not turn.done():
                self._is_held = True
                turn.set_result(None)
                return

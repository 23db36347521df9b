"""Sentences on their way through a model's engine, without holding up the event loop; and a request's stages.

Owns the way from sentences to results, that cancelled work leaves the engine, and where the time goes. Must
not know texts.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from dragoman_server.engine import Priority, QueueFullError, Sentence, SentenceResult
from dragoman_server.models.model import Model

Futures = list[Future[SentenceResult]]

_MAX_CANCELLED_ON_LOOP = 100


async def search(
    executor: Executor | None,
    model: Model,
    priority: Priority,
    sentences: Sequence[Sentence],
    *,
    waits: bool,
    caller: str,
) -> tuple[float, Futures]:
    """Has sentences searched to the end, and says how long they waited for room.

    When cancelled, or when one sentence fails, the others leave the engine.
    """
    ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    came_at = time.monotonic()
    if waits:
        began_at, futures = await _submit_in_turn(executor, model, priority, sentences, ended, caller)
    else:
        began_at, futures = await _submit(executor, model, sentences, ended)
    waited_seconds = began_at - came_at
    try:
        if (error := await ended) is not None:
            raise error
    except BaseException:
        _cancel(futures)
        raise
    return waited_seconds, futures


async def _submit_in_turn(
    executor: Executor | None,
    model: Model,
    priority: Priority,
    sentences: Sequence[Sentence],
    ended: "asyncio.Future[BaseException | None]",
    caller: str,
) -> tuple[float, Futures]:
    loop, has_moved = asyncio.get_running_loop(), asyncio.Event()
    async with model.turns[priority].held(caller):
        with model.engine.told_of_room(lambda: loop.call_soon_threadsafe(has_moved.set)):
            while True:
                # Before the look: what moves from now on wakes.
                has_moved.clear()
                if model.engine.has_room(priority, len(sentences), caller):
                    with contextlib.suppress(QueueFullError):
                        return await _submit(executor, model, sentences, ended)
                await has_moved.wait()


async def _submit(
    executor: Executor | None,
    model: Model,
    sentences: Sequence[Sentence],
    ended: "asyncio.Future[BaseException | None]",
) -> tuple[float, Futures]:
    """When the engine began to take them in, which may search the first while it does, and their futures."""

    def submit() -> tuple[float, Futures]:
        began_at = time.monotonic()
        futures = model.engine.submit(sentences)
        notify_when_done(ended, futures)
        return began_at, futures

    if executor is None:
        return submit()
    submitting = asyncio.get_running_loop().run_in_executor(executor, submit)
    try:
        return await asyncio.shield(submitting)
    except asyncio.CancelledError:
        # The thread goes on, and what it submits is not wanted any more.
        submitting.add_done_callback(_cancel_submitted)
        raise


def _cancel_submitted(submitting: "asyncio.Future[tuple[float, Futures]]") -> None:
    if not submitting.cancelled() and submitting.exception() is None:
        _, futures = submitting.result()
        _cancel(futures)


def _cancel(futures: Futures) -> None:
    """Lets them leave the engine. What is finished does not mind."""

    def cancel() -> None:
        for future in futures:
            future.cancel()

    if len(futures) <= _MAX_CANCELLED_ON_LOOP:
        cancel()
    else:
        # Behind nobody's texts: it makes room for others.
        asyncio.get_running_loop().run_in_executor(None, cancel)


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


StageName = Literal["text", "queue", "encode", "decode", "link"]


class Stage(NamedTuple):
    """Seconds on the clock of time.monotonic, from a stage's begin to its end."""

    name: StageName
    began: float
    ended: float


class Stages:
    """The stages of one request; each begins where the one before it ended."""

    def __init__(self) -> None:
        self.came_at = time.monotonic()
        self.stages: list[Stage] = []
        self._since = self.came_at

    def begin(self) -> None:
        """The model is there, and the first stage begins."""
        self._since = time.monotonic()

    def end_text(self) -> None:
        """Texts are cut and tokenized, or joined."""
        self._add("text", time.monotonic())

    def end_search(self, waited_seconds: float, results: Sequence[SentenceResult]) -> None:
        """Sentences are searched, after such a wait for room in the queue: the slowest's stages."""
        now = time.monotonic()
        if results:
            seconds = attrgetter("queue_seconds", "encode_seconds", "decode_seconds")
            slowest = max(results, key=lambda result: sum(seconds(result)))
            # Taken by an engine's clock, which is that of this process or of another on the same machine.
            self._add("queue", min(self._since + waited_seconds + slowest.queue_seconds, now))
            self._add("encode", min(self._since + slowest.encode_seconds, now))
            self._add("decode", min(self._since + slowest.decode_seconds, now))
        self._since = now

    def end_linking(self, began: float) -> None:
        """An aligner has linked all words, from that moment on; before it they waited for a thread."""
        self._add("queue", max(began, self._since))
        self._add("link", time.monotonic())

    def seconds(self, name: str) -> float:
        """All stages of that name together, as far as they have ended."""
        return sum(stage.ended - stage.began for stage in self.stages if stage.name == name)

    def _add(self, name: StageName, ended: float) -> None:
        self.stages.append(Stage(name, self._since, ended))
        self._since = ended

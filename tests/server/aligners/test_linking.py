"""Calls that wait for aligners: whose turn it is, and what leaves."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry

from dragoman_server.aligners.aligner import Link, ServedAligner, TextPair
from dragoman_server.aligners.linking import Linking, LinkingRequest
from dragoman_server.engine import Priority, QueueFullError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.errors import UnwantedError
from dragoman_server.metrics.translation import AlignerMetrics, Metrics
from dragoman_server.wanted import Wanted

WIDE = "a " * 300
"""A line of so many words is a portion of its own."""


class SteppedLinker:
    """Links nothing, and each portion only when it is let."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.has_begun, self.may_end = threading.Semaphore(0), threading.Semaphore(0)

    def link(self, pairs: Sequence[TextPair]) -> Sequence[Sequence[Link]]:
        self.sizes.append(len(pairs[0][0].split()))
        self.has_begun.release()
        self.may_end.acquire()
        return [[] for _ in pairs]

    def count_words(self, text: str) -> int:
        return len(text.split())

    def is_swapped(self, pairs: Sequence[TextPair]) -> bool:
        return False

    async def begins(self) -> None:
        await asyncio.to_thread(self.has_begun.acquire)

    def end(self, number: int = 1) -> None:
        self.may_end.release(number)


def requested(linker: SteppedLinker, *sources: str, max_interactive_words: int = 10_000) -> LinkingRequest:
    metrics = AlignerMetrics(Metrics(CollectorRegistry()), "stepped")
    return LinkingRequest(
        aligner=ServedAligner(name="stepped", linker=linker, metrics=metrics),
        pairs=tuple((source, source) for source in sources),
        priority=Priority.INTERACTIVE,
        max_words=500,
        max_interactive_words=max_interactive_words,
    )


async def written(linking: Linking, request: LinkingRequest, *, wanted: Wanted | None = None) -> list[int]:
    """How many words each pair has that is written."""
    words: list[int] = []
    await linking.link(request, lambda pair: words.append(pair.num_source_tokens), wanted=wanted or Wanted())
    return words


async def test_a_long_call_holds_up_a_short_one_by_two_portions() -> None:
    linker, linking = SteppedLinker(), Linking(EngineLimits())
    long = asyncio.ensure_future(written(linking, requested(linker, "\n".join([WIDE] * 3), "b c")))
    await linker.begins()
    short = asyncio.ensure_future(written(linking, requested(linker, "d", "12", "e f")))
    await asyncio.sleep(0.05)
    linker.end(9)
    assert await short == [1, 0, 2]
    assert await long == [900, 2]
    assert linker.sizes == [300, 300, 1, 300, 2]
    linking.close()


async def test_a_call_of_many_words_is_no_interactive_one() -> None:
    linker, linking = SteppedLinker(), Linking(EngineLimits())
    long = asyncio.ensure_future(written(linking, requested(linker, WIDE, max_interactive_words=299)))
    await linker.begins()
    short = asyncio.ensure_future(written(linking, requested(linker, "d")))
    # It need not wait.
    await linker.begins()
    linker.end(2)
    assert (await short, await long) == ([1], [300])
    linking.close()


async def test_what_has_not_begun_leaves_with_a_cancelled_call() -> None:
    linker, linking = SteppedLinker(), Linking(EngineLimits(max_queue=3))
    long = asyncio.ensure_future(written(linking, requested(linker, *[WIDE] * 3)))
    await linker.begins()
    with pytest.raises(QueueFullError, match="3 of 3 are waiting"):
        await written(linking, requested(linker, "d"))
    long.cancel()
    with suppress(asyncio.CancelledError):
        await long
    linker.end(2)
    assert await written(linking, requested(linker, "d")) == [1]
    assert linker.sizes == [300, 1]
    linking.close()


async def test_nothing_is_begun_behind_its_deadline() -> None:
    linker, linking = SteppedLinker(), Linking(EngineLimits(max_queue=3))
    with pytest.raises(UnwantedError):
        await written(linking, requested(linker, *[WIDE] * 3), wanted=Wanted(0.0))
    assert linker.sizes == []
    linker.end()
    assert await written(linking, requested(linker, "d")) == [1]
    linking.close()


async def test_calls_are_refused_where_what_waits_takes_too_long() -> None:
    linker, linking = SteppedLinker(), Linking(EngineLimits(max_queue_seconds=1e-9))
    linker.end()
    assert await written(linking, requested(linker, "d")) == [1]
    waiting = asyncio.ensure_future(written(linking, requested(linker, "e")))
    await linker.begins()
    await linker.begins()
    with pytest.raises(QueueFullError, match="what waits takes about") as caught:
        await written(linking, requested(linker, "f"))
    assert caught.value.expected_seconds > 0
    linker.end()
    assert await waiting == [1]
    linking.close()

"""The asyncio client against a real server: what it does on its own; the rest it shares with the other."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.clients.conftest import fail_after_answers

import dragoman
from dragoman import AsyncClient, portions

DE_EN = {"source": "de", "target": "en"}


@pytest.fixture
async def client(server):
    async with AsyncClient(server.address, timeout_seconds=20) as connected:
        yield connected


async def test_translations_come_one_to_one_with_texts(client, server):
    server.servicer.delay_seconds = 0.01
    texts = [f"text {number}" for number in range(2_000)]
    translations = await client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]
    assert server.servicer.max_in_flight == portions.MAX_REQUESTS_IN_FLIGHT


async def test_calls_run_side_by_side(client, server):
    server.servicer.delay_seconds = 0.1
    await asyncio.gather(*(client.translate(["ja"], **DE_EN) for _ in range(4)))
    assert server.servicer.max_in_flight == 4


def test_client_serves_one_loop_after_another_and_several_at_once(server):
    client = AsyncClient(server.address, timeout_seconds=20)

    async def call():
        (translation,) = await client.translate(["ja"], **DE_EN)
        assert await client.health()
        streamed = [result async for result in client.translate_stream([(1, "nein")], **DE_EN)]
        return translation.text, streamed[0].translation.text

    with ThreadPoolExecutor(2) as pool:
        told = [asyncio.run(call()), asyncio.run(call()), *pool.map(asyncio.run, [call(), call()])]
    assert told == [("JA", "NEIN")] * 4
    asyncio.run(client.close())
    with pytest.raises(dragoman.ClientClosedError):
        asyncio.run(call())


async def test_server_that_goes_away_in_the_middle_is_waited_for(client, server):
    fail_after_answers(server, 2, 6)
    texts = [f"text {number}" for number in range(600)]
    translations = await client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]
    assert not server.servicer.outage


async def test_deadline_ends_the_call(client, server):
    server.servicer.delay_seconds = 0.5
    with pytest.raises(dragoman.DeadlineExceededError):
        await client.translate(["ja"] * 1000, **DE_EN, timeout_seconds=0.1)


async def test_cancelled_task_cancels_its_call_and_a_closed_client_all_of_them(client, server):
    server.servicer.holds_calls = True

    async def begin():
        server.servicer.requests.clear()
        server.servicer.call_ended.clear()
        task = asyncio.create_task(client.translate(["ja"], **DE_EN))
        while not server.servicer.requests:
            await asyncio.sleep(0.01)
        return task

    task = await begin()
    assert not server.servicer.call_ended.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # The client's own limit for the call is 20 seconds.
    assert await asyncio.to_thread(server.servicer.call_ended.wait, 10)
    task = await begin()
    await client.close()
    with pytest.raises(dragoman.CallCancelledError, match="the client was closed"):
        await task


async def test_every_call_after_closing_says_so(client):
    await client.models()
    await client.close()
    for call in (client.translate(["ja"], **DE_EN), client.models(), client.model("de-en"), client.health()):
        with pytest.raises(dragoman.ClientClosedError, match="the client is closed"):
            await call
    with pytest.raises(dragoman.ClientClosedError):
        await anext(client.translate_stream([(0, "ja")], **DE_EN))


@pytest.mark.parametrize("in_order", [True, False])
async def test_stream_takes_any_kind_of_iterable(client, server, in_order):
    server.servicer.reorders = True

    async def texts():
        for number in range(101):
            yield number, f"text {number}"

    awaited = [result.id async for result in client.translate_stream(texts(), **DE_EN, in_order=in_order)]
    pairs = enumerate(f"text {number}" for number in range(101))
    plain = [result.id async for result in client.translate_stream(pairs, **DE_EN, in_order=in_order)]
    assert sorted(awaited) == sorted(plain) == list(range(101))
    assert (awaited == list(range(101))) is in_order


async def test_stream_reads_no_further_ahead_than_its_window(client):
    read = []

    def texts():
        for number in range(1000):
            read.append(number)
            yield number, "ja"

    taken = 0
    async with contextlib.aclosing(client.translate_stream(texts(), **DE_EN, window=10)) as stream:
        async for _ in stream:
            taken += 1
            assert len(read) <= taken + 11
            if taken == 50:
                break


async def test_leaving_a_stream_leaves_what_the_texts_still_hold(client):
    queue = asyncio.Queue()
    ended = []

    async def texts():
        try:
            while True:
                yield 0, await queue.get()
        finally:
            ended.append(True)

    generator = texts()
    queue.put_nowait("ja")
    async with contextlib.aclosing(client.translate_stream(generator, **DE_EN)) as stream:
        assert (await anext(stream)).id == 0
    await generator.aclose()
    assert ended
    queue.put_nowait("for somebody else")
    await asyncio.sleep(0.05)
    assert queue.qsize() == 1


@pytest.mark.parametrize(
    ("last", "error"), [(OSError("disk is gone"), OSError), (None, TypeError)], ids=["raises", "no pair"]
)
async def test_what_reading_the_texts_raises_comes_after_the_results_before_it(client, last, error):
    async def texts():
        yield 0, "ja"
        yield 1, "nein"
        if last is not None:
            raise last
        yield last
        yield 2, "doch"

    stream = client.translate_stream(texts(), **DE_EN)
    assert [(await anext(stream)).id, (await anext(stream)).id] == [0, 1]
    with pytest.raises(error):
        await anext(stream)


async def test_texts_that_are_at_hand_share_messages(client, server):
    server.servicer.joins = server.servicer.reorders = True
    stream = client.translate_stream(enumerate(["ja"] * 100), **DE_EN, in_order=True, texts_per_message=32)
    assert [result.id async for result in stream] == list(range(100))
    assert [len(texts) for texts in server.servicer.messages] == [32, 32, 32, 4]


async def test_stream_that_breaks_is_unavailable(client, server):
    server.servicer.disconnects.append(3)
    stream = client.translate_stream(enumerate(["ja"] * 100), **DE_EN, in_order=True)
    assert [(await anext(stream)).id for _ in range(3)] == [0, 1, 2]
    with pytest.raises(dragoman.UnavailableError, match="going away"):
        await anext(stream)


async def test_models_and_health(client, server):
    (listed,) = await client.models()
    assert listed == await client.model("de-en")
    assert await client.health()
    server.health.set("", 2)
    assert not await client.health()
    with pytest.raises(dragoman.ModelNotFoundError, match=r"the server has no service 'no\.such\.Service'"):
        await client.health("no.such.Service")

"""TranslateStream over a real port."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from google.rpc import code_pb2
from tests.server.calls import failure, held, item, until
from tests.server.conftest import CPU, RunningServer, StartServer

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.api.service import write_to
from dragoman_server.config import RequestLimits
from dragoman_server.engine import QueueFullError, Sentence, SentenceResult
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.errors import IdleStreamError
from dragoman_server.service.stream import TranslationStream
from dragoman_server.service.translating import Translator

CONFIG = pb.TranslateStreamRequest(
    config=pb.TranslateStreamConfig(source_language="de", target_language="en")
)


async def echo(item: pb.TranslateStreamItem) -> pb.TranslateStreamResponse:
    return pb.TranslateStreamResponse(id=item.id)


async def run_stream(
    messages: AsyncIterator[Any],
    write: Callable[[pb.TranslateStreamResponse], Awaitable[None]],
    answer: Callable[[Any], Awaitable[pb.TranslateStreamResponse]] = echo,
    *,
    joins: bool = False,
    max_items: int = 9,
    max_idle_seconds: float = 9,
) -> None:
    """A stream without a server."""
    limits = {"max_items": max_items, "max_idle_seconds": max_idle_seconds}
    stream = TranslationStream(answer, write=write, joins=joins, **limits)
    await stream.run(messages, asyncio.Event())


async def ended(*messages: pb.TranslateStreamRequest) -> AsyncIterator[pb.TranslateStreamRequest]:
    for message in messages:
        yield message


async def answers(running: RunningServer, *messages: object) -> dict[str, pb.TranslateStreamResponse]:
    call = running.stub.TranslateStream(iter(messages))
    return {response.id: response async for response in call}


async def read_to_the_end(call: grpc.aio.StreamStreamCall, received: list[object]) -> grpc.aio.AioRpcError:
    """Collects the responses up to the error that ends the call, and returns that."""
    try:
        async for response in call:
            received.append(response)
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError("the stream ended without an error")


async def test_empty_items_are_not_prepared(running: RunningServer, prepared: list[str]) -> None:
    """No limit of characters holds those who send them by the thousand."""
    items = [item(str(number), "" if number % 3 else "Ja.") for number in range(600)]
    received = await answers(running, CONFIG, *items)
    assert [received[str(number)].translation.text for number in range(3)] == ["Ja.", "", ""]
    assert len(received) == 600
    assert prepared == ["Ja."] * 200
    assert running.metric("dragoman_texts_total") == 600
    assert running.metric("dragoman_requests_total", outcome="OK") == 600


async def test_every_item_is_answered_once_under_its_id_or_has_a_status(running: RunningServer) -> None:
    items = [item(f"id {number}", f"Satz {number}. " * (number % 7)) for number in range(300)]
    responses = await answers(running, CONFIG, item("bad", "x" * 501), *items)
    bad = responses.pop("bad").error
    assert bad.code == code_pb2.INVALID_ARGUMENT
    assert "501" in bad.message
    assert bad.details
    assert {id_: response.translation.text for id_, response in responses.items()} == {
        message.item.id: message.item.text for message in items
    }
    assert responses["id 0"].WhichOneof("result") == "translation"
    assert responses["id 1"].model.name == "de-en"


def joined(*messages: pb.TranslateStreamRequest) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(items={"items": [message.item for message in messages]})


@pytest.mark.parametrize("joins", [False, True])
async def test_items_of_one_message_are_answered_as_if_alone(running: RunningServer, joins: bool) -> None:
    config = pb.TranslateStreamRequest(config={"model": "de-en", "join_results": joins})
    items = [item(str(number), f"Satz {number}. " * (number % 7)) for number in range(300)]
    items[17] = item("17", "x" * 501)
    messages = [joined(*items[:100]), items[100], joined(*items[101:])]
    received = [message async for message in running.stub.TranslateStream(iter([config, *messages]))]
    results = [each for message in received for each in message.results.results or [message]]
    assert sorted(int(each.id) for each in results) == list(range(300))
    for each in results:
        if each.id == "17":
            assert "500" in each.error.message
        else:
            assert each.translation.text == items[int(each.id)].item.text
            assert each.model.name == "de-en"
    assert (len(received) < 300) is joins


async def test_no_message_holds_more_than_its_share_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_server.service.stream.MAX_MESSAGE_BYTES", 1_000)
    sizes = {"0": 300, "1": 300, "2": 300, "3": 5_000, "4": 10, "5": 10, "6": 980}
    has_last = asyncio.Event()
    written: list[list[str]] = []

    async def answer(item: pb.TranslateStreamItem) -> pb.TranslateStreamResponse:
        if item.id == "6":
            has_last.set()
        await has_last.wait()
        return pb.TranslateStreamResponse(id=item.id, translation={"text": "x" * sizes[item.id]})

    async def write(response: pb.TranslateStreamResponse) -> None:
        written.append(sorted(each.id for each in response.results.results or [response]))

    await run_stream(ended(joined(*(item(number, "Ja.") for number in sizes))), write, answer, joins=True)
    assert sorted(written) == [["0", "1", "2"], ["3"], ["4", "5"], ["6"]]


async def test_items_of_one_message_let_other_calls_in_between() -> None:
    begun: list[str] = []
    begun_in_a_turn: list[int] = []

    async def answer(item: pb.TranslateStreamItem) -> pb.TranslateStreamResponse:
        begun.append(item.id)
        return await echo(item)

    async def write(response: pb.TranslateStreamResponse) -> None:
        pass

    async def watch() -> None:
        while len(begun) < 50:
            before = len(begun)
            await asyncio.sleep(0)
            begun_in_a_turn.append(len(begun) - before)

    messages = ended(joined(*(item(str(number), "Ja.") for number in range(50))))
    await asyncio.gather(run_stream(messages, write, answer, joins=True, max_items=50), watch())
    assert max(begun_in_a_turn) == 1


async def test_a_caller_that_takes_joined_answers_slowly_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_server.service.stream.MAX_MESSAGE_BYTES", 1)
    written: list[str] = []

    async def write(response: pb.TranslateStreamResponse) -> None:
        await asyncio.sleep(0.15)
        written.append(response.id)

    messages = ended(joined(*(item(str(number), "Ja.") for number in range(8))))
    await run_stream(messages, write, joins=True, max_idle_seconds=0.5)
    assert sorted(written) == [str(number) for number in range(8)]


async def test_a_stream_that_is_no_stream_is_refused(running: RunningServer) -> None:
    def items(*values: dict[str, str]) -> pb.TranslateStreamRequest:
        return pb.TranslateStreamRequest(items={"items": values})

    beam_size = {"model": "de-en", "options": {"beam_size": 99}}
    for messages, words in (
        ([], "must be a config"),
        ([item("1", "Ja.")], "must be a config"),
        ([CONFIG, CONFIG], "must hold items"),
        ([CONFIG, pb.TranslateStreamRequest()], "must hold items"),
        ([CONFIG, items()], "must hold items"),
        ([CONFIG, items(*[{}] * 4097)], "items: holds 4097 items, and a message takes 4096"),
        ([CONFIG, item("x" * 1025, "Ja.")], "item.id: has 1025 characters, and an id takes 1024"),
        ([CONFIG, items({}, {"id": "x" * 1025})], "items.items[1].id: has 1025 characters"),
        ([pb.TranslateStreamRequest(config=beam_size)], "options.beam_size"),
        ([pb.TranslateStreamRequest(config={"model": "xx-yy"})], "de-en/1"),
    ):
        error = await failure(answers(running, *messages))
        assert error.code() is grpc.StatusCode["NOT_FOUND" if words == "de-en/1" else "INVALID_ARGUMENT"]
        assert words in error.details()


async def test_a_malformed_message_ends_the_stream_after_the_items_before_it(running: RunningServer) -> None:
    call = running.channel.stream_stream("/dragoman.v1.TranslationService/TranslateStream")
    # Field 2, an item whose text, field 2, holds a surrogate.
    malformed = b"\x12\x05\x12\x03\xed\xa0\x80"
    messages = [CONFIG.SerializeToString(), item("1", "Ja.").SerializeToString(), malformed]
    received: list[bytes] = []
    error = await read_to_the_end(call(iter(messages)), received)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    (response,) = map(pb.TranslateStreamResponse.FromString, received)
    assert response.translation.text == "Ja."


async def test_no_more_items_are_taken_than_fit(
    start_server: StartServer, slow_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_at_work, most_at_work = 0, 0
    translate = Translator.translate

    async def counted(*args: Any, **options: Any) -> pb.TranslateStreamResponse:
        nonlocal num_at_work, most_at_work
        num_at_work += 1
        most_at_work = max(most_at_work, num_at_work)
        try:
            return await translate(*args, **options)
        finally:
            num_at_work -= 1

    monkeypatch.setattr(Translator, "translate", counted)
    running = await start_server(models=slow_models, limits=RequestLimits(max_stream_items=3))
    items = [item(str(number), "wort wort") for number in range(12)]
    assert len(await answers(running, CONFIG, *items[:5], joined(*items[5:]))) == 12
    assert most_at_work == 3


async def test_a_cancelled_stream_frees_the_engine(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models)
    items = [item(str(number), "wort " * 10) for number in range(20)]
    call = running.stub.TranslateStream(held(CONFIG, *items))
    # On a busy machine some end before the last have come.
    await until(lambda: running.metric("dragoman_running_sentences") and running.num_at_work() > 1)
    call.cancel()
    await running.until("dragoman_sentences_total", outcome="cancelled")
    await until(lambda: not running.num_at_work())
    await running.calls_are_counted()
    assert running.metric("dragoman_requests_total", outcome="CANCELLED") > 0
    assert running.metric("dragoman_requests_total") <= 20


@pytest.mark.parametrize("joins", [False, True])
async def test_a_caller_that_went_away_is_no_error_of_the_server(joins: bool) -> None:
    class Gone:
        async def write(self, response: pb.TranslateStreamResponse) -> None:
            raise grpc.aio.InternalError("Failed grpc_call_start_batch: 8")

    messages = ended(*(item(str(number), "Ja.") for number in range(3)))
    async with asyncio.timeout(10):
        await run_stream(messages, write_to(cast(Any, Gone())), joins=joins, max_items=1)


@pytest.mark.parametrize("messages", [(), (CONFIG, item("1", "Ja."))], ids=["silent", "answered"])
async def test_a_stream_ends_with_the_server_and_read_items_are_answered(
    start_server: StartServer, messages: tuple[pb.TranslateStreamRequest, ...]
) -> None:
    running = await start_server()
    call = running.stub.TranslateStream(held(*messages))
    await running.until("grpc_server_started_total", grpc_method="TranslateStream")
    if messages:
        assert (await call.read()).translation.text == "Ja."
    assert await running.server.drain()
    assert await call.code() is grpc.StatusCode.UNAVAILABLE
    assert "shutting down" in await call.details()


@pytest.mark.parametrize("num_messages", [0, 1, 3])
async def test_an_idle_stream_is_ended(start_server: StartServer, num_messages: int) -> None:
    running = await start_server(limits=RequestLimits(max_stream_idle_seconds=0.3, max_calls=1))
    messages = [CONFIG, item("1", "Ja."), item("2", "Nein.")][:num_messages]
    received: list[object] = []
    error = await read_to_the_end(running.stub.TranslateStream(held(*messages)), received)
    assert len(received) == max(0, num_messages - 1)
    assert error.code() is grpc.StatusCode.ABORTED
    assert "--max-stream-idle-seconds" in error.details()
    # Its place is free again.
    await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], model="de-en"))


async def test_a_stream_whose_answers_nobody_reads_is_idle() -> None:
    async def write(response: pb.TranslateStreamResponse) -> None:
        await asyncio.Event().wait()

    messages = ended(*(item(str(number), "Ja.") for number in range(9)))
    async with asyncio.timeout(10):
        with pytest.raises(IdleStreamError):
            await run_stream(messages, write, max_items=2, max_idle_seconds=0.1)


async def test_a_stream_is_not_idle_while_items_are_under_way_or_come() -> None:
    written: list[str] = []

    async def answer(item: pb.TranslateStreamItem) -> pb.TranslateStreamResponse:
        await asyncio.sleep(0.5)
        return await echo(item)

    async def write(response: pb.TranslateStreamResponse) -> None:
        written.append(response.id)

    async def messages() -> AsyncIterator[pb.TranslateStreamRequest]:
        for number in range(4):
            await asyncio.sleep(0.12)
            yield item(str(number), "Ja.")

    await run_stream(messages(), write, answer, max_idle_seconds=0.4)
    assert sorted(written) == ["0", "1", "2", "3"]


async def test_items_wait_for_room_in_the_queue(start_server: StartServer, slow_models: Path) -> None:
    engine, limits = replace(CPU, max_queue=2, max_rows=4), RequestLimits(max_beam_size=4)
    running = await start_server(models=slow_models, engine=engine, limits=limits)
    responses = await answers(running, CONFIG, *(item(str(number), "wort") for number in range(12)))
    assert [response.error.message for response in responses.values()] == [""] * 12
    assert running.metric("dragoman_requests_total", outcome="RESOURCE_EXHAUSTED") == 0


async def test_an_item_that_was_refused_is_submitted_again_when_the_queue_moves(
    running: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = EnginePool.submit
    submitted: list[int] = []

    def refused_once(engine: EnginePool, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        submitted.append(len(sentences))
        if len(submitted) == 1:
            raise QueueFullError(num_sentences=1, num_waiting=9, max_queue=9)
        return submit(engine, sentences)

    monkeypatch.setattr(EnginePool, "submit", refused_once)
    waiting = asyncio.create_task(answers(running, CONFIG, item("1", "Ja.")))
    await until(lambda: submitted)
    # Nobody looks by themselves.
    await asyncio.sleep(0.1)
    assert submitted == [1]
    await running.stub.Translate(pb.TranslateRequest(model="de-en", texts=["Nein."]))
    assert (await waiting)["1"].translation.text == "Ja."
    assert submitted == [1, 1, 1]


async def test_small_items_do_not_pass_over_a_large_one(start_server: StartServer, slow_models: Path) -> None:
    engine = replace(CPU, max_queue=4, max_rows=4)
    limits = RequestLimits(max_beam_size=4, max_stream_items=30)
    running = await start_server(models=slow_models, engine=engine, limits=limits)
    received: list[str] = []

    async def read_many() -> None:
        many = [item(str(number), "wort") for number in range(60)]
        async for response in running.stub.TranslateStream(iter([CONFIG, *many])):
            received.append(response.id)

    reading = asyncio.create_task(read_many())
    await until(lambda: len(received) >= 3)
    # As many sentences as bulk's share of the queue holds: with one other waiting they don't fit.
    responses = await answers(running, CONFIG, item("large", "Eins. Zwei. Drei."))
    assert responses["large"].translation.text == "Eins. Zwei. Drei."
    assert len(received) < 60
    await reading
    assert len(received) == 60


async def test_the_wait_for_room_is_told(start_server: StartServer, slow_models: Path) -> None:
    engine, limits = replace(CPU, max_queue=1, max_rows=1), RequestLimits(max_beam_size=1)
    running = await start_server(models=slow_models, engine=engine, limits=limits)
    config = pb.TranslateStreamRequest(config={"model": "de-en", "options": {"beam_size": 1}})
    found = await answers(running, config, *[item(str(number), "wort") for number in range(12)])
    timings = [answer.translation.timings for answer in found.values()]
    waits = [timing.queue.ToNanoseconds() / 1e9 for timing in timings]
    # They are decoded one by one and one is in the queue: the last has waited, outside, while others were.
    decoded = sorted(timing.decode.ToNanoseconds() / 1e9 for timing in timings)
    assert max(waits) >= sum(decoded[:9])
    told = running.metric("dragoman_queue_seconds_sum", priority="bulk")
    assert told == pytest.approx(sum(waits), rel=1e-3)


async def test_an_item_waits_until_its_deadline(start_server: StartServer, slow_models: Path) -> None:
    engine, limits = replace(CPU, max_queue=40, max_rows=4), RequestLimits(max_beam_size=4)
    running = await start_server(models=slow_models, engine=engine, limits=limits)
    full = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 40, model="de-en"))
    await running.until("dragoman_queue_sentences", 38)
    crowd = [item(str(number), "wort. " * 20) for number in range(3)]
    error = await read_to_the_end(running.stub.TranslateStream(iter([CONFIG, *crowd]), timeout=1), [])
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    full.cancel()
    await running.until("dragoman_requests_total", 3, outcome="DEADLINE_EXCEEDED")


class Item:
    """As of the API, but one that a weak reference can watch."""

    id = "1"
    text = "Ja."


async def test_an_item_is_not_kept_while_its_answer_waits_for_its_reader() -> None:
    kept: list[weakref.ref[Item]] = []

    async def write(response: pb.TranslateStreamResponse) -> None:
        await asyncio.Event().wait()

    async def messages() -> AsyncIterator[Any]:
        for _ in range(3):
            item = Item()
            kept.append(weakref.ref(item))
            message = SimpleNamespace(item=item, WhichOneof=lambda _: "item")
            del item
            yield message
            del message
        # The stream stays open.
        await asyncio.Event().wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run_stream(messages(), write))
        await until(lambda: len(kept) >= 3 and not any(item() for item in kept))
        running.cancel()


async def test_a_stream_ends_within_a_message_too(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models, limits=RequestLimits(max_stream_items=2))
    items = [item(str(number), "wort wort") for number in range(9)]
    call = running.stub.TranslateStream(iter([CONFIG, joined(*items)]))
    received: list[object] = []
    reading = asyncio.create_task(read_to_the_end(call, received))
    await until(lambda: received)
    assert await running.server.drain()
    assert (await reading).code() is grpc.StatusCode.UNAVAILABLE
    # What was begun is answered, and the others are for the next server.
    assert 1 < len(received) < 9

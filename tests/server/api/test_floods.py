"""What comes in masses, by mistake or by intent: calls, pings, connections."""

import asyncio
import contextlib
import resource
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from grpc_status.rpc_status import from_call
from tests.server.conftest import RunningServer, StartProcess, StartServer
from tests.server.wire import opening, ping_frame, read_frames

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc
from dragoman_server.api.grpc_options import raise_limit, room_for_connections
from dragoman_server.config import RequestLimits

PING, GO_AWAY = 6, 7
ACKNOWLEDGED = 1


async def test_a_burst_of_calls_is_answered_or_told_when_to_come_again(start_server: StartServer) -> None:
    """gRPC itself would cancel those that wait for the event loop, beyond the first thousand."""
    running = await start_server(limits=RequestLimits(max_calls=100))
    request = pb.TranslateRequest(texts=["Ja."], source_language="de", target_language="en")
    outcomes: Counter[tuple[grpc.StatusCode, bool]] = Counter()

    async def call() -> None:
        try:
            await running.stub.Translate(request)
            outcomes[grpc.StatusCode.OK, False] += 1
        except grpc.aio.AioRpcError as error:
            status = from_call(error)
            retry = status is not None and any(each.Is(RetryInfo.DESCRIPTOR) for each in status.details)
            outcomes[error.code(), retry] += 1

    await asyncio.gather(*[call() for _ in range(1500)])
    assert set(outcomes) <= {(grpc.StatusCode.OK, False), (grpc.StatusCode.RESOURCE_EXHAUSTED, True)}
    await running.calls_are_counted()
    assert running.metric("grpc_server_handled_total", grpc_method="Translate") == 1500


async def test_a_client_that_pings_often_is_not_hung_up_on(running: RunningServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port)
    writer.write(opening() + ping_frame(0))
    num_answered = 0
    async with asyncio.timeout(30):
        async for kind, flags, payload in read_frames(reader):
            assert kind != GO_AWAY, payload
            if kind == PING and flags == ACKNOWLEDGED:
                num_answered += 1
                if num_answered == 50:
                    break
                writer.write(ping_frame(num_answered))
    assert num_answered == 50
    writer.close()
    await writer.wait_closed()


async def test_a_flood_of_pings_is_hung_up_on(running: RunningServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port)
    writer.write(opening() + b"".join(map(ping_frame, range(5000))))
    # Ends when the server hangs up.
    async with asyncio.timeout(30):
        async for _ in read_frames(reader):
            pass
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_connections_beyond_their_number_are_closed(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_connections=3))
    connections = [await asyncio.open_connection("127.0.0.1", running.server.port) for _ in range(4)]
    try:
        for _, writer in connections:
            writer.write(opening())
        async with asyncio.timeout(30):
            heard = [await _hears(reader) for reader, _ in connections]
        assert heard == [True] * 3 + [False]
        assert running.metric("dragoman_serving") == 1
    finally:
        for _, writer in connections:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
    # Whoever leaves makes room.
    async with asyncio.timeout(30):
        await running.stub.ListModels(pb.ListModelsRequest(), wait_for_ready=True)


async def test_a_connection_that_is_old_is_replaced_and_no_call_is_harmed(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_connection_age_seconds=0.2))
    begin = asyncio.Event()

    async def send() -> AsyncIterator[pb.TranslateStreamRequest]:
        settings = pb.TranslateStreamConfig(source_language="de", target_language="en")
        yield pb.TranslateStreamRequest(config=settings)
        yield pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id="early", text="Ja."))
        await begin.wait()
        yield pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id="late", text="Ja."))

    async with grpc.aio.insecure_channel(f"127.0.0.1:{running.server.port}") as channel:
        stub: pb_grpc.TranslationServiceAsyncStub = pb_grpc.TranslationServiceStub(channel)
        stream = stub.TranslateStream(send())
        assert (await stream.read()).id == "early"  # type: ignore[union-attr]
        async with asyncio.timeout(30):
            state = channel.get_state()
            while state is grpc.ChannelConnectivity.READY:
                await channel.wait_for_state_change(state)
                state = channel.get_state()
        for _ in range(20):
            await stub.ListModels(pb.ListModelsRequest())
        begin.set()
        assert (await stream.read()).id == "late"  # type: ignore[union-attr]
        assert await stream.read() is grpc.aio.EOF


async def _hears(reader: asyncio.StreamReader) -> bool:
    """Whether the other end says anything before it hangs up."""
    try:
        return bool(await reader.read(1))
    except ConnectionError:
        return False


NUM_FIELDS = 150_000
FLOODS = {
    "Translate": pb.TranslateRequest(texts=[""] * NUM_FIELDS),
    "Translate, nested": pb.TranslateRequest(protection=pb.Protection(terms=[pb.Term()] * NUM_FIELDS)),
    "AlignTexts": pb.AlignTextsRequest(pairs=[pb.TextPair()] * NUM_FIELDS),
    "DetectLanguage": pb.DetectLanguageRequest(texts=[""] * NUM_FIELDS),
    "TranslateStream": pb.TranslateStreamRequest(
        items=pb.TranslateStreamItems(items=[pb.TranslateStreamItem()] * NUM_FIELDS)
    ),
}


async def test_a_message_of_too_many_fields_is_refused_at_once(running: RunningServer) -> None:
    for flood, message in FLOODS.items():
        method = running.stub.__dict__[flood.partition(",")[0]]
        answer = method(iter([message])).read() if flood == "TranslateStream" else method(message)
        with pytest.raises(grpc.aio.AioRpcError, match="at most 100000 fields") as refused:
            await answer
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT, flood


def test_messages_of_empty_texts_take_little_memory(start_process: StartProcess, models: Path) -> None:
    server = start_process(models)
    message, num_calls = b"\n\0" * 1_900_000, 12
    with grpc.insecure_channel(server.address) as channel:
        before = peak_bytes(server.process.pid)
        translate = channel.unary_unary("/dragoman.v1.TranslationService/Translate")
        for call in [translate.future(message) for _ in range(num_calls)]:
            assert call.exception().code() is grpc.StatusCode.INVALID_ARGUMENT
    assert peak_bytes(server.process.pid) - before < 4 * num_calls * len(message)


def peak_bytes(pid: int) -> int:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return 1024 * int(status["VmHWM"].split()[0])


@pytest.fixture
def own_limit() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("own_limit")
def test_a_server_takes_all_descriptors_and_leaves_some_for_files_and_metrics() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for soft, room in ((1024, 768), (400, 200)):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert room_for_connections(10_000) == room
        assert room_for_connections(10) == 10
    raise_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)

"""Connections to a server that can be held up, or that never read."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count


@asynccontextmanager
async def wire_to(server_port: int, *, both_ways: bool = False) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A port that leads to the server's; what the server says passes while the event is set.

    With `both_ways` what it is told is held up too. At the end all that was connected has been closed.
    """
    passes, always = asyncio.Event(), asyncio.Event()
    passes.set()
    always.set()
    connections: list[asyncio.Task[object]] = []

    async def forward(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event
    ) -> None:
        while data := await reader.read(4096):
            await may_pass.wait()
            writer.write(data)
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", server_port)
        task = asyncio.current_task()
        assert task is not None
        connections.append(task)
        await asyncio.gather(
            forward(reader, there_writer, passes if both_ways else always),
            forward(there_reader, writer, passes),
        )
        await asyncio.gather(writer.wait_closed(), there_writer.wait_closed())

    async with await asyncio.start_server(connect, "127.0.0.1", 0) as proxy:
        yield proxy.sockets[0].getsockname()[1], passes
        await asyncio.wait(connections)


@asynccontextmanager
async def never_reading(server_port: int) -> AsyncIterator[Callable[[str, bytes], None]]:
    """A caller that begins calls, each by its path and message, and lets the server send no answer."""
    _, writer = await asyncio.open_connection("127.0.0.1", server_port)
    # A stream's window (RFC 9113, section 6.5.2) has 0 bytes.
    writer.write(opening(settings=struct.pack(">HI", 4, 0)))
    streams = count(1, 2)

    def begin(path: str, message: bytes) -> None:
        writer.write(call_frames(next(streams), path, message))

    yield begin
    writer.close()
    await writer.wait_closed()


def opening(settings: bytes = b"") -> bytes:
    """What a connection of HTTP/2 (RFC 9113) begins with."""
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, settings)


def call_frames(
    stream: int, path: str, message: bytes, metadata: Mapping[bytes, bytes] | None = None
) -> bytes:
    """A whole call; each part of its metadata has less than 127 bytes."""
    headers = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": path.encode(),
        b":authority": b"localhost",
        b"te": b"trailers",
        b"content-type": b"application/grpc",
        **(metadata or {}),
    }
    # Each literal, without indexing: RFC 7541, section 6.2.2.
    block = b"".join(
        b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in headers.items()
    )
    body = struct.pack(">BI", 0, len(message)) + message
    return _frame(1, 4, stream, block) + _frame(0, 1, stream, body)


def ping_frame(number: int) -> bytes:
    """Asks whether the other end is there: RFC 9113, section 6.7."""
    return _frame(6, 0, 0, number.to_bytes(8, "big"))


def go_away_frame(debug: bytes) -> bytes:
    """Ends a connection because of an error, and says why: RFC 9113, section 6.8."""
    return _frame(7, 0, 0, struct.pack(">II", 0, 2) + debug)


async def read_frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, int, bytes]]:
    """Kind, flags and payload of each, until the other end hangs up."""
    while True:
        try:
            head = await reader.readexactly(9)
            payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        yield head[3], head[4], payload


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

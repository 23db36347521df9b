"""Connections to a server that can be held up, or that never read."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
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
    # Settings (RFC 9113, section 6.5): the window of a stream has 0 bytes.
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, struct.pack(">HI", 4, 0)))
    streams = count(1, 2)

    def begin(path: str, message: bytes) -> None:
        headers = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": "localhost",
            "te": "trailers",
            "content-type": "application/grpc",
        }
        # Each a literal (RFC 7541, section 6.2.2), shorter than 127 bytes.
        block = b"".join(
            bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
            for name, value in headers.items()
        )
        stream = next(streams)
        writer.write(_frame(1, 4, stream, block))
        writer.write(_frame(0, 1, stream, struct.pack(">BI", 0, len(message)) + message))

    yield begin
    writer.close()
    await writer.wait_closed()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

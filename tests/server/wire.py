"""A connection to a server that can be held up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


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

"""Load on an HTTP port, from a process of its own: idle connections, and requests that are refused."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

_CONNECTIONS = 8
"""Connections that requests go through, in turn."""
_REFUSED = (
    ("POST /translate", "{ this is no JSON"),
    ("POST /translate", json.dumps({"q": "Hallo", "source": "de", "target": "tlh"})),
    ("POST /translate", json.dumps({"source": "de", "target": "en"})),
    ("POST /v2/translate", json.dumps({"text": ["Hallo"], "target_lang": "XX"})),
    ("POST /v1/translate", json.dumps({"texts": "Hallo"})),
    ("GET /nowhere", ""),
)


async def put_load(port: int, *, idle: int, per_second: float) -> None:
    """Keeps `idle` connections open and sends so many refused requests a second until standard input ends.

    Prints "ready" when it begins, and at the end how many requests were refused in how many seconds. Raises
    where one was not.
    """
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(idle)]
    print("ready", flush=True)
    ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.readline))
    requests, begun = cycle(_REFUSED), time.monotonic()
    idling = asyncio.gather(*(_stay_idle(port, *connection, ended) for connection in connections))
    numbers = await asyncio.gather(
        *(_send(port, requests, per_second / _CONNECTIONS, ended) for _ in range(_CONNECTIONS))
    )
    seconds = time.monotonic() - begun
    await idling
    print(json.dumps({"requests": sum(numbers), "seconds": seconds}))


async def _stay_idle(
    port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ended: "asyncio.Future[str]"
) -> None:
    """Another connection whenever the server has had enough of one that sends nothing."""
    while True:
        closed = asyncio.ensure_future(reader.read())
        either: tuple[asyncio.Future[Any], ...] = (closed, ended)
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        writer.close()
        # Aborted, as a rule.
        await asyncio.gather(closed, return_exceptions=True)
        if ended.done():
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", port)


async def _send(
    port: int, requests: Iterator[tuple[str, str]], per_second: float, ended: "asyncio.Future[str]"
) -> int:
    """How many were refused."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    loop = asyncio.get_running_loop()
    due, number = loop.time(), 0
    while not ended.done():
        head, body = next(requests)
        writer.write(
            f"{head} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        status = (await reader.readline()).split()[1]
        length = 0
        while (line := (await reader.readline()).strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await reader.readexactly(length)
        if not status.startswith(b"4"):
            raise RuntimeError(f"{head} with {body} was answered with {status.decode()} and not refused")
        number += 1
        await asyncio.sleep(max(0.0, due + number / per_second - loop.time()))
    writer.close()
    return number


if __name__ == "__main__":
    asyncio.run(put_load(int(sys.argv[1]), idle=int(sys.argv[2]), per_second=float(sys.argv[3])))

"""Documents end with their callers and in their time, and translated ones wait to be fetched."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from tests.server.calls import until
from tests.server.conftest import RunningServer, StartServer
from tests.server.web.conftest import MODELS, Web, multipart

from dragoman_server.config import RequestLimits
from dragoman_server.errors import UnwantedError
from dragoman_server.web.apis.file_calls import KeptFiles
from dragoman_server.web.exchange import Exchange


class Endless:
    """A reader of documents that goes on until it is given up, or told to end."""

    def __init__(self) -> None:
        self.num_begun = 0
        self.num_given_up = 0
        self.may_end = threading.Event()

    def open_file(
        self, file: object, options: object, *, check: Callable[[], None], **others: object
    ) -> None:
        self.num_begun += 1
        try:
            while not self.may_end.is_set():
                check()
                time.sleep(0.005)
        except UnwantedError:
            self.num_given_up += 1
            raise
        raise ZeroDivisionError


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endless]:
    endless = Endless()
    monkeypatch.setattr("dragoman_server.web.apis.file_calls.open_file", endless.open_file)
    yield endless
    endless.may_end.set()


async def upload(running: RunningServer, path: str = "/translate_file") -> bytes:
    """The head and the beginning of what comes back."""
    languages = {} if path == "/v1/translateFile" else {"source": "de", "target": "en"}
    body, _ = multipart("a.txt", b"Ja.", **languages)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.http_port)
    writer.write(
        b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body)
    )
    try:
        return await reader.readuntil(b"}")
    finally:
        writer.close()


@pytest.mark.parametrize("path", ["/translate_file", "/v1/translateFile"])
async def test_a_document_ends_in_its_time(start_server: StartServer, endless: Endless, path: str) -> None:
    running = await start_server(http_port=0, limits=RequestLimits(max_document_seconds=0.2))
    answer = await upload(running, path)
    assert b" 504 " in answer
    assert b"more than the 0.2 seconds" in answer
    assert b"cut it up" in answer
    await until(lambda: endless.num_given_up)


@pytest.mark.parametrize("path", ["/translate_file", "/v1/translateFile"])
async def test_documents_end_with_callers(start_server: StartServer, endless: Endless, path: str) -> None:
    running = await start_server(http_port=0)
    asking = asyncio.create_task(upload(running, path))
    async with asyncio.timeout(30):
        await until(lambda: endless.num_begun)
        asking.cancel()
        await until(lambda: endless.num_given_up)


async def test_documents_hold_up_nothing_and_few_wait(start_server: StartServer, endless: Endless) -> None:
    running = await start_server(http_port=0, models=MODELS)
    web = Web(f"http://127.0.0.1:{running.server.http_port}", "")
    async with asyncio.timeout(60):
        uploads = [asyncio.create_task(upload(running)) for _ in range(20)]
        refused, _ = await asyncio.wait(uploads, return_when=asyncio.FIRST_COMPLETED)
        assert b" 429 " in (answer := refused.pop().result())
        assert b"retry-after: 1\r\n" in answer
        text = "Wo ist der Bahnhof? " * 500
        assert (await asyncio.to_thread(web.post, "/detect", {"q": text})).status == 200
        assert (await asyncio.to_thread(web.get, "/metrics")).status == 200
        large = {"q": ["Ja."] * 5 + [" " * 20_000], "source": "auto", "target": "en"}
        assert (await asyncio.to_thread(web.post, "/translate", large)).status == 200
        endless.may_end.set()
        statuses = [(await task).split()[1] for task in uploads]
    assert (statuses.count(b"429"), statuses.count(b"500")) == (2, 18)
    assert endless.num_begun == 18


def test_no_thread_at_work_keeps_a_process_from_its_end() -> None:
    program = (
        "import time; from dragoman_server.turns import FairThreads; "
        "FairThreads(1, 'test').submit('', lambda: time.sleep(600)); time.sleep(0.2)"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)


async def status(files: KeptFiles, path: str) -> int:
    request = SimpleNamespace(path_params={"key": path.removeprefix("download_file/")})
    return (await files.download(cast(Exchange, SimpleNamespace(request=request)))).status_code


async def test_files_make_room_for_younger_ones() -> None:
    files = KeptFiles(RequestLimits(max_kept_file_bytes=10))
    first, second, third = (files.keep(f"{number}.txt", bytes(size)) for number, size in enumerate((6, 4, 1)))
    assert [await status(files, path) for path in (first, second, third)] == [404, 200, 200]
    large = files.keep("large.txt", bytes(100))
    assert [await status(files, path) for path in (second, third, large)] == [404, 404, 200]


async def test_a_file_can_be_fetched_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    files = KeptFiles(RequestLimits(max_kept_file_seconds=60))
    path, now = files.keep("a.txt", b"a"), time.monotonic()
    for later, expected in ((59, 200), (61, 404)):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        assert await status(files, path) == expected

"""A real server with the shipped model and a door over HTTP, in a thread of its own; one for each module."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.server.conftest import CPU

from dragoman_server.config import ServerConfig
from dragoman_server.server import Server

MODELS = Path(__file__).parents[3] / "models"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Web:
    url: str
    grpc_address: str

    def get(self, path: str, **headers: str) -> Answer:
        return ask(self.url + path, headers=headers)

    def post(self, path: str, value: object, **headers: str) -> Answer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return ask(self.url + path, body, {"Content-Type": "application/json", **headers})

    def upload(self, path: str, name: str, content: bytes, **fields: str) -> Answer:
        body = b"".join(
            b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (key.encode(), value.encode())
            for key, value in fields.items()
        )
        body += (
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n'
            b"Content-Type: application/octet-stream\r\n\r\n%s\r\n--x--\r\n" % (name.encode(), content)
        )
        return ask(self.url + path, body, {"Content-Type": "multipart/form-data; boundary=x"})


def ask(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    try:
        with urlopen(Request(url, body, dict(headers or {})), timeout=60) as response:
            return Answer(response.status, response.headers, response.read())
    except HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


@pytest.fixture(scope="module")
def glossaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glossaries")
    (folder / "house.tsv").write_text("de\ten\nHund\thound\n")
    return folder


@contextmanager
def serving(**config: Any) -> Iterator[Web]:
    """A server as the fields of ServerConfig say."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Server:
        server = Server(ServerConfig(port=0, metrics_port=0, http_port=0, **config))
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield Web(f"http://127.0.0.1:{server.http_port}", f"localhost:{server.port}")
    finally:
        asyncio.run_coroutine_threadsafe(server.drain(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def web(glossaries: Path) -> Iterator[Web]:
    with serving(models=MODELS, glossaries=glossaries, engine=CPU) as web:
        yield web

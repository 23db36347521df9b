"""A real server on loopback, in this process, over a real bundle whose translations are known beforehand."""

import asyncio
import socket
import socketserver
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
import pytest
from dragoman_bundle import Bundle, open_bundle
from prometheus_client.parser import text_string_to_metric_families
from tests.server.access import ADA, BOB, Certified, certify
from tests.server.copying_bundle import write_bundle
from tests.server.server_process import ServerProcess

from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.config import EngineConfig, RequestLimits, ServerConfig
from dragoman_server.server import PortError, Server
from dragoman_server.service import translating
from dragoman_server.text.passage import Passage


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """A server that takes calls, and a client of it."""

    server: Server
    channel: grpc.aio.Channel
    stub: TranslationServiceStub
    metrics_url: str

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def num_at_work(self) -> float:
        """Sentences that wait or are decoded."""
        return sum(self.metric(f"dragoman_{where}_sentences") for where in ("queue", "running"))

    def metric(self, name: str, **labels: str) -> float:
        """A sample's value, scraped now; the sum over the samples that have these labels."""
        # All of them take long to write and to read, and some tests ask until something has happened.
        text = fetch(f"{self.metrics_url}?name[]={name}") or fetch(self.metrics_url)
        families = text_string_to_metric_families(text)
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    async def until(self, name: str, least: float = 1, **labels: str) -> None:
        """Until a metric is as large, which must be within a minute."""
        async with asyncio.timeout(60):
            while self.metric(name, **labels) < least:
                await asyncio.sleep(0.01)

    async def calls_are_counted(self) -> None:
        """Until every call has ended in the metrics: a refusal reaches its caller before them."""
        while self.metric("grpc_server_started_total") != self.metric("grpc_server_handled_total"):
            await asyncio.sleep(0.01)


def fetch(url: str) -> str:
    with urlopen(url) as response:
        return str(response.read().decode())


CPU = EngineConfig(device="cpu", threads=1)
StartServer = Callable[..., Awaitable[RunningServer]]
StartProcess = Callable[..., ServerProcess]


@pytest.fixture(scope="session", autouse=True)
def _metrics_end_at_once() -> Iterator[None]:
    """The port of the metrics looks every half second whether it is to close, and each server has one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socketserver.BaseServer.serve_forever, "__defaults__", (0.02,))
        yield


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with de-en/1, which copies."""
    folder = tmp_path_factory.mktemp("models")
    write_bundle(folder)
    return folder


@pytest.fixture(scope="session")
def slow_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, but a step takes tens of milliseconds."""
    folder = tmp_path_factory.mktemp("slow_models")
    write_bundle(folder, slowness=700)
    return folder


@pytest.fixture(scope="session")
def bundle(models: Path) -> Bundle:
    return open_bundle(models / "de-en" / "1")


@pytest.fixture
async def start_server(models: Path) -> AsyncIterator[StartServer]:
    """Starts a server of `models`, or as the fields of ServerConfig that are given say."""
    async with AsyncExitStack() as stack:

        async def start(**config: object) -> RunningServer:
            defaults = {"models": models, "engine": CPU, "drain_seconds": 5.0}
            for remaining in reversed(range(5)):
                metrics_port = free_port()
                server = Server(ServerConfig(port=0, metrics_port=metrics_port, **(defaults | config)))
                try:
                    await server.start()
                    break
                except PortError:
                    # Somebody else took it in between.
                    if not remaining:
                        raise
            stack.push_async_callback(server.drain)
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"localhost:{server.port}"))
            return RunningServer(
                server=server,
                channel=channel,
                stub=TranslationServiceStub(channel),
                metrics_url=f"http://127.0.0.1:{metrics_port}/metrics",
            )

        yield start


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are cut and tokenized from now on."""
    texts: list[str] = []
    prepare = translating.prepare

    def recorded(text: str, *arguments: Any) -> Passage:
        texts.append(text)
        return prepare(text, *arguments)

    monkeypatch.setattr(translating, "prepare", recorded)
    return texts


@pytest.fixture
async def running(start_server: StartServer) -> RunningServer:
    """A server with default limits, but small enough to reach."""
    return await start_server(limits=RequestLimits(max_texts=20, max_text_characters=500))


@pytest.fixture
def start_process() -> Iterator[StartProcess]:
    """Starts servers of models with the options given, and variables of the environment besides."""
    with ExitStack() as stack:

        def start(
            models: Path, *options: object, environment: Mapping[str, str] | None = None
        ) -> ServerProcess:
            return stack.enter_context(ServerProcess(models, *options, environment=environment))

        yield start


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    return certify(tmp_path, "127.0.0.1")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# who calls\n\nada {ADA}\nbob\t{BOB}\n")
    path.chmod(0o600)
    return path

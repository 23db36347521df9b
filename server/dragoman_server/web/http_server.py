"""The server over HTTP: its port, connections and certificate. Beside gRPC, in the same event loop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn
from prometheus_client import CollectorRegistry

from dragoman_server.certificate import Certificate
from dragoman_server.service.core import ServiceCore
from dragoman_server.web.app import make_app
from dragoman_server.web.connections import KEEP_ALIVE_SECONDS, Connections, WholeRequests
from dragoman_server.web.metrics import HttpMetrics
from dragoman_server.web.middleware import with_middleware

logger = logging.getLogger(__name__)

_STARTED_SECONDS = 0.005


class HttpServer:
    """Listens once it is opened, and answers until it is closed."""

    def __init__(
        self,
        core: ServiceCore,
        *,
        registry: CollectorRegistry,
        is_ready: Callable[[], bool],
        cors_origins: Sequence[str],
        trusted_proxies: Sequence[str],
    ) -> None:
        """`registry` gets its metrics, and shows all at /metrics; `is_ready`: whether calls are taken now.

        `cors_origins` and `trusted_proxies` are as of `with_middleware`.
        """
        self._metrics = HttpMetrics(registry)
        app = make_app(core, self._metrics, registry=registry, is_ready=is_ready)
        app = with_middleware(app, cors_origins=cors_origins, trusted_proxies=trusted_proxies)
        self._app = WholeRequests(app)
        self._max_connections = core.limits.max_http_connections
        self._server: _Uvicorn | None = None
        self._connections: Connections | None = None
        self._serving: asyncio.Task[None] | None = None

    async def open(self, host: str, port: int, certificate: Certificate | None) -> int:
        """Listens, over TLS with a certificate, and returns the port. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=2048)
        config = uvicorn.Config(
            self._app,
            ws="none",
            lifespan="off",
            log_config=None,
            # Whoever sends no HTTP would fill the log.
            log_level=logging.ERROR,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        self._server = _Uvicorn(config)
        # Connections are accepted here, where they count before uvicorn knows of them.
        self._serving = asyncio.create_task(self._server.serve(sockets=[]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(_STARTED_SECONDS)
        if self._serving.done():
            await self._serving
        self._connections = Connections(
            self._server,
            listening=listening,
            certificate=certificate,
            max_connections=self._max_connections,
            metrics=self._metrics,
        )
        return int(listening.getsockname()[1])

    async def close(self) -> None:
        """Answers no more, and gives what is being sent a second."""
        if self._server is None or self._serving is None:
            return
        if self._connections is not None:
            await self._connections.stop_accepting()
        self._server.should_exit = True
        await asyncio.wait({self._serving})
        self._server = None
        if self._connections is not None:
            await self._connections.close()


class _Uvicorn(uvicorn.Server):
    """Leaves the signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

"""The server over HTTP: its port, certificate, connections and layers. Beside gRPC, in one event loop."""

import asyncio
import contextlib
import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from dragoman_server.certificate import Certificate
from dragoman_server.metrics.callers import HttpMetrics
from dragoman_server.service.call import TRACE_RESPONSE
from dragoman_server.service.core import ServiceCore
from dragoman_server.web.app import make_app
from dragoman_server.web.connections import KEEP_ALIVE_SECONDS, Connections, WholeRequests
from dragoman_server.web.exchange import ID_HEADER, TIMEOUT_HEADER

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


_HOST = re.compile(rb"[\w.:\[\]-]{1,255}")


def with_middleware(app: ASGIApp, *, cors_origins: Sequence[str], trusted_proxies: Sequence[str]) -> ASGIApp:
    """The application as it is asked by these pages and through these proxies."""
    if trusted_proxies:
        # uvicorn's own types of ASGI are written otherwise.
        behind = ProxyHeadersMiddleware(app, trusted_hosts=list(trusted_proxies))  # type: ignore[arg-type]
        app = ForwardedHost(behind, trusted_proxies)  # type: ignore[arg-type]
    if cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", ID_HEADER, TIMEOUT_HEADER, "traceparent"],
            expose_headers=[ID_HEADER, "Retry-After", TRACE_RESPONSE],
        )
    return app


class ForwardedHost:
    """Takes the host that a caller asked for from X-Forwarded-Host, where a trusted proxy says so.

    uvicorn does the same with the scheme and the caller's address.
    """

    def __init__(self, app: ASGIApp, trusted_proxies: Sequence[str]) -> None:
        self._app = app
        self._networks = [ipaddress.ip_network(network) for network in trusted_proxies]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["client"] and self._trusts(scope["client"][0]):
            headers = scope["headers"]
            # The last proxy's own word stands last.
            forwarded = [value for name, value in headers if name == b"x-forwarded-host"]
            host = forwarded[-1].rpartition(b",")[2].strip() if forwarded else b""
            if _HOST.fullmatch(host):
                remaining = [(name, value) for name, value in headers if name != b"host"]
                scope["headers"] = [*remaining, (b"host", host)]
        await self._app(scope, receive, send)

    def _trusts(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)

"""Probes for operators: whether the server lives, whether it takes calls, its metrics."""

import asyncio
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from dragoman_server.quoting import quote
from dragoman_server.web.endpoint import Api, Handle
from dragoman_server.web.exchange import Exchange

API = Api(name="probe")
OPEN_API = Api(name="probe", is_open=True)


async def healthz(exchange: Exchange) -> Response:
    """GET /healthz: the process answers."""
    return PlainTextResponse("ok\n")


def readyz(is_ready: Callable[[], bool]) -> Handle:
    """GET /readyz: 200 while calls are taken, 503 while models load and while it drains."""

    async def handle(exchange: Exchange) -> Response:
        return PlainTextResponse("ok\n") if is_ready() else PlainTextResponse("not ready\n", 503)

    return handle


def metrics(registry: CollectorRegistry) -> Handle:
    """GET /metrics, of everything that the server measures."""

    async def handle(exchange: Exchange) -> Response:
        # It reads files of the system, for each of the server's processes.
        content = await asyncio.to_thread(generate_latest, registry)
        return Response(content, media_type=CONTENT_TYPE_LATEST)

    return handle


async def unknown(exchange: Exchange) -> Response:
    """The answer for any other path."""
    path = exchange.request.url.path
    error = f"there is nothing at {quote(path)}; docs/guide/http.md has what there is"
    return JSONResponse({"error": error}, 404)

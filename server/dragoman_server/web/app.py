"""The routes over HTTP, and the probes for operators: whether the server lives, takes calls, its metrics."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman_server.errors import MethodError, quote
from dragoman_server.metrics.callers import HttpMetrics
from dragoman_server.service.core import ServiceCore
from dragoman_server.web.apis import contract, deepl, libretranslate, page
from dragoman_server.web.apis.file_calls import FileCalls
from dragoman_server.web.endpoint import Api, Endpoint, Handle
from dragoman_server.web.exchange import Exchange

_PROBE, _OPEN_PROBE = Api(name="probe"), Api(name="probe", is_open=True)


class _Route(Route):
    """A route that refuses other methods as its own API does; starlette's does that in plain text."""

    def __init__(self, *arguments: Any, refusing: Endpoint, methods: list[str]) -> None:
        super().__init__(*arguments, methods=methods)
        self._refusing = refusing

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.app if scope["method"] in (self.methods or ()) else self._refusing)(scope, receive, send)


def make_app(
    core: ServiceCore, metrics: HttpMetrics, *, registry: CollectorRegistry, is_ready: Callable[[], bool]
) -> ASGIApp:
    """All routes; `is_ready` says whether calls are taken now."""

    def endpoint(handle: Handle, api: Api, name: str, *, has_deadline: bool = True) -> Endpoint:
        return Endpoint(name, handle, api, core, metrics, has_deadline)

    def route(
        method: str, path: str, handle: Handle, api: Api, name: str, *, has_deadline: bool = True
    ) -> Route:
        async def refuse(exchange: Exchange) -> Response:
            response = api.write_error(MethodError(exchange.request.method, [method]))
            response.headers["Allow"] = method
            return response

        answering = endpoint(handle, api, name, has_deadline=has_deadline)
        return _Route(path, answering, methods=[method], refusing=endpoint(refuse, api, name))

    get, post = partial(route, "GET"), partial(route, "POST")

    async def healthz(exchange: Exchange) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(exchange: Exchange) -> Response:
        return PlainTextResponse("ok\n") if is_ready() else PlainTextResponse("not ready\n", 503)

    async def all_metrics(exchange: Exchange) -> Response:
        # It reads files of the system, for each of the server's processes.
        content = await asyncio.to_thread(generate_latest, registry)
        return Response(content, media_type=CONTENT_TYPE_LATEST)

    async def unknown(exchange: Exchange) -> Response:
        path = exchange.request.url.path
        error = f"there is nothing at {quote(path)}; docs/guide/http.md has what there is"
        return JSONResponse({"error": error}, 404)

    lt, v1, v2, kept = libretranslate, contract, deepl, FileCalls(core.limits)
    routes = [
        post("/translate", lt.translate, lt.API, "libretranslate.translate"),
        post("/detect", lt.detect, lt.API, "libretranslate.detect"),
        get("/languages", lt.languages, lt.OPEN_API, "libretranslate.languages"),
        get("/health", lt.health(is_ready), lt.OPEN_API, "libretranslate.health"),
        get("/spec", page.openapi, lt.OPEN_API, "libretranslate.spec"),
        get("/frontend/settings", lt.settings, lt.OPEN_API, "libretranslate.settings"),
        # A file may take as long as its caller waits.
        post(
            "/translate_file",
            kept.libretranslate,
            lt.API,
            "libretranslate.translate_file",
            has_deadline=False,
        ),
        get("/download_file/{key}", kept.download, lt.OPEN_API, "libretranslate.download_file"),
        post("/v2/translate", v2.translate, deepl.API, "deepl.translate"),
        get("/v2/translate", v2.translate, deepl.API, "deepl.translate"),
        get("/v2/languages", v2.languages, deepl.API, "deepl.languages"),
        get("/v2/usage", v2.usage, deepl.API, "deepl.usage"),
        get("/v2/glossaries", v2.glossaries, deepl.API, "deepl.glossaries"),
        get("/v2/glossaries/{id}", v2.glossary, deepl.API, "deepl.glossary"),
        get("/v2/glossaries/{id}/entries", v2.glossary_entries, deepl.API, "deepl.glossary_entries"),
        get("/v2/glossary-language-pairs", v2.glossary_language_pairs, deepl.API, "deepl.glossary_pairs"),
        Route("/v2/{rest:path}", endpoint(deepl.unsupported, deepl.API, "deepl.unsupported")),
        post("/v1/translate", v1.translate, v1.API, "v1.translate"),
        # As translators' workbenches call the first version of DeepL's API.
        get("/v1/translate", v2.translate, deepl.API, "deepl.translate"),
        post("/v1/translateStream", v1.translate_stream, v1.API, "v1.translateStream", has_deadline=False),
        post("/v1/translateFile", kept.with_progress, v1.API, "v1.translateFile", has_deadline=False),
        post("/v1/align", v1.align, v1.API, "v1.align"),
        post("/v1/detect", v1.detect, v1.API, "v1.detect"),
        get("/v1/models", v1.list_models, v1.API, "v1.models"),
        get("/v1/models/{name:path}", v1.get_model, v1.API, "v1.model"),
        get("/v1/glossaries", v1.list_glossaries, v1.API, "v1.glossaries"),
        get("/openapi.json", page.openapi, _OPEN_PROBE, "openapi"),
        get("/healthz", healthz, _OPEN_PROBE, "healthz"),
        get("/readyz", readyz, _OPEN_PROBE, "readyz"),
        get("/metrics", all_metrics, _PROBE, "metrics"),
        get("/page/settings", page.settings, _OPEN_PROBE, "page.settings"),
        *(get(path, page.file(name), _OPEN_PROBE, "page") for path, name in page.FILES.items()),
    ]
    return Router(routes, redirect_slashes=False, default=endpoint(unknown, _OPEN_PROBE, "unknown"))

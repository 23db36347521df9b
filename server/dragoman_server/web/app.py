"""The routes of the door over HTTP."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from dragoman_server.service.core import ServiceCore
from dragoman_server.web.apis import contract, deepl, libretranslate, openapi, page, probes
from dragoman_server.web.apis.file_calls import FileCalls
from dragoman_server.web.apis.files import suffixes
from dragoman_server.web.apis.kept_files import KeptFiles
from dragoman_server.web.endpoint import Api, Endpoint, Handle
from dragoman_server.web.metrics import HttpMetrics


def make_app(
    core: ServiceCore, metrics: HttpMetrics, *, registry: CollectorRegistry, is_ready: Callable[[], bool]
) -> ASGIApp:
    """All routes; `is_ready` says whether calls are taken now."""

    def endpoint(handle: Handle, api: Api, name: str, *, has_deadline: bool = True) -> Endpoint:
        return Endpoint(name, handle, api=api, core=core, metrics=metrics, has_deadline=has_deadline)

    def get(path: str, handle: Handle, api: Api, name: str) -> Route:
        return Route(path, endpoint(handle, api, name), methods=["GET"])

    def post(path: str, handle: Handle, api: Api, name: str, *, has_deadline: bool = True) -> Route:
        return Route(path, endpoint(handle, api, name, has_deadline=has_deadline), methods=["POST"])

    lt, v1, v2, files = libretranslate, contract, deepl, KeptFiles(core.limits)
    file_calls = FileCalls(files)
    routes = [
        post("/translate", lt.translate, lt.API, "libretranslate.translate"),
        post("/detect", lt.detect, lt.API, "libretranslate.detect"),
        get("/languages", lt.languages, lt.OPEN_API, "libretranslate.languages"),
        get("/frontend/settings", lt.settings(suffixes), lt.OPEN_API, "libretranslate.settings"),
        # A file may take as long as its caller waits.
        post(
            "/translate_file",
            file_calls.libretranslate,
            lt.API,
            "libretranslate.translate_file",
            has_deadline=False,
        ),
        get("/download_file/{key}", files.download, lt.OPEN_API, "libretranslate.download_file"),
        post("/v2/translate", v2.translate, deepl.API, "deepl.translate"),
        get("/v2/languages", v2.languages, deepl.API, "deepl.languages"),
        get("/v2/usage", v2.usage, deepl.API, "deepl.usage"),
        Route("/v2/{rest:path}", endpoint(deepl.unsupported, deepl.API, "deepl.unsupported")),
        post("/v1/translate", v1.translate, v1.API, "v1.translate"),
        post("/v1/translateStream", v1.translate_stream, v1.API, "v1.translateStream", has_deadline=False),
        post("/v1/translateFile", file_calls.with_progress, v1.API, "v1.translateFile", has_deadline=False),
        post("/v1/align", v1.align, v1.API, "v1.align"),
        post("/v1/detect", v1.detect, v1.API, "v1.detect"),
        get("/v1/models", v1.list_models, v1.API, "v1.models"),
        get("/v1/models/{name:path}", v1.get_model, v1.API, "v1.model"),
        get("/v1/glossaries", v1.list_glossaries, v1.API, "v1.glossaries"),
        get("/openapi.json", openapi.openapi, probes.OPEN_API, "openapi"),
        get("/healthz", probes.healthz, probes.OPEN_API, "healthz"),
        get("/readyz", probes.readyz(is_ready), probes.OPEN_API, "readyz"),
        get("/metrics", probes.metrics(registry), probes.API, "metrics"),
        get("/page/settings", page.settings, probes.OPEN_API, "page.settings"),
        *(get(path, page.file(name), probes.OPEN_API, "page") for path, name in page.FILES.items()),
    ]
    unknown = endpoint(probes.unknown, probes.OPEN_API, "unknown")
    return Router(routes, redirect_slashes=False, default=unknown)

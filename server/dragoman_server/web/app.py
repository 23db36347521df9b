"""The routes of the door over HTTP."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from dragoman_server.service.core import ServiceCore
from dragoman_server.web import libretranslate, probes
from dragoman_server.web.endpoint import Api, Endpoint, Handle
from dragoman_server.web.metrics import HttpMetrics


def make_app(
    core: ServiceCore, metrics: HttpMetrics, *, registry: CollectorRegistry, is_ready: Callable[[], bool]
) -> ASGIApp:
    """All routes; `is_ready` says whether calls are taken now."""

    def route(
        path: str, method: str, handle: Handle, api: Api, name: str, *, has_deadline: bool = True
    ) -> Route:
        endpoint = Endpoint(name, handle, api=api, core=core, metrics=metrics, has_deadline=has_deadline)
        return Route(path, endpoint, methods=[method])

    lt, probe = libretranslate, probes
    routes = [
        route("/translate", "POST", lt.translate, lt.API, "libretranslate.translate"),
        route("/detect", "POST", lt.detect, lt.API, "libretranslate.detect"),
        route("/languages", "GET", lt.languages, lt.OPEN_API, "libretranslate.languages"),
        route("/frontend/settings", "GET", lt.settings(list), lt.OPEN_API, "libretranslate.settings"),
        route("/healthz", "GET", probe.healthz, probe.OPEN_API, "healthz"),
        route("/readyz", "GET", probe.readyz(is_ready), probe.OPEN_API, "readyz"),
        route("/metrics", "GET", probe.metrics(registry), probe.API, "metrics"),
    ]
    unknown = Endpoint("unknown", probe.unknown, api=probe.OPEN_API, core=core, metrics=metrics)
    return Router(routes, redirect_slashes=False, default=unknown)

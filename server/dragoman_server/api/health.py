"""grpc.health.v1 for the server, its service and its models.

""                                      the server takes calls, and some model's are translated
"dragoman.v1.TranslationService"        the same
"dragoman.v1.model/NAME/VERSION"        that version is being served, loaded or not; NOT_SERVING where its
                                        bundle was refused, while none of its engines runs, and for a while
                                        after it could not be loaded
"dragoman.v1.model/NAME"                some version of it is

The service waits for no watcher, as grpc's own does: one who does not read would hold up every change, and
the drain.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from prometheus_client import Gauge

from dragoman_server.api.interceptors import Context
from dragoman_server.config import RequestLimits
from dragoman_server.errors import TooManyWatchesError
from dragoman_server.models.repository import Repository
from dragoman_server.service.call import host_of
from dragoman_server.service.statuses import status_of

MAX_WRITE_SECONDS = 300.0
"""How long one may take to read a status before its place is another's."""


TRANSLATION_SERVICE = "dragoman.v1.TranslationService"
MODEL_PREFIX = "dragoman.v1.model/"

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health of the server as a whole: NOT_SERVING until it is ready, and again once it drains.

    Belongs to the event loop's thread.
    """

    def __init__(self, serving: Gauge, limits: RequestLimits) -> None:
        """`serving` shows what "" says: 1 or 0. `limits` bound how many Watch calls there may be at a time:
        nobody needs a token for one."""
        self.is_serving = False
        """Whether "" is SERVING."""
        self._serving = serving
        self._limits = limits
        self._is_draining = False
        self._models: set[str] = set()
        self._watches: Counter[str] = Counter()
        self._statuses: dict[str, health_pb2.HealthCheckResponse.ServingStatus] = {}
        # Set, and replaced by another, at every change.
        self._changed = asyncio.Event()

    def loading(self) -> None:
        """The server is up and its models are not."""
        self._set("", serving=False)
        self._set(TRANSLATION_SERVICE, serving=False)

    def ready(self, repository: Repository) -> None:
        """The models are there, or their engines came or went; what was and is no more is NOT_SERVING."""
        served = _with_names(model.key for model in repository.models)
        alive = _with_names(model.key for model in repository.models if model.is_alive)
        self._models |= served | _with_names(repository.refused.keys())
        for model in self._models:
            self._set(MODEL_PREFIX + model, serving=model in alive)
        self._set(TRANSLATION_SERVICE, serving=bool(alive))
        self._set("", serving=bool(alive))

    def draining(self) -> None:
        """NOT_SERVING everywhere, from now on."""
        for service in self._statuses:
            self._set(service, serving=False)
        self._is_draining = True

    def _set(self, service: str, *, serving: bool) -> None:
        if self._is_draining:
            return
        if not service:
            self._serving.set(serving)
            self.is_serving = serving
        self._statuses[service] = _SERVING if serving else _NOT_SERVING
        self._changed.set()
        self._changed = asyncio.Event()

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        """The status; NOT_FOUND for a service that there is not."""
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=status)

    # grpc.aio takes a coroutine that writes as well as an iterator.
    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Context) -> None:
        """The status, and again when it has changed. A slow reader misses what changed back meanwhile."""
        host = host_of(context.peer())
        try:
            self._check_room(host)
        except TooManyWatchesError as error:
            await context.abort_with_status(rpc_status.to_status(status_of(error)))
        reported = None
        with self._watching(host):
            while True:
                changed = self._changed
                status = self._statuses.get(request.service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
                if status != reported:
                    try:
                        async with asyncio.timeout(MAX_WRITE_SECONDS):
                            await context.write(health_pb2.HealthCheckResponse(status=status))
                    except (TimeoutError, grpc.aio.InternalError):
                        # The reader takes nothing, or has just gone away.
                        return
                    reported = status
                await changed.wait()

    def _check_room(self, host: str) -> None:
        """Raises TooManyWatchesError."""
        in_all, per_host = self._limits.max_health_watches, self._limits.max_health_watches_per_host
        if self._watches.total() >= in_all:
            raise TooManyWatchesError(in_all, "--max-health-watches")
        if self._watches[host] >= per_host:
            raise TooManyWatchesError(per_host, "--max-health-watches-per-host")

    @contextmanager
    def _watching(self, host: str) -> Iterator[None]:
        self._watches[host] += 1
        try:
            yield
        finally:
            self._watches[host] -= 1
            if not self._watches[host]:
                del self._watches[host]


def _with_names(keys: Iterable[str]) -> set[str]:
    """ "NAME/VERSION" of each, and "NAME"."""
    return {name for key in keys for name in (key, key.partition("/")[0])}

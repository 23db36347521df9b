"""grpc.health.v1 for the server, its service and its models.

""                                      the server takes calls, and some model's are translated
"dragoman.v1.TranslationService"        the same
"dragoman.v1.model/NAME/VERSION"        that version is being served, loaded or not; NOT_SERVING where its
                                        bundle was refused, while none of its engines runs, and for a while
                                        after it could not be loaded
"dragoman.v1.model/NAME"                some version of it is
"""

from collections.abc import Iterable

from grpc_health.v1 import health_pb2
from prometheus_client import Gauge

from dragoman_server.api.health.service import HealthService
from dragoman_server.config import RequestLimits
from dragoman_server.models.repository import Repository

TRANSLATION_SERVICE = "dragoman.v1.TranslationService"
MODEL_PREFIX = "dragoman.v1.model/"

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """The health of the server as a whole: NOT_SERVING until it is ready, and again once it drains."""

    def __init__(self, serving: Gauge, limits: RequestLimits) -> None:
        """`serving` shows what "" says: 1 or 0."""
        self.service = HealthService(
            max_watches=limits.max_health_watches, max_watches_per_host=limits.max_health_watches_per_host
        )
        self._serving = serving
        self._is_draining = False
        self._is_serving = False
        self._models: set[str] = set()

    @property
    def is_serving(self) -> bool:
        """Whether "" is SERVING."""
        return self._is_serving

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
        self._is_draining = True
        self._is_serving = False
        self._serving.set(0)
        self.service.tell_all(_NOT_SERVING)

    def _set(self, service: str, *, serving: bool) -> None:
        if self._is_draining:
            return
        if not service:
            self._serving.set(serving)
            self._is_serving = serving
        self.service.tell(service, _SERVING if serving else _NOT_SERVING)


def _with_names(keys: Iterable[str]) -> set[str]:
    """ "NAME/VERSION" of each, and "NAME"."""
    return {name for key in keys for name in (key, key.partition("/")[0])}

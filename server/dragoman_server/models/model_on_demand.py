"""A model that is loaded when a request needs it, and may be unloaded when none does. Must not know gRPC.

Belongs to the event loop's thread.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from dragoman_bundle import Manifest

from dragoman_server.errors import ModelNotLoadedError
from dragoman_server.metrics.translation import ModelMetrics
from dragoman_server.models.model import Model, ServedModel
from dragoman_server.models.occupancy import Occupancy

FIRST_RETRY_SECONDS = 1.0
"""For how long requests are refused at once after a model could not be loaded, and twice as long each time
after."""
MAX_RETRY_SECONDS = 30.0
"""Longest such time."""


class _Room(Protocol):
    """What a `LoadedModels` is to one of its models."""

    def enter(self, model: "ModelOnDemand") -> Awaitable[Model]: ...

    def leave(self, model: "ModelOnDemand") -> None: ...

    def remove(self, model: "ModelOnDemand") -> Awaitable[None]: ...


class ModelOnDemand(ServedModel):
    """One of the models that take turns in memory; `loaded_models` says when."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        *,
        metrics: ModelMetrics,
        default_beam_size: int,
        room: _Room,
    ) -> None:
        """`manifest` is the one of the bundle at `path`, whose files may be damaged for all that it knows."""
        self.path = path
        self.metrics = metrics
        self.default_beam_size = default_beam_size
        self.calls = Occupancy()
        self._manifest = manifest
        self._room = room
        self._loaded: Model | None = None
        self._on_change: Callable[[], None] = lambda: None
        self._num_failures = 0
        self._retry_at = 0.0

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def loaded(self) -> Model | None:
        return self._loaded

    @property
    def is_alive(self) -> bool:
        return not self._retry_seconds() if self._loaded is None else self._loaded.is_alive

    @property
    def pids(self) -> Sequence[int]:
        return [] if self._loaded is None else self._loaded.pids

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Model]:
        model = await self._room.enter(self)
        try:
            yield model
        finally:
            self._room.leave(self)

    def watch(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        if self._loaded is not None:
            self._loaded.watch(on_change)

    async def end(self) -> None:
        await self._room.remove(self)

    def check_loadable(self) -> None:
        """Raises ModelNotLoadedError for a while after a load that failed.

        Callers that ask again and again would have it tried again and again.
        """
        if seconds := self._retry_seconds():
            raise ModelNotLoadedError(self.key, retry_seconds=seconds)

    def on_load(self, model: Model, seconds: float) -> None:
        """It took so long to load, and translates from now on."""
        self._num_failures, self._retry_at = 0, 0.0
        self._loaded = model
        model.watch(self._on_change)
        self.metrics.on_load(engine=model.engine, precision=model.precision, providers=model.providers)
        self.metrics.on_load_seconds(seconds)
        self._on_change()

    def on_unload(self) -> Model:
        """What was loaded, which is to be ended: it is not used any more."""
        model, self._loaded = self._loaded, None
        assert model is not None
        self.metrics.on_unload()
        self._on_change()
        return model

    def on_failure(self) -> float:
        """It could not be loaded; for how many seconds it is not tried again."""
        self._num_failures += 1
        seconds = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** (self._num_failures - 1))
        self._retry_at = time.monotonic() + seconds
        self.metrics.on_load_failure()
        self._on_change()
        # It may be tried again then, which is a change, too. A little later: clocks differ.
        asyncio.get_running_loop().call_later(seconds * 1.01, lambda: self._on_change())
        return seconds

    def _retry_seconds(self) -> float:
        return max(0.0, self._retry_at - time.monotonic())

"""Models of which only so many are loaded at a time: each when a request needs it, in place of another.

Owns the order in which models are loaded and unloaded, which of them are pinned, and that none is unloaded
while it is used. A model counts from the beginning of its loading to the end of its engines. All but `defer`
belongs to the event loop's thread. Must not know gRPC.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dragoman_bundle import BundleError, Manifest, open_bundle
from dragoman_bundle.bundle import look_at_bundle, read_description, source_tags

from dragoman_server.engine import DeviceUnavailableError
from dragoman_server.errors import ModelNotFoundError, ModelNotLoadedError
from dragoman_server.metrics.translation import Metrics, ModelMetrics
from dragoman_server.models.loader import ModelLoader
from dragoman_server.models.model import Model, Occupancy, ServedModel
from dragoman_server.models.repository import Repository, RepositoryError, is_same
from dragoman_server.turns import run_in_daemon_thread, wait_for

FIRST_RETRY_SECONDS = 1.0
"""Time that requests are refused after a model could not be loaded; twice as long each time after."""
MAX_RETRY_SECONDS = 30.0
"""Longest such time."""
STAY_LOADS = 4
"""A model that is always in use stays for so many times as long as it took to load: of more models in use
than there is room for each has its turn, and loading them takes a fifth of the time at most."""

logger = logging.getLogger(__name__)

K = TypeVar("K")


@dataclass(kw_only=True)
class Residency:
    """The stay of a model that is loaded; times are seconds of `time.monotonic`."""

    since: float
    """When it was there."""
    load_seconds: float
    used_at: float
    """When somebody last came or left."""
    num_inside: int = 0
    """Its users."""
    is_leaving: bool = False
    """Whether it takes nobody any more, and goes once nobody uses it."""

    @property
    def until(self) -> float:
        """When it may be chosen to leave although it is in use."""
        return self.since + STAY_LOADS * self.load_seconds


def choose_leaving(residencies: Mapping[K, Residency], now: float) -> K | None:
    """The least recently used of those that nobody uses, else the first to come of those that may leave.

    None where there is neither, at the moment. Those that are leaving are passed over.
    """
    staying = {key: residency for key, residency in residencies.items() if not residency.is_leaving}
    idle = [key for key, residency in staying.items() if not residency.num_inside]
    if idle:
        return min(idle, key=lambda key: staying[key].used_at)
    overdue = [key for key, residency in staying.items() if residency.until <= now]
    return min(overdue, key=lambda key: staying[key].since, default=None)


def next_choice(residencies: Mapping[K, Residency]) -> float | None:
    """When one that is in use may first be chosen; None where there is none but leaving ones."""
    staying = (residency.until for residency in residencies.values() if not residency.is_leaving)
    return min(staying, default=None)


class ModelOnDemand(ServedModel):
    """A model that is loaded when a request needs it, and may be unloaded when none does."""

    def __init__(
        self, path: Path, manifest: Manifest, *, metrics: ModelMetrics, beam_size: int, room: "ModelsOnDemand"
    ) -> None:
        """`manifest` is that of the bundle at `path`, whose other files nobody has checked."""
        self.path = path
        self.metrics = metrics
        self.default_beam_size = beam_size
        self.calls = Occupancy()
        self.failure: Exception | None = None
        """Why it was not loaded when that was last tried."""
        self.retry_seconds = 0.0
        """How long it was not to be tried again then."""
        self._retry_at = 0.0
        self._manifest, self._tags = manifest, source_tags(path, manifest)
        self.description = read_description(path)
        self._room = room
        self._loaded: Model | None = None
        self._on_change: Callable[[], None] = lambda: None

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def loaded(self) -> Model | None:
        return self._loaded

    @property
    def is_alive(self) -> bool:
        return not self.seconds_until_retry() if self._loaded is None else self._loaded.is_alive

    @property
    def pids(self) -> Sequence[int]:
        return [] if self._loaded is None else self._loaded.pids

    def knows(self, tag: str) -> bool:
        return tag in self._tags

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

    def seconds_until_retry(self) -> float:
        """0 where it may be loaded: callers that ask again and again must not have it tried every time."""
        return max(0.0, self._retry_at - time.monotonic())

    def on_load(self, model: Model, seconds: float) -> None:
        """It took so long to load, and translates from now on."""
        self.failure, self._retry_at = None, 0.0
        self._loaded = model
        model.watch(self._on_change)
        self.metrics.on_load(engine=model.engine, precision=model.precision, providers=model.providers)
        self.metrics.on_load_seconds(seconds)
        self._on_change()

    def on_unload(self) -> Model:
        """The model that was loaded, which is to be ended: it is not used any more."""
        model, self._loaded = self._loaded, None
        assert model is not None
        self.metrics.on_unload()
        self._on_change()
        return model

    def on_failure(self, error: Exception) -> None:
        """It could not be loaded."""
        before = 0.0 if self.failure is None else self.retry_seconds
        self.failure, self.retry_seconds = error, min(MAX_RETRY_SECONDS, 2 * before or FIRST_RETRY_SECONDS)
        self._retry_at = time.monotonic() + self.retry_seconds
        self.metrics.on_load_failure()
        self._on_change()
        # It may be tried again then, which is a change, too. A little later: clocks differ.
        asyncio.get_running_loop().call_later(self.retry_seconds * 1.01, lambda: self._on_change())


class ModelsOnDemand:
    """Room for `max_models`, of which those that are `pinned` keep theirs."""

    def __init__(
        self,
        loader: ModelLoader,
        metrics: Metrics,
        *,
        max_models: int,
        pinned: tuple[str, ...],
        max_load_seconds: float,
    ) -> None:
        """Loading is given up after `max_load_seconds`."""
        self._loader, self._metrics = loader, metrics
        self._max_models, self._max_load_seconds = max_models, max_load_seconds
        self._pinned_names = pinned
        self._pinned: frozenset[ModelOnDemand] = frozenset()
        self._residencies: dict[ModelOnDemand, Residency] = {}
        # How many wait for each, in the order in which they are loaded.
        self._wanted: Counter[ModelOnDemand] = Counter()
        self._loading: dict[ModelOnDemand, asyncio.Task[None]] = {}
        self._unloading: dict[ModelOnDemand, asyncio.Task[None]] = {}
        self._ending: set[Model] = set()
        # Set, and replaced by another, whenever something was loaded or was not.
        self._has_moved = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The processes of models that are being unloaded, which are no model's any more."""
        return [pid for model in self._ending for pid in model.pids]

    def defer(self, path: Path) -> ModelOnDemand:
        """The model of the bundle at `path`, which is not loaded. May be called in any thread.

        Raises BundleError, PrecisionUnavailableError or SentenceError, as far as they show without reading
        the bundle.
        """
        manifest = look_at_bundle(path)
        self._loader.check(path, manifest)
        metrics = ModelMetrics(self._metrics, manifest)
        beam_size = self._loader.beam_size(manifest)
        return ModelOnDemand(path, manifest, metrics=metrics, beam_size=beam_size, room=self)

    def check(self, repository: Repository) -> None:
        """Raises RepositoryError where a pinned model is missing, or where they leave no room for others."""
        num_pinned = len(self._find_pinned(repository))
        if num_pinned > self._max_models or num_pinned == self._max_models < len(repository.models):
            raise RepositoryError(
                f"{num_pinned} models are pinned, and max_loaded_models is {self._max_models}: none of the "
                "others could ever be loaded; raise --max-loaded-models, or pin fewer"
            )

    async def load_pinned(self, repository: Repository, *, shows_device: bool = False) -> None:
        """Loads those that are pinned, which stay from now on. The log says which one can't be loaded.

        With `shows_device`, DeviceUnavailableError is raised; where no model is pinned another one is loaded
        to show that a GPU that was asked for is there.
        """
        pinned = self._find_pinned(repository)
        self._pinned = frozenset(pinned)
        self._advance()
        errors = await asyncio.gather(*map(_load, pinned))
        if shows_device and not pinned and self._loader.config.device == "cuda":
            for model in repository.models:
                assert isinstance(model, ModelOnDemand)
                errors = [await _load(model)]
                if errors[0] is None or isinstance(errors[0], DeviceUnavailableError):
                    break
        for error in errors:
            if shows_device and isinstance(error, DeviceUnavailableError):
                raise error

    async def enter(self, model: ModelOnDemand) -> Model:
        """The loaded model, which stays until `leave`. The first to come is the first to get in where several
        wait for the same room. Raises ModelNotLoadedError.
        """
        if not self._takes(model):
            if seconds := model.seconds_until_retry():
                raise ModelNotLoadedError(model.key, retry_seconds=seconds) from model.failure
            await self._wait(model)
        residency = self._residencies[model]
        residency.num_inside += 1
        residency.used_at = time.monotonic()
        assert model.loaded is not None
        return model.loaded

    def leave(self, model: ModelOnDemand) -> None:
        """One who entered uses it no more."""
        residency = self._residencies[model]
        residency.num_inside -= 1
        residency.used_at = time.monotonic()
        if not residency.num_inside:
            self._advance()

    async def remove(self, model: ModelOnDemand) -> None:
        """Unloads a model that nobody uses, and returns once it has ended."""
        while task := self._loading.get(model) or self._unloading.get(model):
            await asyncio.wait({task})
        if model in self._residencies:
            await asyncio.wait({self._unload(model)})

    async def close(self) -> None:
        """Loads nothing more and ends what is loaded; whatever is unanswered fails."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for loading in self._loading.values():
            loading.cancel()
        for model in list(self._residencies):
            self._unload(model)
        if tasks := [*self._loading.values(), *self._unloading.values()]:
            await asyncio.wait(tasks)

    def _takes(self, model: ModelOnDemand) -> bool:
        return model in self._residencies and not self._residencies[model].is_leaving

    async def _wait(self, model: ModelOnDemand) -> None:
        """Returns once the model can be entered, which has to be done at once. Raises ModelNotLoadedError."""
        before = model.failure
        self._wanted[model] += 1
        self._advance()
        try:
            while not self._takes(model):
                await self._has_moved.wait()
                if model.failure is not before and model.failure is not None:
                    raise ModelNotLoadedError(model.key, retry_seconds=model.retry_seconds) from model.failure
        finally:
            self._wanted[model] -= 1
            if not self._wanted[model]:
                del self._wanted[model]
            # One that is wanted does not leave, and no more is loaded than is.
            asyncio.get_running_loop().call_soon(self._advance)

    def _advance(self) -> None:
        """Loads what there is room for, and makes room for what there is not. After every change."""
        if self._is_closed:
            return
        busy = {*self._residencies, *self._loading, *self._unloading}
        waiting = [model for model in self._wanted if model not in busy and not model.seconds_until_retry()]
        num_free = max(0, self._max_models - len(busy))
        for model in waiting[:num_free]:
            self._loading[model] = asyncio.create_task(self._load(model))
        num_leaving = sum(candidate.is_leaving for candidate in self._residencies.values())
        self._make_room(len(waiting) - num_free - num_leaving - len(self._unloading))
        for model, residency in list(self._residencies.items()):
            if residency.is_leaving and not residency.num_inside:
                self._unload(model)

    def _make_room(self, num_models: int) -> None:
        """Has so many models leave, or as many as may now and the others in time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        fixed = {*self._pinned, *filter(self._takes, self._wanted)}
        movable = {model: stay for model, stay in self._residencies.items() if model not in fixed}
        now = time.monotonic()
        for _ in range(num_models):
            leaving = choose_leaving(movable, now)
            if leaving is None:
                if (at := next_choice(movable)) is not None:
                    self._timer = asyncio.get_running_loop().call_later(max(0.0, at - now), self._advance)
                return
            movable[leaving].is_leaving = True

    async def _load(self, model: ModelOnDemand) -> None:
        began = time.monotonic()
        try:
            loaded = await self._open(model)
        except Exception as error:
            reason = str(error) or f"it took longer than {self._max_load_seconds:g} seconds"
            logger.error("model not loaded", extra={"model": model.key, "reason": reason})
            model.on_failure(error)
        else:
            now = time.monotonic()
            self._residencies[model] = Residency(since=now, load_seconds=now - began, used_at=now)
            model.on_load(loaded, now - began)
            extra = {"precision": loaded.precision, "providers": dict(loaded.providers)}
            seconds = round(now - began, 3)
            logger.info("model loaded", extra={"model": model.key, "seconds": seconds, **extra})
        finally:
            del self._loading[model]
        self._has_moved.set()
        self._has_moved = asyncio.Event()
        self._advance()

    async def _open(self, model: ModelOnDemand) -> Model:
        def load() -> Model:
            bundle = open_bundle(model.path)
            if not is_same(bundle.manifest, model.manifest):
                change = f"{model.path} has changed since the models folder was read"
                raise BundleError(f"{change}; SIGHUP has it read again")
            return self._loader.load(bundle, model.metrics)

        def end_unused(opening: "Future[Model]") -> None:
            if opening.exception() is None:
                opening.result().engine.close()

        opening = run_in_daemon_thread(load)
        try:
            return await wait_for(opening, self._max_load_seconds)
        except (asyncio.CancelledError, TimeoutError):
            opening.add_done_callback(end_unused)
            raise

    def _unload(self, model: ModelOnDemand) -> asyncio.Task[None]:
        del self._residencies[model]
        loaded = model.on_unload()

        async def end() -> None:
            try:
                await loaded.end()
            finally:
                self._ending.discard(loaded)
                del self._unloading[model]
            logger.info("model unloaded", extra={"model": model.key})
            self._advance()

        self._ending.add(loaded)
        task = self._unloading[model] = asyncio.create_task(end())
        return task

    def _find_pinned(self, repository: Repository) -> list[ModelOnDemand]:
        """Each once. Raises RepositoryError."""
        found: dict[ModelOnDemand, None] = {}
        for name in self._pinned_names:
            try:
                model = repository.by_name(name)
            except ModelNotFoundError as error:
                raise RepositoryError(f"--pinned-model {name}: {error}") from error
            assert isinstance(model, ModelOnDemand)
            found[model] = None
        return list(found)


async def _load(model: ModelOnDemand) -> BaseException | None:
    """The error that kept it from being loaded, if any."""
    try:
        async with model.use():
            return None
    except ModelNotLoadedError as error:
        return error.__cause__

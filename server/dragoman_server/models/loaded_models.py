"""The models that are loaded at a time: a bounded number, each loaded when a request needs it.

Owns the order in which models are loaded and unloaded, and that none is unloaded while it is used. A
model counts from the beginning of its loading to the end of its engines. Belongs to the event loop's thread.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future

from dragoman_server.daemon_threads import run_in_daemon_thread, wait_for
from dragoman_server.errors import ModelNotLoadedError
from dragoman_server.models.model import Model
from dragoman_server.models.model_on_demand import ModelOnDemand
from dragoman_server.models.residency import Residency, choose_leaving, next_choice

logger = logging.getLogger(__name__)


class LoadedModels:
    """Lets requests in to models, the first to come first where they wait for the same room."""

    def __init__(
        self, max_models: int, load: Callable[[ModelOnDemand], Model], *, max_load_seconds: float
    ) -> None:
        """`load` is called in threads of its own, several at a time, and given up after so long."""
        self.max_models = max_models
        self._load_model = load
        self._max_load_seconds = max_load_seconds
        self._pinned: frozenset[ModelOnDemand] = frozenset()
        self._residencies: dict[ModelOnDemand, Residency] = {}
        # In the order in which they are loaded: who waits for each.
        self._wanted: dict[ModelOnDemand, list[asyncio.Future[None]]] = {}
        self._loading: dict[ModelOnDemand, asyncio.Task[None]] = {}
        self._unloading: dict[ModelOnDemand, asyncio.Task[None]] = {}
        self._ending: set[Model] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The processes of models that are being unloaded, which are no model's any more."""
        return [pid for model in self._ending for pid in model.pids]

    def pin(self, models: Collection[ModelOnDemand]) -> None:
        """From now on none of these makes room for others, once it is loaded, and all others do."""
        self._pinned = frozenset(models)
        self._advance()

    async def enter(self, model: ModelOnDemand) -> Model:
        """What is loaded of the model, which stays until `leave`. Raises ModelNotLoadedError."""
        residency = self._residencies.get(model)
        if residency is not None and not residency.is_leaving:
            self._let_in(residency)
        else:
            model.check_loadable()
            await self._wait(model)
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
            self._unload(model)
            await asyncio.wait({self._unloading[model]})

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

    async def _wait(self, model: ModelOnDemand) -> None:
        """Until somebody has let the caller in."""
        waiter = asyncio.get_running_loop().create_future()
        self._wanted.setdefault(model, []).append(waiter)
        self._advance()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._give_up(model, waiter)
            elif waiter.exception() is None:
                # Let in just as nobody waited any more.
                self.leave(model)
            raise

    def _give_up(self, model: ModelOnDemand, waiter: "asyncio.Future[None]") -> None:
        waiters = self._wanted.get(model, [])
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._wanted.pop(model, None)
        self._advance()

    def _let_in(self, residency: Residency) -> None:
        residency.num_inside += 1
        residency.used_at = time.monotonic()

    def _advance(self) -> None:
        """Loads what there is room for, and makes room for what there is not. After every change."""
        if self._is_closed:
            return
        busy = {*self._residencies, *self._loading, *self._unloading}
        waiting = [model for model in self._wanted if model not in busy]
        num_free = max(0, self.max_models - len(busy))
        for model in waiting[:num_free]:
            self._loading[model] = asyncio.create_task(self._load(model))
        num_leaving = sum(candidate.is_leaving for candidate in self._residencies.values())
        self._make_room(len(waiting) - num_free - num_leaving - len(self._unloading))
        for model, residency in list(self._residencies.items()):
            if residency.is_leaving and not residency.num_inside:
                self._unload(model)

    def _make_room(self, num_models: int) -> None:
        """Has so many models leave, or as many as can be told to now and the others in time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        movable = {
            model: residency for model, residency in self._residencies.items() if model not in self._pinned
        }
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
        cause: Exception | None = None
        retry_seconds: float | None = None
        try:
            loaded = await self._open(model)
        except Exception as error:
            reason = str(error) or f"it took longer than {self._max_load_seconds:g} seconds"
            logger.error("model not loaded", extra={"model": model.key, "reason": reason})
            retry_seconds, cause = model.on_failure(), error
        else:
            now = time.monotonic()
            self._residencies[model] = Residency(since=now, load_seconds=now - began, used_at=now)
            model.on_load(loaded, now - began)
            extra = {"precision": loaded.precision, "providers": dict(loaded.providers)}
            seconds = round(now - began, 3)
            logger.info("model loaded", extra={"model": model.key, "seconds": seconds, **extra})
        finally:
            del self._loading[model]
        for waiter in self._wanted.pop(model, []):
            if waiter.done():
                # Its caller has just gone.
                continue
            if retry_seconds is not None:
                failure = ModelNotLoadedError(model.key, retry_seconds=retry_seconds)
                failure.__cause__ = cause
                waiter.set_exception(failure)
            else:
                self._let_in(self._residencies[model])
                waiter.set_result(None)
        self._advance()

    async def _open(self, model: ModelOnDemand) -> Model:
        def end_unused(opening: "Future[Model]") -> None:
            if opening.exception() is None:
                opening.result().engine.close()

        opening = run_in_daemon_thread(self._load_model, model)
        try:
            return await wait_for(opening, self._max_load_seconds)
        except (asyncio.CancelledError, TimeoutError):
            opening.add_done_callback(end_unused)
            raise

    def _unload(self, model: ModelOnDemand) -> None:
        del self._residencies[model]
        loaded = model.on_unload()
        self._ending.add(loaded)
        self._unloading[model] = asyncio.create_task(self._end(model, loaded))

    async def _end(self, model: ModelOnDemand, loaded: Model) -> None:
        try:
            await loaded.end()
        finally:
            self._ending.discard(loaded)
            del self._unloading[model]
        logger.info("model unloaded", extra={"model": model.key})
        self._advance()

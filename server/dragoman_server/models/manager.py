"""The models of a folder over a server's life: fetched, loaded, read anew while served, retired, ended.

Owns which models are served and that none ends while it is used. Must not know gRPC.
"""

import asyncio
import contextlib
import logging
import sys
import threading
from concurrent.futures import Future
from pathlib import Path

from dragoman_bundle import Bundle

from dragoman_server.metrics.translation import Metrics
from dragoman_server.models.loader import ModelLoader
from dragoman_server.models.model import Model, ServedModel
from dragoman_server.models.on_demand import ModelsOnDemand
from dragoman_server.models.repository import Repository, RepositoryError, load_repository
from dragoman_server.turns import run_in_daemon_thread, wait_for

logger = logging.getLogger(__name__)


class _LoadingCancelled(BaseException):
    """The models are not wanted any more: no error, and no reason to leave a bundle out."""


class ModelManager:
    """Loads what a folder holds, and goes on with what is loaded already."""

    def __init__(
        self,
        folder: Path,
        loader: ModelLoader,
        metrics: Metrics,
        *,
        cancel_seconds: float,
        on_demand: ModelsOnDemand | None = None,
    ) -> None:
        """Where loading is cancelled, the bundle that it is at is waited for `cancel_seconds` at most.

        Without `on_demand`, all models are loaded as soon as they are found.
        """
        self._cancel_seconds = cancel_seconds
        self._folder = folder
        self._loader = loader
        self._on_demand = on_demand
        self._refused_bundles = metrics.refused_bundles
        self._retiring: dict[ServedModel, asyncio.Task[None]] = {}
        self.repository = Repository([], {})

    async def load(self, *, max_seconds: float | None = None) -> None:
        """Makes `repository` what the folder holds.

        A model that is served stays the very same. One whose folder is gone is retired: it ends once nobody
        uses it any more. Where this is cancelled, it ends after the bundle that it is at, and nothing
        changes; nor where it raises, as `load_repository` does, or TimeoutError after `max_seconds`. What is
        being loaded then ends as soon as it can.
        """
        try:
            repository = await self._read(max_seconds)
            if self._on_demand is not None:
                self._on_demand.check(repository)
            before, self.repository = self.repository, repository
        except RepositoryError as none_left:
            if none_left.refused is not None:
                self._refused_bundles.set(len(none_left.refused))
            raise
        self._refused_bundles.set(len(self.repository.refused))
        for key, error in self.repository.refused.items():
            logger.error("bundle refused", extra={"model": key, "reason": str(error)})
        for model in _without(before, self.repository):
            logger.info("model retired", extra={"model": model.key, "calls": model.calls.num_inside})
            model.metrics.on_retire()
            self._retiring[model] = asyncio.create_task(self._end_when_unused(model))
        for model in _without(self.repository, before):
            # Not while others are loaded: what is not served after all would stay in the metrics.
            model.metrics.on_serve()
            if isinstance(model, Model):
                model.metrics.on_load(
                    engine=model.engine, precision=model.precision, providers=model.providers
                )
                extra = {"model": model.key, "precision": model.precision, "providers": dict(model.providers)}
                logger.info("model ready", extra=extra)

    async def load_pinned(self, *, shows_device: bool = False) -> None:
        """Does what `ModelsOnDemand.load_pinned` does, if models are loaded on demand."""
        if self._on_demand is not None:
            await self._on_demand.load_pinned(self.repository, shows_device=shows_device)

    def pids(self) -> list[int]:
        """The processes of all engines, those of retiring models among them."""
        models = [*self.repository.models, *self._retiring]
        unloading = [] if self._on_demand is None else self._on_demand.pids
        return [*(pid for model in models for pid in model.pids), *unloading]

    async def close(self) -> None:
        """Ends every model; whatever is unanswered fails."""
        for task in self._retiring.values():
            task.cancel()
        if self._on_demand is not None:
            await self._on_demand.close()
        models = [*self.repository.models, *self._retiring]
        # At the same time: one that takes long holds up no other.
        await asyncio.gather(*(model.end() for model in models))

    async def _read(self, max_seconds: float | None) -> Repository:
        served = self.repository
        cancelled = threading.Event()

        def load(bundle: Bundle) -> Model:
            if cancelled.is_set():
                raise _LoadingCancelled
            return self._loader.load(bundle)

        def close_unused(reading: Future[Repository]) -> None:
            if reading.exception() is None:
                for model in _without(reading.result(), served):
                    if model.loaded is not None:
                        model.loaded.engine.close()

        defer = None if self._on_demand is None else self._on_demand.defer
        reading = run_in_daemon_thread(load_repository, self._folder, load, served, defer)
        try:
            return await wait_for(reading, max_seconds)
        except (asyncio.CancelledError, TimeoutError) as error:
            cancelled.set()
            reading.add_done_callback(close_unused)
            if isinstance(error, TimeoutError):
                message = f"the models folder {self._folder} could not be read within {max_seconds:g} seconds"
                raise TimeoutError(message) from error
            with contextlib.suppress(Exception, _LoadingCancelled):
                await wait_for(reading, self._cancel_seconds)
            raise

    async def _end_when_unused(self, model: ServedModel) -> None:
        await model.calls.wait_until_empty()
        await model.end()
        model.metrics.on_end()
        del self._retiring[model]
        logger.info("model ended", extra={"model": model.key})


def _without(repository: Repository, other: Repository) -> list[ServedModel]:
    """The models that the other does not have."""
    return [model for model in repository.models if model not in other.models]


class GettingError(RuntimeError):
    """A model could not be fetched."""


async def get_models(models: str, folder: Path) -> None:
    """Fetches those, with commas between, that the folder has nothing for. Raises GettingError.

    What the command says goes into the log line by line. Cancelled, it ends the process.
    """
    names = [name.strip() for name in models.split(",") if name.strip()]
    command = [sys.executable, "-m", "dragoman", "get", "--yes", "--missing", "--models", str(folder), *names]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    said = ""
    try:
        async for line in process.stdout:
            said = line.decode(errors="replace").strip() or said
            logger.info("getting models", extra={"said": said})
        code = await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    if code != 0:
        raise GettingError(f"`dragoman get {' '.join(names)}` failed: {said}")

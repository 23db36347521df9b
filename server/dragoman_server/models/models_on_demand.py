"""The models of a folder where not all are loaded: looked at, pinned, and loaded when a request needs them.

Owns which of them are pinned. Must not know gRPC.
"""

import asyncio
from pathlib import Path

from dragoman_bundle import BundleError, open_bundle
from dragoman_bundle.bundle import look_at_bundle

from dragoman_server.engine import DeviceUnavailableError
from dragoman_server.errors import ModelNotFoundError, ModelNotLoadedError
from dragoman_server.metrics.translation import Metrics, ModelMetrics
from dragoman_server.models.loaded_models import LoadedModels
from dragoman_server.models.loader import ModelLoader
from dragoman_server.models.model import Model
from dragoman_server.models.model_on_demand import ModelOnDemand
from dragoman_server.models.repository import Repository, RepositoryError, is_same


class ModelsOnDemand:
    """Makes models that share the room for `max_models`, of which those that are `pinned` keep theirs."""

    def __init__(
        self,
        loader: ModelLoader,
        metrics: Metrics,
        *,
        max_models: int,
        pinned: tuple[str, ...],
        max_load_seconds: float,
    ) -> None:
        self._loader = loader
        self._metrics = metrics
        self._pinned = pinned
        self._room = LoadedModels(max_models, self._load, max_load_seconds=max_load_seconds)

    @property
    def pids(self) -> list[int]:
        """As of `LoadedModels`."""
        return self._room.pids

    def defer(self, path: Path) -> ModelOnDemand:
        """The model of the bundle at `path`, which is not loaded.

        Raises BundleError, PrecisionUnavailableError or SentenceError, as far as they show without reading
        the bundle. May be called in any thread.
        """
        manifest = look_at_bundle(path)
        self._loader.check(path, manifest)
        return ModelOnDemand(
            path,
            manifest,
            metrics=ModelMetrics(self._metrics, manifest),
            default_beam_size=self._loader.beam_size(manifest),
            room=self._room,
        )

    def check(self, repository: Repository) -> None:
        """Raises RepositoryError where a pinned model is missing, or where they leave no room for others."""
        num_pinned, room = len(self._find_pinned(repository)), self._room.max_models
        if num_pinned > room or num_pinned == room < len(repository.models):
            raise RepositoryError(
                f"{num_pinned} models are pinned, and max_loaded_models is {room}: none of the others could "
                "ever be loaded; raise --max-loaded-models, or pin fewer"
            )

    async def load_pinned(self, repository: Repository, *, shows_device: bool = False) -> None:
        """Loads those that are pinned, which stay from now on; one that can't be loaded is told in the log.

        With `shows_device`, DeviceUnavailableError is raised; where no model is pinned another one is loaded
        to show that a GPU that was asked for is there.
        """
        pinned = self._find_pinned(repository)
        self._room.pin(pinned)
        errors = await asyncio.gather(*map(_load, pinned))
        if shows_device and not pinned and self._loader.device == "cuda":
            for model in repository.models:
                assert isinstance(model, ModelOnDemand)
                errors = [await _load(model)]
                if errors[0] is None or isinstance(errors[0], DeviceUnavailableError):
                    break
        for error in errors:
            if shows_device and isinstance(error, DeviceUnavailableError):
                raise error

    async def close(self) -> None:
        """As of `LoadedModels`."""
        await self._room.close()

    def _find_pinned(self, repository: Repository) -> list[ModelOnDemand]:
        """Each once. Raises RepositoryError."""
        found: dict[ModelOnDemand, None] = {}
        for name in self._pinned:
            try:
                model = repository.by_name(name)
            except ModelNotFoundError as error:
                raise RepositoryError(f"--pinned-model {name}: {error}") from error
            assert isinstance(model, ModelOnDemand)
            found[model] = None
        return list(found)

    def _load(self, model: ModelOnDemand) -> Model:
        bundle = open_bundle(model.path)
        if not is_same(bundle.manifest, model.manifest):
            raise BundleError(
                f"{model.path} has changed since the models folder was read; SIGHUP has it read again"
            )
        return self._loader.load(bundle, model.metrics)


async def _load(model: ModelOnDemand) -> BaseException | None:
    """What kept it from being loaded, if anything."""
    try:
        async with model.use():
            return None
    except ModelNotLoadedError as error:
        return error.__cause__

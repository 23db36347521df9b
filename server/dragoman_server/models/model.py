"""A model that is served, its users, and one that is loaded: a bundle and an engine. Knows no requests."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from dragoman_bundle import Bundle, Manifest

from dragoman_server.engine import Priority
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.metrics.translation import ModelMetrics
from dragoman_server.models.language_lookup import Distance, closest_pair
from dragoman_server.turns import FairLock


class Occupancy:
    """How many are inside, and a way to wait until nobody is."""

    def __init__(self) -> None:
        self.num_inside = 0
        self._empty = asyncio.Event()
        self._empty.set()

    def enter(self) -> None:
        """One more is inside, who must `leave`."""
        self.num_inside += 1
        self._empty.clear()

    def leave(self) -> None:
        """One less is."""
        self.num_inside -= 1
        if self.num_inside == 0:
            self._empty.set()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Counts one while it is used."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    async def wait_until_empty(self) -> None:
        await self._empty.wait()


class RequestedModel(ABC):
    """A model that requests may name, whether it is loaded or not; of many languages, for two of them."""

    metrics: ModelMetrics
    default_beam_size: int
    """Beam size of a request that sets none."""
    calls: Occupancy
    """Those that have chosen it, a stream for as long as it lasts."""
    description: str = ""
    """What it is good for, by its card."""

    @property
    @abstractmethod
    def manifest(self) -> Manifest:
        """The manifest of its bundle."""

    @property
    @abstractmethod
    def loaded(self) -> "Model | None":
        """The loaded model, while there is one."""

    @abstractmethod
    def use(self) -> AbstractAsyncContextManager["Model"]:
        """Keeps the loaded model for a piece of work. May wait for it.

        Raises ModelNotLoadedError.
        """

    @abstractmethod
    def knows(self, tag: str) -> bool:
        """Whether it was trained with the tag, which may stand before its sources."""

    @property
    def key(self) -> str:
        """ "name/version"."""
        return self.manifest.key

    def distance(self, source: str, target: str) -> Distance | None:
        """How close its languages are to a caller's, as `closest_pair` has it."""
        found = closest_pair(self.manifest, source, target)
        return None if found is None else found[0]

    def between(self, source: str, target: str) -> "RequestedModel":
        """The model for a caller's languages: of many, for those two of them that are closest.

        Raises ValueError where it does not translate between such.
        """
        found = closest_pair(self.manifest, source, target)
        if found is None:
            raise ValueError(f"{self.key} does not translate from {source!r} to {target!r}")
        return ModelBetween(self, *found[1]) if self.manifest.languages else self


class ServedModel(RequestedModel):
    """A model of a server, for all of its languages."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether its requests are translated: an engine runs, or can be loaded."""

    @property
    @abstractmethod
    def pids(self) -> Sequence[int]:
        """The processes of its engines."""

    @abstractmethod
    def watch(self, on_change: Callable[[], None]) -> None:
        """Has `on_change` called, in any thread, whenever `is_alive` or `has_ended` may have changed."""

    @abstractmethod
    async def end(self) -> None:
        """Ends its engines; whatever is unanswered fails."""

    @property
    def has_ended(self) -> bool:
        """Whether an engine ended that nothing brings back."""
        return self.loaded is not None and self.loaded.engine.has_ended


@dataclass(frozen=True, kw_only=True, eq=False)
class Model(ServedModel):
    """A model that is loaded, and served as long as it is."""

    bundle: Bundle
    engine: EnginePool
    """The engines that decode its sentences."""
    metrics: ModelMetrics
    precision: str
    providers: Mapping[str, str]
    """The graphs, each with the execution provider it runs on."""
    default_beam_size: int
    max_sentences: Mapping[Priority, int]
    """Most sentences of a request that the engine's queue can ever hold."""
    turns: Mapping[Priority, FairLock] = field(
        default_factory=lambda: {each: FairLock() for each in Priority}
    )
    """Held by the stream's item that waits for room in the queue: the next in turn is the next to get in,
    however many sentences it has and however few those behind it."""
    calls: Occupancy = field(default_factory=Occupancy)
    description: str = ""

    @property
    def manifest(self) -> Manifest:
        return self.bundle.manifest

    @property
    def loaded(self) -> "Model":
        return self

    @property
    def is_alive(self) -> bool:
        return self.engine.is_alive

    @property
    def pids(self) -> Sequence[int]:
        return self.engine.pids

    def knows(self, tag: str) -> bool:
        return self.bundle.source_tokenizer.id_of(tag) is not None

    @asynccontextmanager
    async def use(self) -> AsyncIterator["Model"]:
        yield self

    def watch(self, on_change: Callable[[], None]) -> None:
        self.engine.watch(on_change)

    async def end(self) -> None:
        await asyncio.to_thread(self.engine.close)


class ModelBetween(RequestedModel):
    """A model of many languages for two of them: as if it were one of theirs alone."""

    def __init__(self, model: RequestedModel, source: str, target: str) -> None:
        self._model = model
        self._pair = source, target
        self._manifest = model.manifest.between(source, target)
        self.metrics, self.calls = model.metrics, model.calls
        self.default_beam_size, self.description = model.default_beam_size, model.description

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def loaded(self) -> Model | None:
        return None if self._model.loaded is None else self._of(self._model.loaded)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Model]:
        async with self._model.use() as model:
            yield self._of(model)

    def knows(self, tag: str) -> bool:
        return self._model.knows(tag)

    def _of(self, model: Model) -> Model:
        return replace(model, bundle=model.bundle.between(*self._pair))

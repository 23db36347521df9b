"""A model that is being served: one bundle and one engine. Must not know requests or gRPC."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman_bundle import Bundle
from dragoman_server.engine import EnginePool, Priority
from dragoman_server.language_lookup import Distance, distance
from dragoman_server.metrics import ModelMetrics
from dragoman_server.occupancy import Occupancy


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A model that is being served."""

    bundle: Bundle
    """What it was loaded from."""
    engine: EnginePool
    """What decodes its sentences."""
    metrics: ModelMetrics
    """Its own series."""
    precision: str
    """Of the graphs in use."""
    providers: Mapping[str, str]
    """By graph the execution provider it runs on."""
    default_beam_size: int
    """Of a request that sets none."""
    max_sentences: Mapping[Priority, int]
    """Most sentences of a request that the engine's queue can ever hold."""
    turns: Mapping[Priority, asyncio.Lock] = field(
        default_factory=lambda: {priority: asyncio.Lock() for priority in Priority}
    )
    """Held by the stream's item that waits for room in the queue: the first to come is the next to get in,
    however many sentences it has and however few those behind it."""
    calls: Occupancy = field(default_factory=Occupancy)
    """Those that use it, a stream for as long as it lasts."""

    @property
    def key(self) -> str:
        """ "name/version"."""
        return self.bundle.manifest.key

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target, in lower case."""
        manifest = self.bundle.manifest
        return manifest.source_language.lower(), manifest.target_language.lower()

    def distance(self, source: str, target: str) -> Distance | None:
        """How close its languages are to a caller's; None where it does not translate between those.

        One that is empty is any.
        """
        total = Distance(0, 0)
        for wanted, has in zip((source, target), self.languages, strict=True):
            found = distance(wanted, has) if wanted.strip() else total
            if found is None:
                return None
            total += found
        return total

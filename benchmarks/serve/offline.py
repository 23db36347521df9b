"""The server's engine without the server: what it translates when nothing stands around it."""

import itertools
import math
import time
from collections.abc import Sequence

from dragoman_bundle import Bundle

from benchmarks.engines import translation_options
from benchmarks.serve.cores import pinned_to
from dragoman_server.config import EngineConfig, Precision
from dragoman_server.models.loader import decoder_options, open_engine
from dragoman_server.offline.system import MAX_QUEUE, BundleSystem


class OfflineEngine:
    """The engine that a server with these options has, on the server's cores."""

    def __init__(
        self, bundle: Bundle, *, precision: Precision, threads: int, beam_size: int, cores: tuple[int, ...]
    ) -> None:
        self._cores = cores
        config = EngineConfig(
            device="cpu",
            precision=precision,
            threads=threads,
            max_queue=MAX_QUEUE,
            max_queue_seconds=math.inf,
        )
        with pinned_to(cores):
            running = open_engine(bundle, decoder_options(config), config, max_beam_size=beam_size)
        self._engine = running.engine
        self.precision = running.precision
        """Precision of the graphs that were chosen."""
        self._system = BundleSystem(bundle, self._engine, translation_options(bundle, beam_size), "")

    def sentences_per_second(self, sentences: Sequence[str], total: int) -> float:
        """Translates the sentences from the first on, again and again until `total` are done."""
        lines = list(itertools.islice(itertools.cycle(sentences), total))
        with pinned_to(self._cores):
            started = time.perf_counter()
            self._system.translate(lines)
            return total / (time.perf_counter() - started)

    def close(self) -> None:
        """Ends the engine."""
        self._engine.close()

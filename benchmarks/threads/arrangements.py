"""The ways to spend the same cores on the same sentences, each opened and ready to translate."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from dragoman_bundle import Bundle

from benchmarks.engines import open_decoder, running_engine, translation_options
from dragoman_server.offline.system import BundleSystem


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """How many engines, each with its own batch, and how many threads each of their calls has."""

    engines: int
    threads: int
    spins: bool = False
    share_a_process: bool = False
    """Whether several engines are threads of one process, and not a process each as the server's are."""

    def __str__(self) -> str:
        how = ", spinning" * self.spins + ", in one process" * self.share_a_process
        return f"{self.engines} x {self.threads}{how}"


def arrangements(threads: int) -> list[Arrangement]:
    """One thread; so many, which sleep or spin while they wait; and as many engines of one thread, which are
    threads or processes.
    """
    if threads == 1:
        return [Arrangement(engines=1, threads=1)]
    return [
        Arrangement(engines=1, threads=1),
        Arrangement(engines=1, threads=threads),
        Arrangement(engines=1, threads=threads, spins=True),
        Arrangement(engines=threads, threads=1, share_a_process=True),
        Arrangement(engines=threads, threads=1),
    ]


class Arranged:
    """An arrangement that translates."""

    def __init__(
        self, stack: ExitStack, bundle: Bundle, arrangement: Arrangement, *, precision: str, beam_size: int
    ) -> None:
        """The engines end with the stack. Raises SystemMissingError."""
        decoder = open_decoder(
            bundle,
            precision=precision,
            num_threads=arrangement.threads,
            shortlist=bundle.shortlist is not None,
            spins=arrangement.spins,
        )
        engine = stack.enter_context(
            running_engine(
                decoder,
                beam_size=beam_size,
                threads=arrangement.engines,
                in_one_process=arrangement.share_a_process,
            )
        )
        self._system = BundleSystem(bundle, engine, translation_options(bundle, beam_size), "")

    def sentences_per_second(self, lines: Sequence[str]) -> float:
        """Throughput: all the lines at once."""
        started = time.perf_counter()
        self._system.translate(lines)
        return len(lines) / (time.perf_counter() - started)

    def latencies(self, lines: Sequence[str]) -> list[float]:
        """Seconds of each line, one after the other, with nobody beside it."""
        found = []
        for line in lines:
            started = time.perf_counter()
            self._system.translate([line])
            found.append(time.perf_counter() - started)
        return found

"""The two measurements of a server: what it can do at most, and how it answers at a load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.corpus import Corpus
from benchmarks.measuring import Summary, interleave, summarize
from benchmarks.progress import Progress
from benchmarks.serve.arrivals import draw_arrivals
from benchmarks.serve.load import Answered, run_closed_loop, run_open_loop
from benchmarks.serve.offline import OfflineEngine
from benchmarks.serve.percentiles import percentile
from benchmarks.serve.server_process import ServerProcess
from dragoman.v1 import translation_pb2 as pb

OFFLINE = "offline"
PERCENTS = (50, 95, 99)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One open-loop run."""

    answered: Answered
    mean_rows: float
    """Rows a decoder step, over the whole run."""
    server_cores: float | None
    """Processor time of the server, as a number of cores."""


class Measurement:
    """Servers by mode, the same load for each of them."""

    def __init__(
        self,
        servers: Mapping[str, ServerProcess],
        offline: OfflineEngine,
        corpus: Corpus,
        requests: Sequence[pb.TranslateRequest],
        progress: Progress,
    ) -> None:
        self._servers = servers
        self._offline = offline
        self._corpus = corpus
        self._requests = requests
        self._progress = progress

    def warm(self, total: int) -> None:
        """Translates so many sentences with everything that is measured."""
        for server in self._servers.values():
            run_closed_loop(server.address, self._requests, total=total, concurrency=total)
        self._offline.sentences_per_second(self._corpus.sources, total)

    def capacity(self, *, total: int, concurrency: int, repeats: int) -> dict[str, Summary]:
        """Sentences a second of each mode with always `concurrency` callers, and of the engine alone."""
        cases = {
            mode: partial(
                run_closed_loop, server.address, self._requests, total=total, concurrency=concurrency
            )
            for mode, server in self._servers.items()
        }
        cases[OFFLINE] = partial(self._offline.sentences_per_second, self._corpus.sources, total)
        runs = interleave(
            cases,
            repeats,
            lambda repeat, case, rate: self._progress.advance(f"{case}: {rate:,.1f} sentences/s"),
        )
        return {case: summarize(rates) for case, rates in runs.items()}

    def latency(
        self, rates: Mapping[float, float], *, seconds: float, deadline_seconds: float, repeats: int
    ) -> list[dict[str, object]]:
        """A row for each mode and load; `rates` are the arrivals a second of each load.

        Both modes get the very same arrivals; each repeat draws its own.
        """
        observed: dict[tuple[str, float], list[Observed]] = {
            (mode, load): [] for load in rates for mode in self._servers
        }
        for repeat in range(repeats):
            for load, rate in rates.items():
                arrivals = draw_arrivals(
                    rate=rate, seconds=seconds, num_sentences=len(self._requests), seed=repeat
                )
                for mode, server in self._servers.items():
                    run = partial(
                        run_open_loop,
                        *(server.address, self._requests, arrivals),
                        seconds=seconds,
                        deadline_seconds=deadline_seconds,
                    )
                    steps, rows = server.steps_and_rows()
                    used = server.processor_seconds()
                    answered = run()
                    steps_after, rows_after = server.steps_and_rows()
                    used_after = server.processor_seconds()
                    one = Observed(
                        answered=answered,
                        mean_rows=(rows_after - rows) / max(1.0, steps_after - steps),
                        server_cores=None
                        if used is None or used_after is None
                        else (used_after - used) / answered.seconds,
                    )
                    observed[mode, load].append(one)
                    p99 = 1e3 * percentile(answered.latencies, 99)
                    self._progress.advance(
                        f"{mode} at {load:.0%}, {rate:,.1f} arrivals/s: p99 {p99:,.0f} ms, "
                        f"{one.mean_rows:.0f} rows a step"
                    )
        return [_row(mode, load, rates[load], runs) for (mode, load), runs in observed.items()]


def _row(mode: str, load: float, rate: float, runs: Sequence[Observed]) -> dict[str, object]:
    latencies = {
        percent: summarize([1e3 * percentile(run.answered.latencies, percent) for run in runs])
        for percent in PERCENTS
    }
    server_cores = [run.server_cores for run in runs if run.server_cores is not None]
    return {
        "mode": mode,
        "load": load,
        "arrivals_per_second": rate,
        **{f"p{percent}_ms": latencies[percent].median for percent in PERCENTS},
        "goodput": summarize([run.answered.goodput for run in runs]).median,
        "mean_rows": summarize([run.mean_rows for run in runs]).median,
        "failed": sum(run.answered.num_failed for run in runs),
        "p99_ms_repeats": list(latencies[99].values),
        "p50_spread": latencies[50].spread,
        "p99_spread": latencies[99].spread,
        "late_ms": 1e3 * max(run.answered.late for run in runs),
        "generator_cores": max(run.answered.generator_cores for run in runs),
        "server_cores": summarize(server_cores).median if server_cores else None,
    }

"""The measurements of a server: what it can do at most, how it answers at a load, and how beside bulk."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.corpus import Corpus
from benchmarks.measuring import Summary, interleave, summarize
from benchmarks.progress import Progress
from benchmarks.serve.arrivals import Arrival, draw_arrivals
from benchmarks.serve.load import Answered, run_closed_loop, run_file, run_job, run_open_loop
from benchmarks.serve.offline import OfflineEngine
from benchmarks.serve.percentiles import percentile
from benchmarks.serve.server_process import ServerProcess
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine.scheduling.scheduler import CALM_SECONDS

CONTINUOUS = "continuous"
"""What the others are compared with."""
FILE = "file"
OFFLINE = "offline"
JOB = "job"
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
        """Sentences a second of each mode with `concurrency` callers, of a file, an engine and a job."""
        cases = {
            mode: partial(
                run_closed_loop, server.address, self._requests, total=total, concurrency=concurrency
            )
            for mode, server in self._servers.items()
        }
        server = self._servers[CONTINUOUS]
        cases[FILE] = partial(run_file, server.address, self._requests, total=total)
        cases[OFFLINE] = partial(self._offline.sentences_per_second, self._corpus.sources, total)
        cases[JOB] = partial(self._job_alone, server.address, total)
        runs = interleave(
            cases,
            repeats,
            lambda repeat, case, rate: self._progress.advance(f"{case}: {rate:,.1f} sentences/s"),
        )
        return {case: summarize(rates) for case, rates in runs.items()}

    def _job_alone(self, address: str, total: int) -> float:
        # Callers who have just been there would hold the job back.
        time.sleep(CALM_SECONDS)
        return run_job(address, self._requests, total=total)

    def latency(
        self,
        rates: Mapping[float, float],
        *,
        seconds: float,
        deadline_seconds: float,
        objective_seconds: float,
        repeats: int,
    ) -> list[dict[str, object]]:
        """A row for each mode and load; `rates` are the arrivals a second of each load.

        Both modes get the very same arrivals; each repeat draws its own. An answer is a good one within
        `objective_seconds`.
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
                    one = self._observe(server, arrivals, seconds=seconds, deadline_seconds=deadline_seconds)
                    observed[mode, load].append(one)
                    p99 = 1e3 * percentile(one.answered.latencies, 99)
                    self._progress.advance(
                        f"{mode} at {load:.0%}, {rate:,.1f} arrivals/s: p99 {p99:,.0f} ms, "
                        f"{one.mean_rows:.0f} rows a step"
                    )
        return [
            _row(mode, load, rates[load], runs, objective_seconds) for (mode, load), runs in observed.items()
        ]

    def beside_bulk(
        self,
        mode: str,
        rate: float,
        *,
        streams: int,
        seconds: float,
        deadline_seconds: float,
        repeats: int,
    ) -> list[dict[str, object]]:
        """How callers fare alone and beside so many batch jobs: a row each, of the very same arrivals."""
        observed: dict[int, list[Observed]] = {0: [], streams: []}
        for repeat in range(repeats):
            arrivals = draw_arrivals(
                rate=rate, seconds=seconds, num_sentences=len(self._requests), seed=repeat
            )
            for number, runs in observed.items():
                one = self._observe(
                    self._servers[mode],
                    arrivals,
                    seconds=seconds,
                    deadline_seconds=deadline_seconds,
                    bulk_streams=number,
                )
                runs.append(one)
                p99 = 1e3 * percentile(one.answered.latencies, 99)
                self._progress.advance(
                    f"{rate:,.1f} arrivals/s beside {number} batch jobs: p99 {p99:,.0f} ms, "
                    f"{one.answered.bulk_per_second:,.1f} sentences/s of theirs"
                )
        return [
            {
                "streams": number,
                "arrivals_per_second": rate,
                **_latencies(runs),
                "bulk_per_second": summarize([run.answered.bulk_per_second for run in runs]).median,
                "mean_rows": summarize([run.mean_rows for run in runs]).median,
                "failed": sum(run.answered.num_failed for run in runs),
            }
            for number, runs in observed.items()
        ]

    def _observe(
        self,
        server: ServerProcess,
        arrivals: Sequence[Arrival],
        *,
        seconds: float,
        deadline_seconds: float,
        bulk_streams: int = 0,
    ) -> Observed:
        """One open-loop run, and what the server says of it."""
        steps, rows = server.steps_and_rows()
        used, began = server.processor_seconds(), time.perf_counter()
        answered = run_open_loop(
            server.address,
            self._requests,
            arrivals,
            seconds=seconds,
            deadline_seconds=deadline_seconds,
            bulk_streams=bulk_streams,
        )
        steps_after, rows_after = server.steps_and_rows()
        used_after, ended = server.processor_seconds(), time.perf_counter()
        return Observed(
            answered=answered,
            mean_rows=(rows_after - rows) / max(1.0, steps_after - steps),
            server_cores=None
            if used is None or used_after is None
            else (used_after - used) / (ended - began),
        )


def _row(
    mode: str, load: float, rate: float, runs: Sequence[Observed], objective_seconds: float
) -> dict[str, object]:
    server_cores = [run.server_cores for run in runs if run.server_cores is not None]
    return {
        "mode": mode,
        "load": load,
        "arrivals_per_second": rate,
        **_latencies(runs),
        "goodput": summarize([run.answered.goodput(objective_seconds) for run in runs]).median,
        "mean_rows": summarize([run.mean_rows for run in runs]).median,
        "failed": sum(run.answered.num_failed for run in runs),
        "late_ms": 1e3 * max(run.answered.late for run in runs),
        "generator_cores": max(run.answered.generator_cores for run in runs),
        "server_cores": summarize(server_cores).median if server_cores else None,
    }


def _latencies(runs: Sequence[Observed]) -> dict[str, object]:
    """Percentiles in ms, the repeats of the highest of them, and spreads."""
    found = {
        percent: summarize([1e3 * percentile(run.answered.latencies, percent) for run in runs])
        for percent in PERCENTS
    }
    return {
        **{f"p{percent}_ms": found[percent].median for percent in PERCENTS},
        "p99_ms_repeats": list(found[99].values),
        "p50_spread": found[50].spread,
        "p99_spread": found[99].spread,
    }

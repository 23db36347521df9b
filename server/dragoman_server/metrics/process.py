"""`process_*` of the server and its engines' processes together, and the processor time of each part.

Memory that several processes hold is counted once. Engines' processes are started, not forked, so what they
share comes from files, such as libraries: each has its own of the rest, and the most that any has of files is
everybody's. The exact share of each process (PSS) takes the system tens of milliseconds to tell, this none.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from dragoman_server.logs import Log

_CPU = "process_cpu_seconds"
_MEMORY = "process_virtual_memory_bytes"
_RESIDENT = "process_resident_memory_bytes"
# The others, such as when it was started or how many files it may open, are of the server alone.


@dataclass(frozen=True, kw_only=True)
class _Process:
    cpu_seconds: float
    num_threads: int
    virtual_bytes: int
    resident_bytes: int
    shared_bytes: int
    """The resident bytes that are backed by files."""


class ProcessMetrics(Collector):
    """Tells what all of them take, which is what a server costs. Nothing where the system has no /proc."""

    def __init__(self, pids: Callable[[], Iterable[int]], num_processors: int) -> None:
        """`pids` are the processes beside this one, at the moment; all may use `num_processors`."""
        self._own = ProcessCollector(registry=None)
        self._pids = pids
        self._num_processors = num_processors
        # A counter never falls: what ended processes used stays in it.
        self._cpu_seconds: dict[int, float] = {}

    def collect(self) -> Iterator[Metric]:
        """Yields the families of a ProcessCollector, and those of the engines."""
        server = _read("self")
        if server is None:
            yield from self._own.collect()
            return
        engines = {pid: found for pid in self._pids() if (found := _read(pid)) is not None}
        self._cpu_seconds |= {pid: usage.cpu_seconds for pid, usage in engines.items()}
        processes = [server, *engines.values()]
        in_engines = sum(self._cpu_seconds.values())
        private = sum(usage.resident_bytes - usage.shared_bytes for usage in processes)
        values = {
            _CPU: server.cpu_seconds + in_engines,
            _MEMORY: float(sum(usage.virtual_bytes for usage in processes)),
            _RESIDENT: float(private + max(usage.shared_bytes for usage in processes)),
        }
        for family in self._own.collect():
            if family.name in values:
                value = values[family.name]
                family.samples = [sample._replace(value=value) for sample in family.samples]
            yield family
        what = "Processor time by what used it."
        by_part = CounterMetricFamily("dragoman_cpu_seconds", what, labels=("part",))
        by_part.add_metric(("server",), server.cpu_seconds)
        by_part.add_metric(("engines",), in_engines)
        yield by_part
        num_threads = sum(usage.num_threads for usage in processes)
        yield GaugeMetricFamily("dragoman_threads", "Threads of all the server's processes.", num_threads)
        what = "Processors that the server may use."
        yield GaugeMetricFamily("dragoman_processors", what, self._num_processors)


def _read(process: int | str) -> _Process | None:
    """None where there is none, or the system does not tell."""
    folder = Path("/proc") / str(process)
    try:
        # Behind the name, which may hold anything.
        words = (folder / "stat").read_text().rpartition(")")[2].split()
        _, resident, shared, *_ = map(int, (folder / "statm").read_text().split())
    except (OSError, ValueError):
        return None
    page = os.sysconf("SC_PAGE_SIZE")
    return _Process(
        cpu_seconds=(int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"),
        num_threads=int(words[17]),
        virtual_bytes=int(words[20]),
        resident_bytes=resident * page,
        shared_bytes=shared * page,
    )


class LogMetrics(Collector):
    """Tells what a log counts."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def collect(self) -> Iterator[Metric]:
        what = "Lines of the log that are lost because nobody reads it."
        yield CounterMetricFamily("dragoman_log_lines_dropped", what, self._log.num_dropped)

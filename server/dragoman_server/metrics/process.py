"""The usual metrics of a process, `process_*`, of the server and its engines' processes together."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

_CPU = "process_cpu_seconds"
_MEMORY = ("process_virtual_memory_bytes", "process_resident_memory_bytes")
# The others, such as when it was started or how many files it may open, are of the server alone.


class ProcessMetrics(Collector):
    """Tells what all of them take, which is what a server costs. Nothing where the system has no /proc."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        """`pids` are the processes beside this one, at the moment."""
        self._own = ProcessCollector(registry=None)
        self._pids = pids
        # A counter never falls: what ended processes used stays in it.
        self._cpu_seconds: dict[int, float] = {}

    def collect(self) -> Iterator[Metric]:
        """As a ProcessCollector."""
        memory = dict.fromkeys(_MEMORY, 0.0)
        for pid in self._pids():
            for name, value in _read(pid).items():
                if name == _CPU:
                    self._cpu_seconds[pid] = value
                elif name in memory:
                    memory[name] += value
        added = memory | {_CPU: sum(self._cpu_seconds.values())}
        for family in self._own.collect():
            family.samples = [
                sample._replace(value=sample.value + added.get(family.name, 0.0)) for sample in family.samples
            ]
            yield family


def _read(pid: int) -> dict[str, float]:
    families = ProcessCollector(pid=lambda: pid, registry=None).collect()
    return {family.name: family.samples[0].value for family in families}

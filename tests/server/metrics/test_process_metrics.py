"""What the server costs is told of all of its processes together."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from dragoman_server.metrics.process import ProcessMetrics

BURNS = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"
MEMORY = "process_resident_memory_bytes"
CPU = "process_cpu_seconds_total"


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    """Has used half a second of a processor, and waits."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", BURNS], **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_what_other_processes_use_is_added(busy: subprocess.Popen[bytes]) -> None:
    alone, together = CollectorRegistry(), CollectorRegistry()
    alone.register(ProcessMetrics(list))
    pids = [busy.pid]
    together.register(ProcessMetrics(lambda: pids))

    def read(registry: CollectorRegistry, name: str) -> float:
        value = registry.get_sample_value(name)
        assert value is not None
        return value

    assert 0.4 < read(together, CPU) - read(alone, CPU) < 2
    assert read(together, MEMORY) > read(alone, MEMORY) + 2**20
    for name in ("process_start_time_seconds", "process_max_fds"):
        assert read(together, name) == read(alone, name)
    # Once it has ended, its memory is free, and what it used was used: a counter never falls.
    busy.communicate(b"\n")
    pids.clear()
    assert read(together, CPU) - read(alone, CPU) > 0.4
    assert abs(read(together, MEMORY) - read(alone, MEMORY)) < 2**20

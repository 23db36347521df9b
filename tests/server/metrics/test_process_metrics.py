"""What the server costs is told of all of its processes together."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from prometheus_client import CollectorRegistry

from dragoman_server.metrics.process import ProcessMetrics

BURNS = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"
SHARED_BYTES = 2**26
MAPS = """
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(mapped[::4096])
print("done", flush=True)
input()
"""
MEMORY = "process_resident_memory_bytes"
TELLS = f"""
import sys
from prometheus_client import CollectorRegistry
from dragoman_server.metrics.process import ProcessMetrics
registry = CollectorRegistry()
registry.register(ProcessMetrics(lambda: map(int, sys.argv[1:]), 2))
print(registry.get_sample_value({MEMORY!r}), flush=True)
input()
"""
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
    alone.register(ProcessMetrics(list, 2))
    pids = [busy.pid]
    together.register(ProcessMetrics(lambda: pids, 2))

    def read(registry: CollectorRegistry, name: str) -> float:
        value = registry.get_sample_value(name)
        assert value is not None
        return value

    assert 0.4 < read(together, CPU) - read(alone, CPU) < 2
    assert read(together, MEMORY) > read(alone, MEMORY) + 2**20
    threads = "dragoman_threads"
    assert read(together, threads) == read(alone, threads) + 1
    assert together.get_sample_value("dragoman_cpu_seconds_total", {"part": "engines"}) == pytest.approx(
        0.5, abs=0.1
    )
    assert read(alone, "dragoman_processors") == 2
    for name in ("process_start_time_seconds", "process_max_fds"):
        assert read(together, name) == read(alone, name)
    # Once it has ended, its memory is free, and what it used was used: a counter never falls.
    busy.communicate(b"\n")
    pids.clear()
    assert read(together, CPU) - read(alone, CPU) > 0.4
    assert abs(read(together, MEMORY) - read(alone, MEMORY)) < 2**20


def test_memory_that_processes_share_is_counted_once() -> None:
    with ExitStack() as stack:
        file = Path(stack.enter_context(TemporaryDirectory())) / "weights"
        file.write_bytes(bytes(SHARED_BYTES))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        processes = [
            stack.enter_context(subprocess.Popen([sys.executable, "-c", MAPS, file], **pipes))
            for _ in range(3)
        ]
        for process in processes:
            process.stdout.readline()
        pids = [process.pid for process in processes]
        # As of a server: this process has libraries, PyTorch among them, that other tests share with it.
        server = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", TELLS, *map(str, pids)], **pipes, text=True)
        )
        told = float(server.stdout.readline())
        exact = sum(proportional_bytes(pid) for pid in (server.pid, *pids))
        # What is not of these alone, such as an interpreter that others run, is what differs.
        assert abs(told - exact) < SHARED_BYTES / 2
        server.communicate("\n")
        for process in processes:
            process.communicate(b"\n")


def proportional_bytes(pid: int) -> int:
    """What the system itself takes for the share of a process."""
    [line] = [
        line for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:")
    ]
    return int(line.split()[1]) * 1024

"""The machine that measures: what it is, who gets which cores, what processes take of it."""

import datetime
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8")
"""Instruction sets that the products of a model profit from, as Linux calls them."""
PACKAGES = ("numpy", "onnxruntime", "onnxruntime-gpu", "torch", "grpcio", "sacrebleu")


def describe_machine(packages: Iterable[str] = PACKAGES) -> dict[str, Any]:
    """Processor, instruction sets, cores that may be used, GPUs, load, versions and date, for a report."""
    model, flags = _read_cpuinfo(Path("/proc/cpuinfo"))
    return {
        "processor": model,
        "flags": [flag for flag in FLAGS if flag in flags],
        "cores": len(usable_cores()),
        "gpu": _describe_gpus(),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": {name: version for name in packages if (version := _version(name)) is not None},
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _describe_gpus() -> str | None:
    """Name, memory and driver of the GPUs; None where there is no driver."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return "; ".join(done.stdout.strip().splitlines()) or None


def usable_cores() -> list[int]:
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _read_cpuinfo(path: Path) -> tuple[str, frozenset[str]]:
    """Model and flags of the first processor; what Python knows where the file is missing."""
    if not path.exists():
        return platform.processor() or platform.machine(), frozenset()
    lines = path.read_text().split("\n\n")[0].splitlines()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return fields.get("model name", platform.machine()), frozenset(fields.get("flags", "").split())


@dataclass(frozen=True, kw_only=True)
class Cores:
    """The cores of a server and of the load generator, which must not take the server's."""

    server: tuple[int, ...]
    generator: tuple[int, ...]

    @property
    def are_apart(self) -> bool:
        """Whether each has its own."""
        return not set(self.server) & set(self.generator)


def share_out(num_server_threads: int) -> Cores:
    """Gives the server as many cores as it has threads, and the others to the generator. Both get all of them
    where none would be left for the generator."""
    cores = tuple(usable_cores())
    if hasattr(os, "sched_setaffinity") and len(cores) > num_server_threads:
        return Cores(server=cores[:num_server_threads], generator=cores[num_server_threads:])
    return Cores(server=cores, generator=cores)


@contextmanager
def pinned_to(cores: tuple[int, ...]) -> Iterator[None]:
    """Keeps this thread, and all threads and processes that it starts meanwhile, on these cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_seconds() -> float:
    """Processor seconds of all threads and of living children so far, however busy the machine is. Linux."""
    children = _descendants(os.getpid()) - {os.getpid()}
    ticks = 0
    for child in children:
        with suppress(OSError):
            # Behind the name, which may hold anything: utime and stime are the 14th and 15th field of all.
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def memory_of(process: int) -> int:
    """Bytes that a process and its descendants hold, each alone. Linux."""
    total = 0
    for member in _descendants(process):
        # One that has just ended holds nothing.
        with suppress(OSError):
            rollup = Path(f"/proc/{member}/smaps_rollup").read_text()
            total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
    return 1024 * total


def _descendants(process: int) -> set[int]:
    """The process and all that it started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            # Behind the name, which may hold anything: the state, and the parent.
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    family = {process}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family

"""What ran the measurement: figures mean nothing without it."""

import datetime
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8")
"""Instruction sets that the products of a model profit from, as Linux calls them."""
PACKAGES = ("numpy", "onnxruntime", "onnxruntime-gpu", "torch", "grpcio", "sacrebleu")


def describe_machine(packages: Iterable[str] = PACKAGES) -> dict[str, object]:
    """Processor, instruction sets, cores that may be used, load, versions and date, for a report."""
    model, flags = _read_cpuinfo(Path("/proc/cpuinfo"))
    return {
        "processor": model,
        "flags": [flag for flag in FLAGS if flag in flags],
        "cores": len(usable_cores()),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": {name: version for name in packages if (version := _version(name)) is not None},
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


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


def memory_of(process: int) -> int:
    """Bytes of a process and its descendants; a page that several hold is counted once, in parts (PSS)."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            # Behind the name, which may hold anything: the state, and the parent.
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    family = {process}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    total = 0
    for member in family:
        # One that has just ended holds nothing.
        with suppress(OSError):
            rollup = Path(f"/proc/{member}/smaps_rollup").read_text()
            total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return 1024 * total

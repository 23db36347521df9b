"""What this process may use of the machine, which in a container is less than all: processors and memory."""

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMORY_INFO = Path("/proc/meminfo")
MAX_THREADS = 4
"""Threads beyond which an export is no faster: most of its time goes into one, and what the gate multiplies
are some tens of rows."""


def count_threads(cgroup: Path = _CGROUP) -> int:
    """Threads for an export: what OMP_NUM_THREADS says; or the processors that this process may be scheduled
    on or that its control group has time for, whichever is less, and no more than pay."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _processor_quota(cgroup)
    usable = affinity if quota is None else max(1, min(affinity, math.ceil(quota)))
    return min(usable, MAX_THREADS)


def available_memory(cgroup: Path = _CGROUP, memory_info: Path = _MEMORY_INFO) -> int | None:
    """Bytes that this process may still take: what the machine has, or what its control group allows.

    None where neither says, as on other systems than Linux.
    """
    limits = [_machine_memory(memory_info), _group_memory(cgroup)]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def _processor_quota(cgroup: Path) -> float | None:
    """Processor time per time that the group may use; None where there is no limit or no control group."""
    try:
        if (cgroup / "cpu.max").exists():
            limit, period = (cgroup / "cpu.max").read_text().split()
        else:
            limit, period = (
                (cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")
            )
    except OSError:
        return None
    return None if limit in ("max", "-1") else int(limit) / int(period)


def _machine_memory(memory_info: Path) -> int | None:
    try:
        lines = memory_info.read_text().splitlines()
    except OSError:
        return None
    kibibytes = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines)}
    return int(kibibytes["MemAvailable"]) * 1024 if "MemAvailable" in kibibytes else None


def _group_memory(cgroup: Path) -> int | None:
    """What the limit leaves beside what the group holds; files it has read may be dropped."""
    try:
        if (cgroup / "memory.max").exists():
            limit, used = ((cgroup / f"memory.{name}").read_text().strip() for name in ("max", "current"))
            statistics, dropped = (cgroup / "memory.stat").read_text(), "inactive_file"
        else:
            limit, used = (
                (cgroup / "memory" / f"memory.{name}_in_bytes").read_text().strip()
                for name in ("limit", "usage")
            )
            statistics, dropped = (cgroup / "memory" / "memory.stat").read_text(), "total_inactive_file"
    except OSError:
        return None
    if limit == "max":
        return None
    files = dict(line.split() for line in statistics.splitlines()).get(dropped, "0")
    return max(0, int(limit) - int(used) + int(files))

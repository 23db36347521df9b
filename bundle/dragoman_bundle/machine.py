"""What this process may use of the machine, which in a container is less than all: processors and memory."""

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMORY_INFO = Path("/proc/meminfo")


def count_processors(cgroup: Path = _CGROUP) -> int:
    """The processors this process may be scheduled on, or its control group's quota where that is less."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return affinity if quota is None else max(1, min(affinity, math.ceil(quota)))


def available_memory(cgroup: Path = _CGROUP, memory_info: Path = _MEMORY_INFO) -> int | None:
    """Bytes that this process may still take: what the machine has, or what its control group allows.

    None where neither says, as on other systems than Linux.
    """
    limits = (_machine_memory(memory_info), _group_memory(cgroup))
    return min((limit for limit in limits if limit is not None), default=None)


def _quota(cgroup: Path) -> float | None:
    """Processor time per time that the group may use; None where there is no limit or no control group."""
    version_2 = cgroup / "cpu.max"
    version_1 = cgroup / "cpu"
    try:
        if version_2.exists():
            limit, period = version_2.read_text().split()
        else:
            limit = (version_1 / "cpu.cfs_quota_us").read_text().strip()
            period = (version_1 / "cpu.cfs_period_us").read_text().strip()
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
            folder, names = cgroup / "memory", ("limit", "usage")
            limit, used = ((folder / f"memory.{name}_in_bytes").read_text().strip() for name in names)
            statistics, dropped = (folder / "memory.stat").read_text(), "total_inactive_file"
    except OSError:
        return None
    if limit == "max":
        return None
    files = dict(line.split() for line in statistics.splitlines()).get(dropped, "0")
    return max(0, int(limit) - int(used) + int(files))

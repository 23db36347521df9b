"""How many processors this process may use, which in a container are fewer than the machine has."""

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def count_processors(cgroup: Path = _CGROUP) -> int:
    """The processors this process may be scheduled on, or its control group's quota where that is less."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return affinity if quota is None else max(1, min(affinity, math.ceil(quota)))


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

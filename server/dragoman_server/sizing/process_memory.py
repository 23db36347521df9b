"""Memory of a process and all that it started, as Linux shares it out among those that hold it."""

from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes; a page that several processes hold is counted once, in parts (PSS)."""

    total: int
    own: int
    """The bytes that no file backs. The system can take the others back at any time."""


def memory_of(process: int) -> Memory:
    """The memory of a process and its descendants; those that have just ended hold nothing."""
    parents: dict[int, int] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            # Behind the name, which may hold anything: the state, and the parent.
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    family = {process}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    sums = {"Pss:": 0, "Pss_Anon:": 0}
    for member in family:
        try:
            lines = (_PROC / str(member) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, *fields = line.split()
            if name in sums:
                sums[name] += int(fields[0]) * 1024
    return Memory(total=sums["Pss:"], own=sums["Pss_Anon:"])

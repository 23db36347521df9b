"""Threads for an export."""

import os

from dragoman_bundle.machine import count_processors

MAX_THREADS = 4
"""Threads beyond which an export is no faster: most of its time goes into one, and what the gate multiplies
are some tens of rows."""


def count_threads() -> int:
    """What OMP_NUM_THREADS says; or the processors that this process may use, and no more than pay."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return min(count_processors(), MAX_THREADS)

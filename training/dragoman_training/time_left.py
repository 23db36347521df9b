"""How far a long piece of work is, and how long the rest takes, in lines that a log can hold."""

import time
from collections.abc import Callable

REPORT_SECONDS = 10.0
Say = Callable[[str], None]
"""Takes lines for people."""


def progress_lines(total: int, verb: str, unit: str, report: Say) -> Callable[[int], None]:
    """A function to call with how much is done; it reports a line every few seconds.

    The time left follows from what was done since the first call: what came before it, such as learning or
    compiling, is no part of the rate.
    """
    first: tuple[float, int] | None = None
    reported = time.monotonic()

    def advance(done: int) -> None:
        nonlocal first, reported
        now = time.monotonic()
        first = first or (now, done)
        if now - reported < REPORT_SECONDS:
            return
        reported = now
        (began, num_before) = first
        left = ""
        if done > num_before:
            left = f"; {(now - began) * (total - done) / (done - num_before) / 60:.1f} min left"
        report(f"{verb} {done:,} of {total:,} {unit}{left}.")

    return advance

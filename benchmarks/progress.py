"""Says what was just measured, a line each, so that a long run can be watched."""

import time

from rich.console import Console


class Progress:
    """Counts measurements up to a total, on stderr."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._started = time.monotonic()
        self._console = Console(stderr=True, highlight=False)

    def say(self, text: str) -> None:
        """Something that is no measurement."""
        self._console.print(text)

    def advance(self, text: str) -> None:
        """A measurement and what came out."""
        self._done += 1
        elapsed = time.monotonic() - self._started
        left = elapsed / self._done * (self._total - self._done)
        self._console.print(f"\\[{self._done}/{self._total}, {left:.0f} s left] {text}")

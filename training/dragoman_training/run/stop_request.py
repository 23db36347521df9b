"""Ctrl-C and SIGTERM, granted where nothing is half done."""

import signal
from types import FrameType, TracebackType

import click

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Hears the signals while it is entered. A second one ends at once, by KeyboardInterrupt."""

    def __init__(self, *, quiet: bool = False) -> None:
        """A quiet one does not say that it heard."""
        self.requested = False
        self._quiet = quiet

    def __enter__(self) -> "StopRequest":
        self._before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if not self._quiet:
            click.echo("\nStopping after this step; once more: at once.", err=True)

"""A run's folder, which one training at a time writes to, and the signals that stop the run."""

import fcntl
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import click

_LOCK = ".lock"


def left_by_another(folder: Path) -> str | None:
    """What is there that a run which begins would write over, for people to read; None for nothing."""
    last = folder / "last.safetensors"
    if last.exists():
        return f"{last} exists: go on with --resume, or choose another folder with --out"
    for checkpoint in (folder / "best.safetensors", *sorted(folder.glob("step-*.safetensors"))):
        if checkpoint.exists():
            return f"{checkpoint} exists, of another run: choose another folder with --out, or move it away"
    return None


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Holds the folder, which is made. Raises ValueError where another process holds it.

    A run that ends before it wrote anything leaves no folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"another training is writing to {folder}: wait for it, or choose another folder with --out"
            ) from None
        try:
            yield
        finally:
            # Somebody may have deleted the folder meanwhile; what the run raised matters more.
            with suppress(OSError):
                if [path.name for path in folder.iterdir()] == [_LOCK]:
                    (folder / _LOCK).unlink()
                    folder.rmdir()


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Handles the signals while it is entered. A second one ends at once, by KeyboardInterrupt."""

    def __init__(self, *, quiet: bool = False) -> None:
        """A quiet one does not print that it was requested."""
        self.requested = False
        self._quiet = quiet

    def __enter__(self) -> "StopRequest":
        self._before = {number: signal.signal(number, self._request) for number in SIGNALS}
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if not self._quiet:
            click.echo("\nStopping after this step; once more: at once.", err=True)

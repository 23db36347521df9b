"""How far downloads are, for people: bars on a terminal, elsewhere a line now and then."""

import time
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

_SECONDS_PER_LINE = 5.0


class ProgressBar:
    """How far a download is: bars on a terminal, elsewhere a line now and then."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        self._is_terminal = console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, Any] = {}
        self._said_at = 0.0

    def __enter__(self) -> "ProgressBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, name: str, done: int, total: int | None) -> None:
        """A file has so many bytes now."""
        if self._is_terminal:
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._tasks[name], completed=done, total=total)
            return
        now = time.monotonic()
        if done == total or now - self._said_at >= _SECONDS_PER_LINE:
            self._said_at = now
            of_total = f" of {total / 1e6:.1f}" if total is not None else ""
            click.echo(f"{name}: {done / 1e6:.1f}{of_total} MB", err=True)

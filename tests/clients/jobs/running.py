"""A file job as tests run it, what it tells, and what it leaves behind."""

from pathlib import Path

import pytest

from dragoman import Settings, UnavailableError
from dragoman.jobs import FileJob

DE_EN = Settings(source="de", target="en")


PARTIAL = (".partial", ".errors.jsonl.partial", ".progress.json")
"""What the names of files end in that a job leaves behind to go on with."""


class Listener:
    """Notes what a job tells, and acts on every fortieth line."""

    def __init__(self, *actions):
        self.actions = list(actions)
        self.resumed = None
        self.lines = 0
        self.positions = []
        self.errors = []
        self.waits = []

    def on_start(self, *, resumed, failed):
        self.resumed = resumed

    def on_line(self, *, failed, position):
        self.lines += 1
        self.positions.append(position)
        if self.actions and self.lines % 40 == 0:
            self.actions.pop(0)()

    def on_save(self, *, lines):
        pass

    def on_wait(self, error, seconds):
        self.errors.append(error)
        self.waits.append(seconds)


def run(client, source: Path, output: Path, settings=DE_EN, listener=None, **options):
    flags = {name: options.pop(name) for name in ("overwrite", "restart") if name in options}
    return FileJob(source, output, settings, **options).run(client, listener or Listener(), **flags)


def write(folder: Path, content: str | bytes, *, ending: str = "") -> tuple[Path, Path]:
    """A source of this content, and an output beside it."""
    source = folder / f"in{ending}"
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    return source, folder / f"out{ending}"


def numbered(count: int, word: str = "zeile") -> str:
    return "".join(f"{word} {number}\n" for number in range(count))


def resume(client, source: Path, output: Path, settings=DE_EN, **options) -> int:
    """Runs a job; how many lines of it were done before."""
    listener = Listener()
    run(client, source, output, settings, listener=listener, **options)
    return listener.resumed


def cut_short(client, server, source: Path, output: Path, *, lines=40, **options):
    """Runs a job up to where its stream breaks behind so many lines."""
    server.servicer.disconnects.append(lines)
    with pytest.raises(UnavailableError):
        run(client, source, output, window=8, patience_seconds=0, **options)


def left_behind(output: Path) -> set[str]:
    return {path.name for path in output.parent.iterdir() if path.name.startswith(output.name)}

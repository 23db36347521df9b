"""A folder of what was made of corpora once: each entry is there whole or not at all.

Owns names, locks and the strokes in which entries appear; knows nothing of what is in them.
"""

import fcntl
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FORMAT = 1
"""Raised when what is made, or how it is kept, becomes another."""
ASK_AGAIN_SECONDS = 0.2


class CorpusCacheError(ValueError):
    """What was made of a corpus can't be kept, or is damaged. Says the way out."""


class CorpusCache:
    """Entries by what they are made of."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self.folder = folder
        self.surveys = folder / "files"
        """Where is remembered what files hold."""
        self._report = report

    def entry(self, kind: str, made_of: Mapping[str, Any], make: Callable[[Path], None]) -> Path:
        """The folder of what is made of that: `make` fills it, unless that was done before.

        `made_of` is what JSON holds. Another process that makes the same is waited for. Raises
        CorpusCacheError where the folder can't be written; nothing is left of a part.
        """
        described = {"format": FORMAT, "kind": kind, **made_of}
        text = json.dumps(described, sort_keys=True, indent=1)
        path = self.folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        if path.is_dir():
            return path
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._alone(path):
                if not path.is_dir():
                    self._make(path, text, make)
        except OSError as error:
            there = next(one for one in (self.folder, *self.folder.absolute().parents) if one.is_dir())
            free = shutil.disk_usage(there).free / 2**30
            raise CorpusCacheError(
                f"what the corpus becomes can't be written to {self.folder} ({error.strerror or error}; "
                f"{free:.1f} GiB are free): make room, or choose another folder with --corpus-cache"
            ) from error
        return path

    def _make(self, path: Path, made_of: str, make: Callable[[Path], None]) -> None:
        part = path.with_name(f"{path.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            make(part)
            (part / "made-of.json").write_text(f"{made_of}\n")
            part.rename(path)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """Waits until no other process makes the entry, and keeps others waiting."""
        with path.with_name(f"{path.name}.lock").open("ab") as lock:
            is_reported = False
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not is_reported:
                        self._report(f"Another process makes {path} of the same corpus: waiting for it.")
                    is_reported = True
                    time.sleep(ASK_AGAIN_SECONDS)
            yield

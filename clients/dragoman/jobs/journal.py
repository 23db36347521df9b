"""How far a job has come, on disk: written so that a kill at any moment leaves the old state or the new."""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.jobs.units import JobError


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A state of the job in which what it has written is safe on disk."""

    lines: int = 0
    """Units of the input that are done, failed ones among them."""
    failed: int = 0
    """Units that failed."""
    truncated: int = 0
    """Units with a sentence whose end was dropped, because it was too long."""
    limited: int = 0
    """Units whose translation ended at the limit of output tokens."""
    rated: int = 0
    """Units whose translation came with a confidence."""
    confidence: float = 0.0
    """The sum of these."""
    doubtful: Sequence[Sequence[float]] = ()
    """The least of these, lowest first, each with its unit's number."""
    output_bytes: int = 0
    """Length of the output for these units."""
    errors_bytes: int = 0
    """Length of the record of failed units."""
    model: str | None = None
    """The model that translates all units, as NAME/VERSION; None before the first translation."""
    complete: bool = False
    """Whether these are all units, and the output has but to take its name."""

    def __post_init__(self) -> None:
        """Raises ValueError for what no job can have saved."""
        kinds = (self.failed, self.truncated, self.limited, self.rated)
        counts = (self.lines, self.output_bytes, self.errors_bytes, *kinds)
        is_sound = all(type(count) is int and count >= 0 for count in counts)
        is_sound = is_sound and all(0 <= confidence <= 1 <= number for confidence, number in self.doubtful)
        is_sound = is_sound and type(self.complete) is bool and isinstance(self.model, str | None)
        if not is_sound or max(kinds) > self.lines:
            raise ValueError(f"no checkpoint: {self}")

    @property
    def holds_work(self) -> bool:
        """Whether there is something to go on with."""
        return self.lines > 0 or self.complete


class Journal:
    """The last checkpoint of a job, in one small file."""

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        """`job` is what must be the same for work to go on: the input and the settings, as JSON values."""
        self._path = path
        self._job = dict(job)

    def load(self) -> Checkpoint | None:
        """The last checkpoint, None where the job has done nothing yet.

        Raises JobError if it is another job's that has done units, or damaged.
        """
        try:
            entry = json.loads(self._path.read_bytes())
            changed = list(changes(entry["job"], self._job))
            checkpoint = Checkpoint(**entry["checkpoint"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.damaged() from None
        if not changed:
            return checkpoint
        if not checkpoint.holds_work:
            return None
        raise JobError(
            f"{self._path} belongs to another job: {', '.join(changed)}; call it as before to go on, or with "
            "--restart to begin anew"
        )

    def damaged(self) -> JobError:
        """The error where what it says can't be true."""
        return JobError(f"{self._path} is damaged; begin anew with --restart")

    def save(self, checkpoint: Checkpoint) -> None:
        """Replaces the last checkpoint. What it speaks of must be safe on disk already."""
        fresh = self._path.with_name(self._path.name + ".new")
        with naming(fresh), open_own(fresh, "w") as file:
            json.dump({"job": self._job, "checkpoint": asdict(checkpoint)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        sync_folder(self._path.parent)

    def remove(self) -> None:
        """Forgets the job."""
        self._path.unlink(missing_ok=True)
        self._path.with_name(self._path.name + ".new").unlink(missing_ok=True)


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The differences between two jobs, for people to read."""
    for key, value in now.items():
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from changes(old, value)
        elif old != value:
            # A fingerprint tells nobody anything.
            change = f"{key} was {_shown(old)} and is {_shown(value)}"
            yield "the input has changed" if key == "input" else change


def _shown(value: Any) -> Any:
    return "not set" if value is None else value


def sync_folder(folder: Path) -> None:
    """Makes names that were given or taken in a folder last, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_own(path: Path, mode: Literal["ab", "wb", "w"]) -> Any:
    """Opens a file of the job's own. Raises JobError for a symbolic link: what it leads to is another's."""

    def without_links(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)

    try:
        return open(path, mode, opener=without_links)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        what = "a symbolic link, and a job would write into what it leads to"
        raise JobError(f"{path} is {what}: remove it") from None


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Says which file it is that can't be written: the system tells only of what was opened by its name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or str(path)) from error

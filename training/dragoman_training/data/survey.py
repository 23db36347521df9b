"""What is known of a corpus' files without their pairs: how many lines they have, and a checksum.

Owns how a file is known again. One that has its size, times and inode of before is not read again.
"""

import dataclasses
import hashlib
import json
import os
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dragoman_training.data.corpus import CorpusError
from dragoman_training.data.parts import Part, open_file

CHUNK_BYTES = 1 << 22
SETTLED_NANOSECONDS = 2 * 10**9
"""A file that was changed within so short a time may be changed again without its times telling."""


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """A file as it was when it was read."""

    stamp: tuple[int, ...]
    """Size, inode, and when its contents and its entry were changed, in nanoseconds."""
    num_lines: int
    sha256: str
    """Of what it holds, unzipped."""


def stamp_of(path: Path) -> tuple[int, ...]:
    """What the system says of a file. Raises CorpusError where it is not there."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise CorpusError(f"{path}: can't be read: {error}") from error
    return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def survey(parts: Sequence[Part], memory: Path | None = None) -> dict[Path, FileFacts]:
    """The facts of all files; what is not remembered in the folder `memory` is read, and remembered there.

    Without such a folder all are read.

    Raises CorpusError for files that can't be read, and for two that have different numbers of lines.
    """
    paths = list(dict.fromkeys(path for part in parts for path in part.paths))
    with ThreadPoolExecutor(max(1, min(len(paths), os.cpu_count() or 1))) as pool:
        facts = dict(zip(paths, pool.map(lambda path: _facts(path, memory), paths), strict=True))
    for part in parts:
        if part.kind == "parallel":
            source, target = part.paths
            if facts[source].num_lines != facts[target].num_lines:
                raise CorpusError(
                    f"{source} has {facts[source].num_lines} lines, but {target} has "
                    f"{facts[target].num_lines}: they must match line by line"
                )
    return facts


def check_unchanged(facts: dict[Path, FileFacts]) -> None:
    """Raises CorpusError for a file that is not what it was when it was surveyed."""
    for path, known in facts.items():
        if stamp_of(path) != known.stamp:
            raise CorpusError(
                f"{path} was changed while it was read, and nothing of it was kept: start again when it is "
                "whole"
            )


def _facts(path: Path, memory: Path | None) -> FileFacts:
    stamp, now = stamp_of(path), time.time_ns()
    remembered = memory and memory / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}.json"
    if remembered and (known := _remembered(remembered)) and known.stamp == stamp:
        return known
    digest, num_lines, last = hashlib.sha256(), 0, b"\n"
    try:
        with open_file(path) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
                num_lines += chunk.count(b"\n")
                last = chunk[-1:]
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: can't be read: {error}") from error
    facts = FileFacts(stamp=stamp, num_lines=num_lines + (last != b"\n"), sha256=digest.hexdigest())
    check_unchanged({path: facts})
    if remembered and max(stamp[2:]) < now - SETTLED_NANOSECONDS:
        temporary = remembered.with_suffix(f".{os.getpid()}.part")
        # What can't be remembered is read again.
        with suppress(OSError):
            temporary.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(dataclasses.asdict(facts)))
            temporary.replace(remembered)
    return facts


def _remembered(file: Path) -> FileFacts | None:
    """What is remembered there; whatever is not what was written is no memory."""
    try:
        table = json.loads(file.read_text())
        return FileFacts(**{**table, "stamp": tuple(table["stamp"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None

"""The files of a corpus without all of their pairs in memory: numbers of lines, checksums, and samples.

Owns how a file is recognised. One that has its size, times and inode of before is not read again.
"""

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from dragoman_training.data import files
from dragoman_training.data.corpus import Corpus, CorpusError, Fingerprint, checksums
from dragoman_training.data.pair_filter import filtered
from dragoman_training.recipe.data import FilterConfig

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
    """The digest of what it holds, unzipped."""


def stamp_of(path: Path) -> tuple[int, ...]:
    """What the system says of a file. Raises CorpusError where it is not there."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise CorpusError(f"{path}: can't be read: {error}") from error
    return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def survey(parts: Sequence[files.Part], memory: Path | None = None) -> dict[Path, FileFacts]:
    """The facts of all files; what is not remembered in the folder `memory` is read, and remembered there.

    Without such a folder all are read.

    Raises CorpusError for files that can't be read, and for two that have different numbers of lines.
    """
    paths = list(dict.fromkeys(path for part in parts for path in part.paths))
    with ThreadPoolExecutor(max(1, min(len(paths), os.cpu_count() or 1))) as pool:
        facts = dict(zip(paths, pool.map(lambda path: _facts(path, memory), paths), strict=True))
    for part in parts:
        counts = [facts[path].num_lines for path in part.paths]
        if len(set(counts)) > 1:
            raise files.unequal(part.paths, counts)
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
        with files.open_file(path) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
                num_lines += chunk.count(b"\n")
                last = chunk[-1:]
    except files.UNREADABLE as error:
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


def read_sample(
    parts: Sequence[files.Part], facts: dict[Path, FileFacts], max_pairs: int, pair_filter: FilterConfig
) -> Corpus:
    """The pairs of at most so many lines, without those that the filter leaves out.

    Raises CorpusError for files that can't be used.
    """
    total = sum(facts[part.paths[0]].num_lines for part in parts)
    sample, before = Corpus([], []), 0
    for block in chain.from_iterable(map(files.read_blocks, parts)):
        is_whole = total <= max_pairs
        found = files.pairs_of(block) if is_whole else _some_pairs(block, before, max_pairs, total)
        before += block.num_lines
        sample.sources.extend(found.sources)
        sample.targets.extend(found.targets)
    return filtered(sample, pair_filter)


def _some_pairs(block: files.TextBlock, before: int, max_pairs: int, total: int) -> Corpus:
    """Some pairs of a block that has `before` lines before it, picked as `evenly_spaced` does."""
    first = -(-before * max_pairs // total)
    behind = -(-(before + block.num_lines) * max_pairs // total)
    indices = [number * total // max_pairs - before for number in range(first, behind)]
    if not indices:
        return Corpus([], [])
    sides = [lines.split(b"\n") for lines in block.lines]
    lines = tuple(b"".join(side[index] + b"\n" for index in indices) for side in sides)
    number = block.first_line + indices[0]
    picked = files.TextBlock(part=block.part, first_line=number, num_lines=len(indices), lines=lines)
    try:
        return files.pairs_of(picked)
    except CorpusError:
        # Its lines are not numbered like those of the file.
        files.pairs_of(block)
        raise


def fingerprint_of(parts: Sequence[files.Part]) -> str:
    """What `Corpus.fingerprint` says of all pairs, which are never in memory together."""
    found = Fingerprint()
    for pairs in map(files.pairs_of, chain.from_iterable(map(files.read_blocks, parts))):
        found.add(len(pairs), checksums(pairs))
    return str(found)

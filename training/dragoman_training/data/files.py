"""The files of training pairs, part by part, and their lines in blocks.

A part is two files that match line by line, one of tab-separated pairs, or one of a language model's text.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from dragoman_training.data.corpus import CorpusError

if TYPE_CHECKING:
    from dragoman_training.recipe.settings import DataConfig

BLOCK_LINES = 50_000
"""Lines that are read and tokenized together: some megabytes."""
BOM = b"\xef\xbb\xbf"

Kind = Literal["parallel", "tsv", "target"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Files whose lines are pairs."""

    number: int
    """Its place among the parts."""
    kind: Kind
    paths: tuple[Path, ...]
    """Source and target, or the one file."""
    weight: float = 1.0
    """How often each of its pairs comes in an epoch, on average."""


@dataclass(frozen=True, kw_only=True)
class TextBlock:
    """Some lines of a part, as they stand in its files."""

    part: Part
    first_line: int
    """Number of the first one, from 0 on."""
    num_lines: int
    lines: tuple[bytes, ...]
    """Of each file the lines, their ends included."""


@dataclass(frozen=True, kw_only=True)
class PairBlock:
    """The pairs of a block that have both sides; a language model's sources are empty."""

    sources: list[str]
    targets: list[str]
    num_one_sided: int


def parts_of(data: "DataConfig", folder: Path) -> list[Part] | None:
    """The parts of the training pairs in their order; None for a data set that is not of such files."""
    kind: Kind
    files: list[tuple[Path, ...]]
    if data.train_tsv:
        kind, files = "tsv", [(folder / path,) for path in data.train_tsv]
    elif not data.has_source:
        kind, files = "target", [(folder / path,) for path in data.train_target]
    elif data.train_source:
        pairs = zip(data.train_source, data.train_target, strict=True)
        kind, files = "parallel", [(folder / source, folder / target) for source, target in pairs]
    else:
        return None
    weights = data.train_weights or [1.0] * len(files)
    return [
        Part(number=number, kind=kind, paths=paths, weight=weight)
        for number, (paths, weight) in enumerate(zip(files, weights, strict=True))
    ]


def open_file(path: Path) -> BinaryIO:
    """A file's bytes, unzipped where it is a `.gz`."""
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def read_blocks(part: Part) -> Iterator[TextBlock]:
    """A part's lines, block by block. Raises CorpusError for files that can't be read or do not match."""
    number = 0
    with ExitStack() as stack:
        path = part.paths[0]
        try:
            streams = []
            for path in part.paths:
                streams.append(stack.enter_context(open_file(path)))
            while True:
                blocks = []
                for index, stream in enumerate(streams):
                    path = part.paths[index]
                    blocks.append(list(islice(stream, BLOCK_LINES)))
                if len({len(lines) for lines in blocks}) > 1:
                    raise _unequal(part, [number + len(lines) for lines in blocks], streams)
                if not blocks[0]:
                    return
                yield TextBlock(
                    part=part,
                    first_line=number,
                    num_lines=len(blocks[0]),
                    lines=tuple(b"".join(lines) for lines in blocks),
                )
                number += len(blocks[0])
        except (OSError, EOFError, zlib.error) as error:
            raise CorpusError(f"{path}: can't be read: {error}") from error


def _unequal(part: Part, counts: list[int], streams: list[BinaryIO]) -> CorpusError:
    (source, target) = part.paths
    counted = [count + sum(1 for _ in stream) for count, stream in zip(counts, streams, strict=True)]
    return CorpusError(
        f"{source} has {counted[0]} lines, but {target} has {counted[1]}: they must match line by line"
    )


def pairs_of(block: TextBlock) -> PairBlock:
    """The block's pairs. Raises CorpusError, naming the line, for what is no UTF-8 or has no tab."""
    sides = [
        _decoded(lines, path, block.first_line)
        for lines, path in zip(block.lines, block.part.paths, strict=True)
    ]
    if block.part.kind == "target":
        targets = [line for line in map(str.strip, sides[0]) if line]
        return PairBlock(sources=[""] * len(targets), targets=targets, num_one_sided=0)
    if block.part.kind == "tsv":
        columns = [line.split("\t") for line in sides[0]]
        for number, fields in enumerate(columns):
            if len(fields) < 2 and fields[0]:
                at = block.first_line + number + 1
                raise CorpusError(f"{block.part.paths[0]}, line {at}: no tab between source and target")
        columns = [fields for fields in columns if fields[0] or len(fields) > 1]
        sides = [[fields[0] for fields in columns], [fields[1] for fields in columns]]
    pairs = list(zip(map(str.strip, sides[0]), map(str.strip, sides[1]), strict=True))
    complete = [pair for pair in pairs if pair[0] and pair[1]]
    return PairBlock(
        sources=[source for source, _ in complete],
        targets=[target for _, target in complete],
        num_one_sided=sum(bool(source) != bool(target) for source, target in pairs),
    )


def _decoded(lines: bytes, path: Path, first_line: int) -> list[str]:
    """The lines without their ends."""
    if not first_line and lines.startswith(BOM):
        lines = lines[len(BOM) :]
    try:
        text = lines.decode()
    except UnicodeDecodeError:
        for number, line in enumerate(lines.split(b"\n"), start=first_line + 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise CorpusError(f"{path}, line {number}: not UTF-8: {error}") from error
        raise
    return [line.rstrip("\r\n") for line in text.removesuffix("\n").split("\n")]

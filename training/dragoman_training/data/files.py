"""Text files, plain or compressed, as lines, as pairs, and as a recipe's corpora; read block by block.

A part is two files that match line by line, one of tab-separated pairs, or one of a single language's text.
"""

import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, cast

from dragoman_training.data.corpus import Corpus, CorpusError
from dragoman_training.recipe.data import DataConfig

BLOCK_LINES = 50_000
"""Lines that are read and tokenized together: some megabytes."""
BOM = b"\xef\xbb\xbf"
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What is raised where a file is not there or is damaged."""

Kind = Literal["parallel", "tsv", "target"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Files whose lines are pairs."""

    number: int = 0
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
    """The lines of each file, their ends included."""

    def decoded(self) -> list[list[str]]:
        """The lines of each file without their ends. Raises CorpusError, with the line, for other bytes."""
        return [_decoded(*own, self.first_line) for own in zip(self.lines, self.part.paths, strict=True)]


def parts_of(data: DataConfig, split: str, folder: Path) -> list[Part]:
    """The parts of the `train` or `valid` pairs in their order."""
    sources, targets, tables = (getattr(data, f"{split}_{name}") for name in ("source", "target", "tsv"))
    files: list[tuple[Kind, tuple[str, ...]]] = [("tsv", (path,)) for path in tables]
    if data.has_source:
        files += [("parallel", pair) for pair in zip(sources, targets, strict=True)]
    else:
        files += [("target", (path,)) for path in targets]
    weights = data.train_weights if split == "train" and data.train_weights else [1.0] * len(files)
    return [
        Part(number=number, kind=kind, paths=tuple(folder / path for path in paths), weight=weight)
        for number, ((kind, paths), weight) in enumerate(zip(files, weights, strict=True))
    ]


def read_corpus(data: DataConfig, split: str, folder: Path) -> Corpus:
    """Reads the `train` or `valid` pairs; relative paths start at `folder`.

    Pairs with an empty side are left out. Raises CorpusError for files that can't be read, that are not
    UTF-8, or that have different numbers of lines or no pair at all.
    """
    parts = parts_of(data, split, folder)
    blocks = (pairs_of(block) for part in parts for block in read_blocks(part))
    counted = "sentence pair" if data.has_source else "sentence"
    return _joined(blocks, f"data: the {split} files hold no {counted}")


def read_parallel(source: Path, target: Path) -> Corpus:
    """The pairs of two files that match line by line. Raises CorpusError as `read_corpus` does."""
    blocks = map(pairs_of, read_blocks(Part(kind="parallel", paths=(source, target))))
    return _joined(blocks, f"{source} and {target} hold no sentence pair")


def write_parallel(corpus: Corpus, source: Path, target: Path) -> None:
    """Writes a corpus as two files that match line by line."""
    for path, lines in ((source, corpus.sources), (target, corpus.targets)):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file of UTF-8 without their ends. Raises CorpusError."""
    for block in read_blocks(Part(kind="target", paths=(path,))):
        yield from block.decoded()[0]


def read_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Lines of two files that match. Raises CorpusError, for another number of lines once one file ends."""
    for block in read_blocks(Part(kind="parallel", paths=(source, target))):
        yield from zip(*block.decoded(), strict=True)


def open_file(path: Path) -> BinaryIO:
    """A file's bytes, unzipped where it is a `.gz` or `.xz`."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return cast(BinaryIO, lzma.open(path, "rb")) if path.suffix == ".xz" else path.open("rb")


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
                    behind = [sum(1 for _ in stream) for stream in streams]
                    counts = [len(lines) + more for lines, more in zip(blocks, behind, strict=True)]
                    raise unequal(part.paths, [number + count for count in counts])
                if not blocks[0]:
                    return
                lines = tuple(map(b"".join, blocks))
                yield TextBlock(part=part, first_line=number, num_lines=len(blocks[0]), lines=lines)
                number += len(blocks[0])
        except UNREADABLE as error:
            raise CorpusError(f"{path}: can't be read: {error}") from error


def unequal(paths: Iterable[Path], counts: Iterable[int]) -> CorpusError:
    """The error for two files with so many lines."""
    source, target = (f"{path} has {count}" for path, count in zip(paths, counts, strict=True))
    return CorpusError(f"{source} lines, but {target}: they must match line by line")


def pairs_of(block: TextBlock) -> Corpus:
    """The block's pairs. Raises CorpusError, naming the line, for what is no UTF-8 or has no tab."""
    sides = block.decoded()
    if block.part.kind == "target":
        targets = [line for line in map(str.strip, sides[0]) if line]
        return Corpus([""] * len(targets), targets)
    if block.part.kind == "parallel":
        return _with_both_sides(zip(*sides, strict=True))
    pairs = []
    for number, line in enumerate(sides[0], start=block.first_line + 1):
        fields = line.split("\t")
        if len(fields) > 1:
            pairs.append((fields[0], fields[1]))
        elif line:
            raise CorpusError(f"{block.part.paths[0]}, line {number}: no tab between source and target")
    return _with_both_sides(pairs)


def _with_both_sides(pairs: Iterable[tuple[str, str]]) -> Corpus:
    """The pairs with something on either side, and how many have one side alone."""
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    complete = [pair for pair in stripped if pair[0] and pair[1]]
    one_sided = sum(bool(source) != bool(target) for source, target in stripped)
    return Corpus([source for source, _ in complete], [target for _, target in complete], one_sided)


def _joined(blocks: Iterable[Corpus], if_empty: str) -> Corpus:
    """The pairs of all blocks. Raises CorpusError, which says `if_empty`, where there is none."""
    found, one_sided = Corpus([], []), 0
    for block in blocks:
        found.sources.extend(block.sources)
        found.targets.extend(block.targets)
        one_sided += block.num_one_sided
    if not len(found):
        raise CorpusError(if_empty)
    return replace(found, num_one_sided=one_sided)


def _decoded(lines: bytes, path: Path, first_line: int) -> list[str]:
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

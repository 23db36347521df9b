"""A tokenized corpus in a folder: written once, block by block, and mapped by any number of processes.

Shapes: P pairs that are used, S texts.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.data.cache import CorpusCacheError
from dragoman_training.data.corpus import Fingerprint
from dragoman_training.data.pair_filter import DUPLICATES
from dragoman_training.data.token_ids import TokenIds, TokenizedCorpus, begins, first_of_equals
from dragoman_training.data.tokenizing import TokenBlock

SIDES = ("source", "target")
LENGTH, MARK, BEGIN, BYTE = (np.dtype(kind) for kind in ("u4", "u8", "i8", "u1"))


def write_corpus(
    folder: Path,
    blocks: Iterable[TokenBlock],
    *,
    num_parts: int,
    types: tuple[np.dtype[Any], np.dtype[Any]],
    has_texts: bool,
    leave_out_duplicates: bool,
    advance: Callable[[int], None],
) -> None:
    """Writes blocks, whose ids have these `types`; `advance` gets how many pairs were read."""
    read, part_counts = Fingerprint(), [0] * num_parts
    left_out: Counter[str] = Counter()
    num_unknown, num_copies = np.zeros(2, np.int64), 0
    lengths_of = [*SIDES, *(f"{side}-text" for side in SIDES if has_texts)]
    with ExitStack() as stack:

        def file(name: str, dtype: np.dtype[Any]) -> ArrayFile:
            return stack.enter_context(ArrayFile(folder / name, dtype))

        ids = [file(f"{side}.ids", dtype) for side, dtype in zip(SIDES, types, strict=True)]
        lengths = {name: file(f"{name}.lengths", LENGTH) for name in lengths_of}
        mark = file("marks", MARK)
        texts = [file(f"{side}-text.bytes", BYTE) for side in SIDES if has_texts]
        for block in blocks:
            read.add(block.num_read, block.checksums)
            left_out.update(block.left_out)
            num_unknown += block.num_unknown
            num_copies += block.num_copies
            for index, side in enumerate(SIDES):
                ids[index].append(block.sides[index].ids_N)
                lengths[side].append(block.sides[index].length_S)
                if block.texts is not None:
                    lines = [text.encode() for text in block.texts[index]]
                    texts[index].append(np.frombuffer(b"".join(lines), BYTE))
                    lengths[f"{side}-text"].append(np.fromiter(map(len, lines), LENGTH, len(lines)))
            mark.append(block.mark_P)
            part_counts[block.part_number] += len(block.mark_P)
            advance(read.num_pairs)
        sizes = [file_.length for file_ in ids]
        text_sizes = [file_.length for file_ in texts]
    if leave_out_duplicates:
        mark_P = np.fromfile(folder / "marks", MARK)
        is_first = first_of_equals(mark_P)
        left_out[DUPLICATES] = int((~is_first).sum())
        cuts = np.cumsum(part_counts)[:-1]
        part_counts = [int(is_first_of_part.sum()) for is_first_of_part in np.split(is_first, cuts)]
        write_array(folder / "marks", mark_P[is_first])
    for name in lengths_of:
        _write_index(folder, name, is_first if leave_out_duplicates else None)
    summary = {
        "num_pairs": sum(part_counts),
        "types": [dtype.str for dtype in types],
        "num_tokens": sizes,
        "num_bytes": text_sizes,
        "part_counts": part_counts,
        "num_read": read.num_pairs,
        "fingerprint": str(read),
        "left_out": dict(left_out),
        "num_unknown": num_unknown.tolist(),
        "num_copies": num_copies,
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1))


def _write_index(folder: Path, name: str, is_used: NDArray[np.bool_] | None) -> None:
    """Where sentences begin, and how long they are, of those that are used."""
    length_S = np.fromfile(folder / f"{name}.lengths", LENGTH)
    begin_S = begins(length_S)
    if is_used is not None:
        begin_S, length_S = begin_S[is_used], length_S[is_used]
    # Most corpora's sentences are short, and lengths are gone through whole in each epoch.
    if not len(length_S) or int(length_S.max()) < 1 << 16:
        length_S = length_S.astype(np.uint16)
    write_array(folder / f"{name}.lengths", length_S)
    write_array(folder / f"{name}.begins", begin_S)


def open_corpus(folder: Path, weights: list[float]) -> TokenizedCorpus:
    """Maps what `write_corpus` wrote; the parts come as often as `weights` says.

    Raises CorpusCacheError where a file is missing or has another size.
    """
    try:
        summary = json.loads((folder / "summary.json").read_text())
        num_pairs = int(summary["num_pairs"])
        types = [np.dtype(name) for name in summary["types"]]
        shares = list(zip(summary["part_counts"], weights, strict=True))
        num_bytes = summary["num_bytes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusCacheError(f"{folder} is damaged ({error}): delete it, and it is made anew") from error
    source, target = (
        TokenIds(map_array(folder / f"{side}.ids", dtype, length), *_index(folder, side, num_pairs))
        for side, dtype, length in zip(SIDES, types, summary["num_tokens"], strict=True)
    )
    texts = []
    for name, size in zip((f"{side}-text" for side in SIDES), num_bytes, strict=False):
        bytes_N = map_array(folder / f"{name}.bytes", BYTE, size)
        texts.append(MappedTexts(TokenIds(bytes_N, *_index(folder, name, num_pairs))))
    return TokenizedCorpus(
        sides=(source, target),
        texts=(texts[0], texts[1]) if texts else None,
        mark_P=map_array(folder / "marks", MARK, num_pairs),
        num_read=summary["num_read"],
        fingerprint=summary["fingerprint"],
        left_out=summary["left_out"],
        num_unknown=(summary["num_unknown"][0], summary["num_unknown"][1]),
        num_copies=summary["num_copies"],
        shares=shares,
    )


def write_links(
    folder: Path, blocks: Iterable[TokenIds], dtype: np.dtype[Any], advance: Callable[[int], None]
) -> None:
    """Writes the links of pairs; `advance` gets how many."""
    with ArrayFile(folder / "links", dtype) as links, ArrayFile(folder / "links.lengths", LENGTH) as lengths:
        for block in blocks:
            links.append(block.ids_N)
            lengths.append(block.length_S)
            advance(lengths.length)
    _write_index(folder, "links", None)


def open_links(folder: Path, dtype: np.dtype[Any], num_pairs: int) -> TokenIds:
    """Maps what `write_links` wrote. Raises CorpusCacheError where a file is missing or has another size."""
    begin_P, length_P = _index(folder, "links", num_pairs)
    length = int(begin_P[-1]) + int(length_P[-1])
    return TokenIds(map_array(folder / "links", dtype, length), begin_P, length_P)


def _index(folder: Path, name: str, num_pairs: int) -> tuple[NDArray[Any], NDArray[Any]]:
    lengths = folder / f"{name}.lengths"
    is_short = lengths.is_file() and lengths.stat().st_size == 2 * num_pairs
    length_type = np.dtype(np.uint16) if is_short else LENGTH
    begin_S = map_array(folder / f"{name}.begins", BEGIN, num_pairs)
    return begin_S, map_array(lengths, length_type, num_pairs)


class ArrayFile:
    """A one-dimensional array that grows at its end."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._stream = path.open("wb")
        self.length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Writes some more values. Raises OSError where the disk is full."""
        self._stream.write(np.ascontiguousarray(values, self._dtype).data)
        self.length += len(values)

    def __enter__(self) -> "ArrayFile":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._stream:
            if error is None:
                self._stream.flush()
                os.fsync(self._stream.fileno())


def write_array(path: Path, values: NDArray[Any]) -> None:
    with ArrayFile(path, values.dtype) as file:
        file.append(values)


def map_array(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    """The array of a file. Raises CorpusCacheError where that has another length."""
    found = path.stat().st_size if path.is_file() else None
    if found != length * dtype.itemsize:
        raise CorpusCacheError(
            f"{path} is damaged: it has {found} bytes instead of {length * dtype.itemsize}; delete the "
            f"folder {path.parent}, and it is made anew"
        )
    if not length:
        return np.empty(0, dtype)
    # Without the subclass, whose every slice is made in Python.
    return np.asarray(np.memmap(path, dtype, mode="r", shape=(length,)))


@dataclass(frozen=True, eq=False)
class MappedTexts:
    """Texts that stand in a file one behind the other."""

    bytes_of: TokenIds

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self.bytes_of)):
            yield self.bytes_of[number].tobytes().decode()

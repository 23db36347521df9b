"""Whether a checkpoint's export has room in memory, said before it is tried.

Owns the estimate, which is made of the sizes of files and of what exports of several sizes took.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path


@dataclass(frozen=True)
class MemoryNeed:
    """What an export takes at its largest."""

    base_bytes: int
    """Of a model that takes nothing."""
    copies: int
    """Copies of the weights as float32: the checkpoint's, the reference's, those rounded to eight bits,
    those of graphs, and what onnxruntime packs of them."""


WITH_PYTORCH = MemoryNeed(base_bytes=700 << 20, copies=7)
"""Of a checkpoint that was trained here."""
WITHOUT_PYTORCH = MemoryNeed(base_bytes=320 << 20, copies=5)
"""Of a model from elsewhere: 1.73 GB were taken by three precisions of weights of 0.31 GB, 0.61 of 0.07."""


class MemoryTooSmallError(ValueError):
    """There is less memory than an export of this checkpoint takes."""


def check_memory(checkpoints: Sequence[Path], available: int | None, need: MemoryNeed) -> None:
    """Raises MemoryTooSmallError where `available` bytes are too few; None stands for no known limit.

    A folder's largest file is its weights.
    """
    files = [_weights_of(path) for path in checkpoints]
    weight_bytes = sum(map(float32_bytes, filter(None, files)))
    needed = need.base_bytes + need.copies * weight_bytes
    if available is None or needed <= available:
        return
    names = " and ".join(str(path) for path in checkpoints)
    raise MemoryTooSmallError(
        f"{names} holds {weight_bytes / 1e9:.1f} GB of weights as float32, whose export takes about "
        f"{needed / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are available: make room, take a "
        "larger machine, or say with --max-memory how many GB it may take"
    )


def float32_bytes(file: Path) -> int:
    """Bytes of a file's weights as float32: those its header tells of, or else its size."""
    if file.suffix != ".safetensors":
        return os.stat(file).st_size
    try:
        with file.open("rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
        return 4 * sum(map(prod, shapes))
    except (ValueError, KeyError, TypeError, AttributeError, MemoryError, OverflowError):
        # What is damaged is told of by what reads it.
        return os.stat(file).st_size


def _weights_of(path: Path) -> Path | None:
    if path.is_file():
        return path
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else []
    return max(files, key=lambda file: file.stat().st_size, default=None)

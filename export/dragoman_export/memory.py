"""Whether a checkpoint's export has room in memory, said before it is tried.

Owns the estimate, which is made of the sizes of files and of what exports of several sizes took.
"""

import json
import os
from collections.abc import Sequence
from math import prod
from pathlib import Path

BASE_BYTES = 700 << 20
"""What an export takes whose model takes nothing: PyTorch, and the exporter's own work."""
COPIES = 7
"""Copies of the weights as float32 that an export has at its largest: the checkpoint's, PyTorch's, those
rounded to eight bits, those of both graphs, fp32's and int8's, and what onnxruntime packs of them."""


class MemoryTooSmallError(ValueError):
    """There is less memory than an export of this checkpoint takes."""


def check_memory(checkpoints: Sequence[Path], available: int | None) -> None:
    """Raises MemoryTooSmallError where `available` bytes are too few; None stands for no known limit.

    A folder's largest file is its weights.
    """
    files = [_weights_of(path) for path in checkpoints]
    weight_bytes = sum(map(float32_bytes, filter(None, files)))
    check_weights(" and ".join(str(path) for path in checkpoints), weight_bytes, available)


def check_weights(name: str, weight_bytes: int, available: int | None) -> None:
    """As `check_memory`, of weights that take so many bytes as float32."""
    needed = BASE_BYTES + COPIES * weight_bytes
    if available is None or needed <= available:
        return
    raise MemoryTooSmallError(
        f"{name} holds {weight_bytes / 1e9:.1f} GB of weights as float32, whose export takes about "
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

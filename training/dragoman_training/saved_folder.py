"""Folders of what was trained on text: a manifest in JSON, words, arrays; written whole, and read strictly.

Owns their form. Must not know what the words and arrays mean.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_free(folder: Path) -> None:
    """Raises ValueError where something is there already, before a training of minutes."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists: choose another folder with --out, or move it away")


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A folder that takes the place of `folder` once all is written, and of which nothing is left before.

    Raises ValueError as `check_free`.
    """
    check_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir()
    try:
        yield partial
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def read_folder(
    folder: Path, manifest_name: str, *, kind: str, command: str, version: int
) -> Iterator[Mapping[str, Any]]:
    """The manifest of a saved `kind` that `command` writes; damage that is found within becomes ValueError.

    Raises ValueError for a folder that holds none, or one of another format version.
    """
    path = folder / manifest_name
    if not path.is_file():
        raise ValueError(f"{folder} is no saved {kind}: it has no {manifest_name}; `{command}` writes one")
    try:
        manifest = json.loads(path.read_text("utf-8"))
        found = manifest["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error!r}): train the {kind} again") from error
    if found != version:
        versions = f"format version {found}, and this release reads {version}"
        raise ValueError(f"{folder} has {versions}: train it again")
    try:
        yield manifest
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder} is damaged ({error}): train the {kind} again") from error


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Writes a manifest that `read_folder` reads."""
    path.write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def write_words(path: Path, words: tuple[str, ...]) -> None:
    """Writes a word a line."""
    path.write_text("".join(f"{word}\n" for word in words), "utf-8", newline="\n")


def read_words(path: Path, number: int | None = None) -> tuple[str, ...]:
    """Raises ValueError where there are more or fewer than `number`."""
    words = tuple(path.read_text("utf-8").split("\n")[:-1])
    if number is not None and len(words) != number:
        raise ValueError(f"{path.name} has {len(words)} words")
    return words


def write_sides(folder: Path, source: tuple[str, ...], target: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Writes the words of both sides, and returns what the manifest says of them."""
    write_words(folder / "source.words", source)
    write_words(folder / "target.words", target)
    return {"num_words": {"source": len(source), "target": len(target)}}


def read_sides(folder: Path, manifest: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The words of both sides. Raises ValueError where there are more or fewer than the manifest says."""
    return [read_words(folder / f"{one}.words", manifest["num_words"][one]) for one in ("source", "target")]


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes arrays, compressed."""
    np.savez_compressed(path, allow_pickle=False, **arrays)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Raises ValueError for what is not there or damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    # Of what is damaged, zipfile, zlib and NumPy raise a good many kinds of errors.
    except Exception as error:
        raise ValueError(f"{path.name} can't be read: {error}") from error

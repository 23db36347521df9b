"""Saved aligners that are served: each a folder of `dragoman align train` under the name that requests say.

Reads them by the entry point that the package of aligners registers: the server does not know that package.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from dragoman_server.errors import ServerFileError
from dragoman_server.metrics.translation import AlignerMetrics, Metrics
from dragoman_server.options import missing_extra

TextPair = tuple[str, str]
"""A text and its translation."""


class Link(Protocol):
    """A link between two words, as half-open ranges of code points."""

    @property
    def source(self) -> tuple[int, int]: ...

    @property
    def target(self) -> tuple[int, int]: ...

    @property
    def weight(self) -> float: ...


class WordLinker(Protocol):
    """An aligner links words. Threads may share it."""

    def link(self, pairs: Sequence[TextPair]) -> Sequence[Sequence[Link]]:
        """The links of each pair by target word and falling weight. What shares a call changes nothing."""

    def count_words(self, text: str) -> int:
        """How many words it links of a text."""

    def is_swapped(self, pairs: Sequence[TextPair]) -> bool:
        """Whether the texts' words are rather those of the other side, of all pairs together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ServedAligner:
    """An aligner that requests may name."""

    name: str
    linker: WordLinker
    metrics: AlignerMetrics

    @property
    def key(self) -> str:
        """The name of it in log, metrics and traces, where models are named: no model has such a one."""
        return self.metrics.key


_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
# A short pair, and one longer than what models 3 to 5 climb from: so all is compiled before a caller comes.
_WARMING = (("a b.", "c d."), ("a " * 120, "b " * 120))

Stamp = tuple[tuple[str, int, int, int], ...]
OpenAligner = Callable[[str], WordLinker]
"""The entry point's object. Raises ValueError where the folder holds no aligner."""


class Aligners:
    """Those that are in use."""

    def __init__(self, folder: Path | None, metrics: Metrics) -> None:
        """`folder`: None for no aligners."""
        self._folder = folder
        self._metrics = metrics
        self._linkers: Mapping[str, tuple[Stamp, WordLinker]] = {}
        self.by_name: Mapping[str, ServedAligner] = {}

    def read(self) -> dict[str, tuple[Stamp, WordLinker]]:
        """Reads the folder again, and uses nothing of it yet; what has not changed stays as it is.

        Each that is read has linked words then. Raises ServerFileError, and MissingExtraError.
        """
        if self._folder is None:
            return {}
        found = {}
        for path in _paths(self._folder):
            stamp = _stamp(path)
            before = self._linkers.get(path.name)
            found[path.name] = before if before and before[0] == stamp else (stamp, _open(path))
        return found

    def use(self, found: Mapping[str, tuple[Stamp, WordLinker]]) -> None:
        """Replaces them from now on. A call that is under way ends with the one that it has."""
        self._linkers = found
        used = {}
        for name, (_, linker) in found.items():
            before = self.by_name.get(name)
            metrics = before.metrics if before else AlignerMetrics(self._metrics, name)
            used[name] = ServedAligner(name=name, linker=linker, metrics=metrics)
        for name, aligner in self.by_name.items():
            if name not in used:
                aligner.metrics.on_end()
        self.by_name = used


def _paths(folder: Path) -> Iterator[Path]:
    """The folders in it. Raises ServerFileError for what is none, and for none."""
    try:
        # What is hidden is being written.
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise ServerFileError(f"--aligners {folder} can't be read: {error.strerror or error}") from error
    if not paths:
        way_out = f"`dragoman align train --out {folder / 'NAME'}` writes one"
        raise ServerFileError(f"--aligners {folder} holds no aligner: {way_out}")
    for path in paths:
        if not path.is_dir():
            raise ServerFileError(f"{path} is no folder: --aligners takes one with a folder for each aligner")
        if not _NAME.fullmatch(path.name):
            rule = "letters, digits, dots, underscores and hyphens, begins with a letter or digit"
            name = f"an aligner's name has {rule}, and is no longer than 64 characters"
            raise ServerFileError(f"{path}: {name}")
        yield path


def _stamp(folder: Path) -> Stamp:
    """A mark that differs where its files do. Raises ServerFileError."""
    try:
        states = [(entry.name, entry.stat()) for entry in os.scandir(folder)]
    except OSError as error:
        raise ServerFileError(f"{folder} can't be read: {error.strerror or error}") from error
    return tuple(sorted((name, state.st_ino, state.st_mtime_ns, state.st_size) for name, state in states))


def _open(path: Path) -> WordLinker:
    """An aligner that has linked words. Raises ServerFileError and MissingExtraError."""
    (entry_point,) = entry_points(group="dragoman.aligners", name="folder")
    try:
        opener: OpenAligner = entry_point.load()
    except ModuleNotFoundError as error:
        raise missing_extra("--aligners", error, *entry_point.extras) from error
    except RuntimeError as error:
        raise ServerFileError(
            f"--aligners: what numba compiles can be kept nowhere ({error}); let the environment variable "
            "NUMBA_CACHE_DIR name a folder that can be written"
        ) from error
    try:
        linker = opener(str(path))
    except OSError as error:
        raise ServerFileError(f"{path} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ServerFileError(str(error)) from error
    try:
        linker.link(_WARMING)
    except Exception as error:
        # Its files fit each other as far as they were looked at.
        raise ServerFileError(f"{path} links no words ({error!r}): train the aligner again") from error
    return linker

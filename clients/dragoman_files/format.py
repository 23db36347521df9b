"""The interface of a file format: it reads units from an input, and states its traits."""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import BinaryIO, Literal, Protocol

from dragoman_files.unit import Unit

FormatName = Literal[
    "text", "jsonl", "json", "csv", "tsv", "srt", "vtt", "html", "markdown", "po", "xliff", "docx"
]
TextFormat = Literal["html"]
"""The format of texts that have tags."""


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """The options of a format that a file's name does not tell."""

    keys: tuple[str, ...] = ()
    """Keys whose strings are translated. JSON lines take one, "text" by default; JSON takes any number,
    all by default."""
    columns: tuple[str, ...] = ()
    """Columns of a table that are translated: names of the first row, or numbers from 1."""
    encoding: str | None = None
    """The encoding of input and output; None is UTF-8, or the one that the file itself declares."""
    join_lines: bool | None = None
    """Whether a line break within a text is taken for a space. None: where the format is of subtitles."""

    def of(self, name: FormatName) -> "FormatOptions":
        """The options with what the format says where they do not."""
        is_joined = name in ("srt", "vtt") if self.join_lines is None else self.join_lines
        return replace(self, join_lines=is_joined)


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input file, open at its beginning and decompressed."""

    name: str
    """The input's name for people."""
    stream: BinaryIO
    """The input's bytes; can be set back to the beginning."""
    position: Callable[[], int]
    """Bytes of the file, as it lies on disk, that were read so far."""
    source_language: str | None = None
    """The language of its texts, where that is known."""
    target_language: str | None = None
    """The language of its translation, where that is known."""
    check: Callable[[], None] = lambda: None
    """Asked now and then while a document is read: raises where nobody wants it any more."""

    def rewound(self) -> "Input":
        """This input, from its first byte."""
        self.stream.seek(0, io.SEEK_SET)
        return self


class Format(Protocol):
    """Takes the units out of an input file. What they write, one after the other, is the output."""

    name: FormatName
    noun: str
    """The plural noun for its units."""
    text_format: TextFormat | None
    """The format of its texts, where they have one."""
    checks_encoding: bool
    """Whether `units` itself says what is wrong with an input in another encoding."""

    def units(self, source: Input) -> Iterable[Unit]:
        """All units in their order, the same ones of the same input whenever it is read.

        Raises FileError, before the first unit, for what is no file of this format.
        """

"""Files that come over HTTP, in memory: their texts, and the file again with translations.

The only part of the server that knows the formats of files.
"""

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import BinaryIO

from dragoman_files.content import HEAD_BYTES, check_is_text, check_is_utf8
from dragoman_files.document import size_of
from dragoman_files.format import (
    UNIT_BYTES,
    Container,
    FileError,
    Format,
    FormatOptions,
    Input,
    Reading,
    Unit,
    UnitError,
)
from dragoman_files.opening import input_format, is_compressed, known_suffixes, open_format
from dragoman_server.errors import refusal
from dragoman_server.web.fields import Fields, UploadedFile

MAX_UNPACKED_RATIO = 20
"""A document may unpack to so many times the bytes that a request may have."""


def suffixes() -> list[str]:
    """The suffixes of files that are translated; `.gz` may stand behind all that are no zip."""
    return [".txt", *known_suffixes()]


@dataclass(frozen=True, kw_only=True)
class FileTexts:
    name: str
    """The file's name, without folders."""
    units: Sequence[Unit]
    """Its texts, with what stands around them."""
    is_markup: bool
    package: Container | None
    """The zip around its texts; None where there is none."""

    def write(self, translations: Sequence[str | None], check: Callable[[], None]) -> bytes:
        """The file with its translations; what has none stays as it is.

        `check` is called now and then, and raises what ends the work.
        """
        parts = io.BytesIO()
        for unit, translation in zip(self.units, translations, strict=True):
            check()
            try:
                parts.write(unit.write(translation, {}))
            except UnitError:
                parts.write(unit.write(None, {}))
        if is_compressed(PurePath(self.name)):
            return gzip.compress(parts.getvalue(), mtime=0)
        if self.package is None:
            return parts.getvalue()
        packed = io.BytesIO()
        parts.seek(0)
        self.package.pack(parts, packed)
        return packed.getvalue()

    def translated_name(self, target: str) -> str:
        """The name of the translation: book.de.html.gz becomes book.de.en.html.gz."""
        path = PurePath(self.name)
        end = path.suffix
        if is_compressed(path):
            path = PurePath(path.stem)
            end = path.suffix + end
        language = re.sub(r"[^\w-]", "", target)
        return f"{path.stem}.{language}{end}"


def options_of(fields: Fields) -> FormatOptions:
    """The options of a file in a request: `columns`, `keys`, `joinLines` (or `join_lines`).

    Raises InvalidRequestError.
    """
    name = "join_lines" if fields.values.get("join_lines") is not None else "joinLines"
    is_given = fields.values.get(name) is not None
    return FormatOptions(
        columns=tuple(fields.strings("columns") or ()),
        keys=tuple(fields.strings("keys") or ()),
        join_lines=fields.flag(name, False) if is_given else None,
    )


def open_file(
    file: UploadedFile,
    options: FormatOptions,
    *,
    max_bytes: int,
    source_language: str = "",
    target_language: str = "",
    check: Callable[[], None],
) -> FileTexts:
    """Reads all of it. Raises InvalidRequestError for what is no file of its format, and what `check` raises,
    which is called now and then."""
    name = PurePath(file.name.replace("\\", "/")).name
    path = PurePath(name)
    try:
        unpacked = _unpacked(name, file.content, max_bytes) if is_compressed(path) else file.content
        content = io.BytesIO(unpacked)
        format_ = open_format(input_format(path, None), options)
        _check(format_, name, content, max_bytes)
        source = Input(
            name=name,
            stream=content,
            position=content.tell,
            source_language=source_language or None,
            target_language=target_language or None,
            check=check,
        )
        reading = Reading(source, size_of(content))
        units = []
        for unit in format_.units(source):
            reading.take(UNIT_BYTES)
            units.append(unit)
    except FileError as error:
        raise refusal("file", error.neutral) from error
    return FileTexts(
        name=name,
        units=units,
        is_markup=format_.text_format == "html",
        package=None if format_.package is None else format_.package(content),
    )


def _unpacked(name: str, content: bytes, max_bytes: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            unpacked = packed.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{name} is not compressed by gzip, or is broken: {error}") from error
    if len(unpacked) > max_bytes:
        raise FileError(f"{name} unpacks to more than {max_bytes} bytes, the most that a request may have")
    return unpacked


def _check(format_: Format, name: str, content: BinaryIO, max_bytes: int) -> None:
    """Raises FileError."""
    if format_.package is not None:
        try:
            with zipfile.ZipFile(content) as archive:
                unpacked = sum(info.file_size for info in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise FileError(f"{name} is no .{format_.name}: {error}") from error
        if unpacked > MAX_UNPACKED_RATIO * max_bytes:
            raise FileError(f"{name} unpacks to {unpacked} bytes; at most {MAX_UNPACKED_RATIO * max_bytes}")
        return
    head = content.read(HEAD_BYTES)
    check_is_text(head, name)
    if not format_.checks_encoding:
        check_is_utf8(head, name)

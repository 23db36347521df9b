"""Word's documents (.docx): the texts of paragraphs in the body, headers, footers and notes.

A document is a zip of parts (ECMA-376). Those with text are read, one after the other with a NUL between
them, as one document; all others are copied. Runs that look the same are one text: Word cuts sentences, even
words, into many, by who typed them when.
"""

import copy
import functools
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from dragoman_files.document import MAX_DOCUMENT_BYTES, Segment, counted, size_of, units_of
from dragoman_files.encodings import Codec, decode
from dragoman_files.format import (
    ITEM_BYTES,
    FileError,
    Format,
    FormatOptions,
    Input,
    Reading,
    Unit,
)
from dragoman_files.tags import Tagged, encode_with, runs
from dragoman_files.word_looks import pieces_of, write_looks
from dragoman_files.xml_events import Event, declared_encoding, escape, events

_SEPARATOR = "\0"
"""Stands in no XML."""
_TYPES = "[Content_Types].xml"
_MAIN = (".document.main+xml", ".template.main+xml", ".document.macroEnabled.main+xml")
_NOTES = tuple(f".{kind}+xml" for kind in ("header", "footer", "footnotes", "endnotes"))
"""How the types of parts end that have text."""
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""The errors of a zip that is damaged, encrypted, or compressed in an odd way."""
_TIMES_HELD = 4
"""How often the parts with text are in memory at once."""


def word_format(options: FormatOptions) -> Format:
    """A document that is a zip of XML."""

    def units(source: Input) -> list[Unit]:
        """All units. Raises FileError for what is no such document, or a damaged one."""
        texts, segments = [], []
        start = 0
        reading = Reading(source, size_of(source.rewound().stream))
        for name, content in _parts(source.rewound().stream, source.name, reading):
            text, codec = decode(content, f"{name} in {source.name}", None, declared_encoding(content[:200]))
            if codec.name != "utf-8":
                raise FileError(f"{name} in {source.name} is in {codec.name}, which Word never writes")
            try:
                of_part = sorted(
                    counted(_segments(text, reading), reading), key=lambda segment: segment.start
                )
            except FileError as error:
                raise FileError(f"{name} in {source.name}: {error}") from error
            segments += [
                replace(segment, start=segment.start + start, end=segment.end + start) for segment in of_part
            ]
            texts.append(text)
            start += len(text) + len(_SEPARATOR)
        joined = _SEPARATOR.join(texts)
        codec = Codec(name="utf-8", mark=b"")
        return units_of(joined, segments, codec, source.position(), join=bool(options.join_lines))

    return Format(name="docx", noun="texts", units=units, text_format="html")


class WordPackage:
    """The zip around the parts: as the input's, but for the texts."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def pack(self, parts: BinaryIO, target: BinaryIO) -> None:
        """Writes the document whose parts with text are these. The same parts give the same bytes."""
        self._source.seek(0)
        texts = parts.read().split(_SEPARATOR.encode())
        with zipfile.ZipFile(self._source) as archive, zipfile.ZipFile(target, "w") as written:
            contents = dict(zip(_names(archive), texts, strict=True))
            for info in archive.infolist():
                with written.open(copy.copy(info), "w") as part:
                    if info.filename in contents:
                        part.write(contents[info.filename])
                    else:
                        with archive.open(info) as unchanged:
                            shutil.copyfileobj(unchanged, part)

    def unpacked_size(self, path: Path) -> int | None:
        """Bytes of the parts with text of a document that is packed, NULs included; None where it is none."""
        try:
            with zipfile.ZipFile(path) as archive:
                sizes = [archive.getinfo(name).file_size for name in _names(archive)]
        except (FileNotFoundError, KeyError, FileError, *_BROKEN):
            return None
        return sum(sizes) + len(sizes) - 1


def _parts(stream: BinaryIO, name: str, reading: Reading) -> Iterator[tuple[str, bytes]]:
    """The parts with text, by name. All that there are can be read."""
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            if sum(info.file_size for info in members) > 4 * MAX_DOCUMENT_BYTES:
                raise FileError(f"it unpacks to more than {4 * MAX_DOCUMENT_BYTES >> 20} MiB")
            num_named = Counter(info.filename for info in members)
            if len(num_named) < len(members):
                raise FileError(f"it holds {num_named.most_common(1)[0][0]!r} more than once")
            names = _names(archive)
            reading.take(_TIMES_HELD * sum(archive.getinfo(part).file_size for part in names))
            damaged = archive.testzip()
            if damaged is not None:
                raise FileError(f"{damaged} in it is damaged")
            for part in names:
                yield part, archive.read(part)
    except FileError as error:
        raise FileError(f"{name} can't be read as a document of Word: {error}") from None
    except _BROKEN as error:
        raise FileError(
            f"{name} can't be read as a document of Word (.docx), which is a zip file: {error}. Where it has "
            "a password or is of another kind, save it as .docx without one"
        ) from None


def _names(archive: zipfile.ZipFile) -> list[str]:
    """The names of the parts with text, the body first. Raises FileError where there is no body."""
    try:
        content = archive.read(_TYPES)
    except KeyError:
        raise FileError(f"the zip has no {_TYPES}") from None
    types = {
        (event.attribute("PartName") or "").removeprefix("/"): event.attribute("ContentType") or ""
        for event in events(content.decode("utf-8-sig", errors="replace"))
        if event.kind == "start" and event.name == "Override"
    }
    members = set(archive.namelist())
    main = [name for name, kind in types.items() if kind.endswith(_MAIN) and name in members]
    if not main:
        raise FileError("none of its parts is the text of a document")
    return main + sorted(name for name, kind in types.items() if kind.endswith(_NOTES) and name in members)


def _segments(source: str, reading: Reading) -> Iterator[Segment]:
    for paragraph in _paragraphs(events(source, reading.check), reading):
        for run in runs(source, pieces_of(source, paragraph, reading), reading):
            tagged = Tagged(source, run, _encode)
            has_looks = any(piece.kind not in ("text", "glue") for piece in run.pieces)
            yield Segment(
                start=run.start,
                end=run.end,
                text=tagged.html,
                readable=run.text,
                write=functools.partial(write_looks, source, run, tagged) if has_looks else tagged.write,
            )


# A line break would be a space; the texts of a paragraph have none.
_encode = encode_with(lambda text: escape(text.replace("\n", " ")))


def _paragraphs(found: Iterable[Event], reading: Reading) -> Iterator[list[Event | None]]:
    """The events of each paragraph, without its tags; None for a paragraph within it, as of a text box."""
    open_: list[list[Event | None]] = []
    for event in found:
        if event.name == "p" and event.kind == "start":
            if open_:
                open_[-1].append(None)
            open_.append([])
        elif event.name == "p" and event.kind == "end":
            paragraph = open_.pop()
            yield paragraph
            reading.give_back(ITEM_BYTES * len(paragraph))
        elif open_:
            reading.take(ITEM_BYTES)
            open_[-1].append(event)

"""Documents that are a zip of parts: those of Word, PowerPoint and Excel, OpenDocument's, and books (EPUB).

The parts with text are read, one after the other with a NUL between them, as one document; all others are
copied. A format is a row of `_FORMATS`: it says which parts have text, and how each is read.
"""

import copy
import posixpath
import re
import shutil
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

from dragoman_files import hypertext
from dragoman_files.content import Codec, decode
from dragoman_files.document import MAX_DOCUMENT_BYTES, Segment, counted, size_of, units_of
from dragoman_files.format import FileError, Format, FormatName, FormatOptions, Input, Reading, Unit
from dragoman_files.looks import pieces_of, write_looks
from dragoman_files.texts import ELEMENTS
from dragoman_files.xml_texts import DECLARED, Event, Grammar, events

_SEPARATOR = "\0"
"""Stands in no XML."""
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""The errors of a zip that is damaged, encrypted, or compressed in an odd way."""
_MAX_INDEX_BYTES = 1 << 24
"""The largest part that says what others are."""
_TIMES_HELD = 4
"""How often the parts with text are in memory at once."""


class _Part(NamedTuple):
    """How a part is read, and what makes of it what it is in the target language before that."""

    segments: Callable[[str, Reading], Iterable[Segment]]
    prepare: Callable[[str, Reading], str] = lambda text, reading: text


_Parts = Mapping[str, _Part]
"""The parts with text of an archive, by name, in order."""


def _tags(archive: zipfile.ZipFile, name: str, tag: str) -> Iterator[Event]:
    """The start tags of this name in a part. Raises FileError where there is no such part."""
    if name not in archive.namelist():
        raise FileError(f"the zip has no {name}")
    if archive.getinfo(name).file_size > _MAX_INDEX_BYTES:
        raise FileError(f"{name} in it has more than {_MAX_INDEX_BYTES >> 20} MiB")
    for event in events(archive.read(name).decode("utf-8-sig", errors="replace")):
        if event.kind == "start" and event.name == tag:
            yield event


# OOXML (ECMA-376). Runs that look the same are one text: Office cuts sentences, even words, into many, by who
# typed them when.
_RUNS = _Part(segments=Grammar(paragraphs=frozenset(("p",)), pieces=pieces_of, write=write_looks).segments)
_CELLS = Grammar(paragraphs=frozenset(("si", "is", "text")), joins=False, pieces=pieces_of, write=write_looks)
_DRAWN = dict.fromkeys((".chart+xml", ".diagramData+xml", ".diagramDrawing+xml"), _RUNS)


def _types(archive: zipfile.ZipFile, *main: str) -> dict[str, str]:
    """The types of parts. Raises FileError where that of none ends in one of `main`."""
    members = set(archive.namelist())
    types = {
        name: event.attribute("ContentType") or ""
        for event in _tags(archive, "[Content_Types].xml", "Override")
        if (name := (event.attribute("PartName") or "").removeprefix("/")) in members
    }
    if not any(kind.endswith(main) for kind in types.values()):
        raise FileError("none of its parts is the main one of such a document")
    return types


def _of_types(types: Mapping[str, str], by_end: _Parts) -> _Parts:
    """The parts whose types end so, in the order of these, then by number."""
    return {
        name: part
        for end, part in by_end.items()
        for name in sorted(types, key=lambda name: (len(name), name))
        if types[name].endswith(end)
    }


def _word_parts(archive: zipfile.ZipFile) -> _Parts:
    main = (".document.main+xml", ".template.main+xml", ".document.macroEnabled.main+xml")
    ends = (*main, ".header+xml", ".footer+xml", ".footnotes+xml", ".endnotes+xml")
    return _of_types(_types(archive, *main), {**dict.fromkeys(ends, _RUNS), **_DRAWN})


def _slide_parts(archive: zipfile.ZipFile) -> _Parts:
    types = _types(archive, ".presentation.main+xml", ".slideshow.main+xml", ".template.main+xml")
    return _of_types(types, {".slide+xml": _RUNS, ".notesSlide+xml": _RUNS, **_DRAWN})


def _holds(archive: zipfile.ZipFile, name: str, word: bytes) -> bool:
    with archive.open(name) as part:
        before = b""
        while chunk := part.read(1 << 20):
            if word in before + chunk:
                return True
            before = chunk[-len(word) :]
    return False


def _sheet_parts(archive: zipfile.ZipFile) -> _Parts:
    """Formulas name the columns of a table by the texts of its first row, so these stay."""
    types = _types(archive, ".sheet.main+xml", ".template.main+xml")
    columns = {
        (tag.attribute("name") or "").replace("_x000a_", "\n").strip()
        for name, kind in types.items()
        if kind.endswith(".table+xml")
        for tag in _tags(archive, name, "tableColumn")
    }

    def segments(source: str, reading: Reading) -> Iterator[Segment]:
        for segment in _CELLS.segments(source, reading):
            if segment.readable not in columns:
                yield segment

    cells = _Part(segments=segments)
    ends = {f".{kind}+xml": cells for kind in ("sharedStrings", "comments", "worksheet")}
    found = _of_types(types, {**ends, **_DRAWN, ".drawing+xml": _RUNS})
    # Most sheets are numbers, and have their texts in a part for all sheets.
    return {
        name: part
        for name, part in found.items()
        if not types[name].endswith(".worksheet+xml") or _holds(archive, name, b"inlineStr")
    }


_OPEN_ELEMENTS = ELEMENTS["open_document"]
_OPEN_TEXT = Grammar(
    paragraphs=_OPEN_ELEMENTS["paragraphs"],
    around=_OPEN_ELEMENTS["around"],
    empty=_OPEN_ELEMENTS["empty"],
    bounds=_OPEN_ELEMENTS["bounds"],
    is_left_out=lambda tag: tag.name in ("annotation", "tracked-changes"),
)
# A cell writes its number or date anew, and a formula its result. Comments are of cells, not in sentences.
_OPEN_SHEET = replace(
    _OPEN_TEXT,
    is_left_out=lambda tag: (
        tag.name == "tracked-changes"
        or tag.attribute("office:value-type") not in (None, "string")
        or tag.attribute("table:formula") is not None
    ),
)


def _open_parts(archive: zipfile.ZipFile, *, kind: str, grammar: Grammar = _OPEN_TEXT) -> _Parts:
    members = archive.namelist()
    stated = archive.read("mimetype").decode(errors="replace") if "mimetype" in members else "none"
    if not stated.startswith(f"application/vnd.oasis.opendocument.{kind}") or "content.xml" not in members:
        raise FileError(f"its mimetype is {stated[:80]!r}, or it has no content.xml")
    names = ("content.xml", "styles.xml", *(name for name in members if name.endswith("/content.xml")))
    return {name: _Part(segments=grammar.segments) for name in names if name in members}


# EPUB 3.3 and 2.0.1.
_CONTENTS = Grammar(paragraphs=frozenset(("text",)))
_METADATA = Grammar(paragraphs=frozenset(("title", "description")))
_TAG = re.compile(r"<[A-Za-z][^<>]*>")
_LANGUAGE_OF_BOOK = re.compile(r"(<(?:\w+:)?language\b[^<>]*>\s*)([^<>\s]+)")


def _book_parts(archive: zipfile.ZipFile) -> _Parts:
    roots = _tags(archive, "META-INF/container.xml", "rootfile")
    package = next((tag.attribute("full-path") for tag in roots), None)
    if package is None:
        raise FileError("its container names no package")
    members = set(archive.namelist())
    folder = posixpath.dirname(package)
    items = ((unquote(tag.attribute("href") or ""), tag) for tag in _tags(archive, package, "item"))
    types = {
        posixpath.normpath(posixpath.join(folder, path)): tag.attribute("media-type") for path, tag in items
    }
    stated = _LANGUAGE_OF_BOOK.search(archive.read(package).decode(errors="replace"))
    prepare = partial(_in_target_language, stated[2] if stated else "")
    kinds = {"application/x-dtbncx+xml": _CONTENTS.segments, "application/xhtml+xml": hypertext.segments}
    parts = {package: _METADATA.segments} | {
        name: segments
        for kind, segments in kinds.items()
        for name in types
        if types[name] == kind and name in members
    }
    return {name: _Part(segments=segments, prepare=prepare) for name, segments in parts.items()}


def _in_target_language(stated: str, text: str, reading: Reading) -> str:
    """The part, whose tags that say the book's language, or the source's, say the target's."""
    write = hypertext.renamed(reading, stated)
    text = _TAG.sub(lambda tag: hypertext.LANGUAGE.sub(write, tag[0]), text)
    return _LANGUAGE_OF_BOOK.sub(write, text)


_FORMATS: dict[FormatName, Callable[[zipfile.ZipFile], _Parts]] = {
    "docx": _word_parts,
    "pptx": _slide_parts,
    "xlsx": _sheet_parts,
    "odt": partial(_open_parts, kind="text"),
    "odp": partial(_open_parts, kind="presentation"),
    "ods": partial(_open_parts, kind="spreadsheet", grammar=_OPEN_SHEET),
    "epub": _book_parts,
}
PACKAGED = tuple(_FORMATS)
"""The names of the formats that are a zip."""


def package_format(name: FormatName, options: FormatOptions) -> Format:
    """A format that is a zip of XML."""

    def units(source: Input) -> list[Unit]:
        """All units. Raises FileError for what is no such document, or a damaged one."""
        texts, segments = [], []
        start = 0
        reading = Reading(source, size_of(source.rewound().stream), options)
        for part_name, part, content in _contents(source.rewound().stream, source.name, name, reading):
            place = f"{part_name} in {source.name}"
            text, codec = decode(content, place, None, DECLARED)
            if codec.name != "utf-8":
                raise FileError(f"{place} is in {codec.name}, and such parts are read in UTF-8 alone")
            # A mark of byte order is a character of the part.
            text = codec.mark.decode() + text
            try:
                text = part.prepare(text, reading)
                of_part = counted(part.segments(text, reading), reading)
            except FileError as error:
                raise error.within(place) from error
            segments += [segment.moved(start) for segment in of_part]
            texts.append(text)
            start += len(text) + len(_SEPARATOR)
        joined = _SEPARATOR.join(texts)
        codec = Codec(name="utf-8", mark=b"")
        return units_of(joined, segments, codec, source.position(), join=bool(options.join_lines))

    return Format(name=name, noun="texts", units=units, text_format="html", package=partial(Package, name))


class Package:
    """The zip around the parts: as the input's, but for the texts."""

    def __init__(self, name: FormatName, source: BinaryIO) -> None:
        self._parts = _FORMATS[name]
        self._source = source

    def pack(self, parts: BinaryIO, target: BinaryIO) -> None:
        """Writes the document whose parts with text are these. The same parts give the same bytes."""
        self._source.seek(0)
        texts = parts.read().split(_SEPARATOR.encode())
        with zipfile.ZipFile(self._source) as archive, zipfile.ZipFile(target, "w") as written:
            names = self._parts(archive)
            contents = dict(zip(names, texts, strict=bool(names)))
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
                sizes = [archive.getinfo(name).file_size for name in self._parts(archive)]
        except (FileNotFoundError, KeyError, FileError, *_BROKEN):
            return None
        return sum(sizes) + max(0, len(sizes) - 1)


def _contents(
    stream: BinaryIO, name: str, format_name: FormatName, reading: Reading
) -> Iterator[tuple[str, _Part, bytes]]:
    """The parts with text: the name, how it is read, and its bytes. All that there are can be read."""
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            if sum(info.file_size for info in members) > 4 * MAX_DOCUMENT_BYTES:
                raise FileError(f"it unpacks to more than {4 * MAX_DOCUMENT_BYTES >> 20} MiB")
            num_named = Counter(info.filename for info in members)
            if len(num_named) < len(members):
                raise FileError(f"it holds {num_named.most_common(1)[0][0]!r} more than once")
            parts = _FORMATS[format_name](archive)
            reading.take(_TIMES_HELD * sum(archive.getinfo(part).file_size for part in parts))
            damaged = archive.testzip()
            if damaged is not None:
                raise FileError(f"{damaged} in it is damaged")
            for part_name, part in parts.items():
                yield part_name, part, archive.read(part_name)
    except FileError as error:
        raise error.within(f"{name} can't be read as .{format_name}") from None
    except _BROKEN as error:
        raise FileError(
            f"{name} can't be read as .{format_name}, which is a zip file: {error}. Where it has "
            f"a password or is of another kind, save it as .{format_name} without one"
        ) from None

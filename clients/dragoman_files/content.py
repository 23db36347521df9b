"""Checks of a file's beginning: whether its lines are text in UTF-8, whatever its name says."""

import codecs
import re
import shlex
from collections.abc import Iterator

from dragoman_files.encodings import readings
from dragoman_files.format import FileError

STANDARD_INPUT = "standard input"
"""The name of what has none."""
HEAD_BYTES = 1 << 20
"""How much of a file is looked at: text in another encoding has shown itself by then."""

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""Marks of byte order. That of UTF-32 begins as that of UTF-16, and comes first."""
_ZEROS: dict[tuple[bool, ...], str] = {
    (False, True, True, True): "UTF-32LE",
    (True, True, True, False): "UTF-32BE",
    (False, True, False, True): "UTF-16LE",
    (True, False, True, False): "UTF-16BE",
}
"""Encodings by which of a character's four bytes are mostly zero, in European text."""

_ZIP = b"PK\x03\x04"
_MAGIC = (
    (
        _ZIP,
        "a zip file, as .docx, .odt, .xlsx and .epub are",
    ),
    (b"PK\x05\x06", "a zip file"),
    (b"%PDF-", "a PDF"),
    (b"{\\rtf", "a document in RTF"),
    (b"\xd0\xcf\x11\xe0", "a document of an older Office"),
    (b"\x1f\x8b", "compressed by gzip, which a name in `.gz` tells"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ\x00", "compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"SQLite format 3\x00", "a database"),
    (b"PAR1", "a Parquet file"),
)
"""How files begin that are no text, and what they are."""

_LOOKS = (
    (re.compile(rb"\s*<(\?xml|!doctype|html)\b", re.IGNORECASE), "XML or HTML", "html` or `xliff"),
    (re.compile(rb"WEBVTT\b"), "subtitles", "vtt"),
    (re.compile(rb"\s*\d+\s*\n\d+:\d\d:\d\d,\d+ -->"), "subtitles", "srt"),
    (re.compile(rb'\s*[\[{]\s*"[^"\n]*"\s*[:,]'), "JSON", "json` or, if each line is an object, `jsonl"),
    (re.compile(rb"\s*\[\s*\{"), "JSON", "json"),
)
"""How texts begin that lines make no sense of, what they are, and the formats that do."""

_SAVE = "; save it as text in UTF-8"
_BY_FORCE = "`--format` with what it holds"


def check_is_text(head: bytes, name: str, declared: str | None = None) -> None:
    """Raises FileError where a file that begins like this is no text at all, or one in UTF-16 or UTF-32.

    `declared` is the encoding that somebody says it is in.
    """
    encoding = _wide_encoding(head)
    if encoding is not None and not re.match("utf.?(16|32)", declared or "", re.IGNORECASE):
        problem = f"{name} is text in {encoding}, not in UTF-8"
        raise FileError(problem, f"; {_way_out(encoding, name)}", elsewhere=_SAVE)
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            advice = ". `--format docx` reads it as one" if magic == _ZIP else ""
            raise FileError(f"{name} is {kind}, not text; save what it holds as plain text in UTF-8", advice)


def check_is_utf8(head: bytes, name: str) -> None:
    """Raises FileError for binary data, and where most of what goes beyond ASCII is in another encoding.

    A line that is no UTF-8 among many that are is no matter here: it fails alone.
    """
    if b"\x00" in head:
        raise FileError(
            f"{name} holds binary data: byte {head.index(0)} is NUL; save what it holds as plain text in "
            "UTF-8",
            f". {_BY_FORCE} translates its lines as they are",
        )
    faults = list(_faults(head))
    beyond_ascii = [line for line in head.split(b"\n") if not line.isascii()]
    if 2 * len(faults) > len(beyond_ascii):
        number, position, byte = faults[0]
        raise FileError(
            f"{name} is not in UTF-8: byte {position} of line {number} is 0x{byte:02x}",
            f". {_way_out('NAME', name)}{readings(head, number)}. {_BY_FORCE} "
            "translates the lines that are in UTF-8",
            elsewhere=_SAVE,
        )


def check_looks_like_lines(head: bytes, name: str) -> None:
    """Raises FileError for a file of texts, by its name, that begins as what lines make no sense of."""
    for look, kind, formats in _LOOKS:
        if look.match(head.removeprefix(codecs.BOM_UTF8)):
            raise FileError(
                f"{name} looks like {kind}, which translating line by line would break",
                f": say so by `--format {formats}`. If each line is a text, say so by `--format text`",
                elsewhere=": give it a name that says what it holds",
            )


def _wide_encoding(head: bytes) -> str | None:
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    quads = len(head) // 4
    if not quads:
        return None
    zeros = tuple(2 * head[offset : 4 * quads : 4].count(0) > quads for offset in range(4))
    return _ZEROS.get(zeros)


def _faults(head: bytes) -> Iterator[tuple[int, int, int]]:
    """For each line not in UTF-8: its number from 1, its first wrong byte's offset from 0, and that byte."""
    lines = head.split(b"\n")
    for number, line in enumerate(lines, start=1):
        # The last one may be cut within a character.
        is_whole = number < len(lines) or len(head) < HEAD_BYTES
        try:
            codecs.utf_8_decode(line, "strict", is_whole)
        except UnicodeDecodeError as error:
            yield number, error.start, line[error.start]


def _way_out(encoding: str, name: str) -> str:
    """How a file is read as what it is: an option states it, for a job that reads files by their names."""
    if name == STANDARD_INPUT:
        return f"`iconv -f {encoding} -t UTF-8 > converted.txt` converts it"
    converted = f"`iconv -f {encoding} -t UTF-8 {shlex.quote(name)} > converted.txt` converts it"
    return f"`--encoding {encoding}` reads and writes it as that, or {converted}"

"""What the bytes of a file are: whether they are text, in which encoding, and how it is written again."""

import codecs
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from dragoman_files.format import FileError, UnitError
from dragoman_files.texts import read_table

_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
"""Marks of byte order. That of UTF-32 begins as that of UTF-16, and comes first."""
_LIKELY = [*(f"cp{number}" for number in range(1250, 1259)), "cp874", "koi8_r"]
_LIKELY += ["cp932", "euc_jp", "gb18030", "big5", "cp949"]
"""Encodings that files are in which are not in UTF-8."""
_SAMPLE_LINES, _SHOWN_CHARACTERS, _NUM_SHOWN = 500, 60, 3
_DECLARING_BYTES = 4096
"""Where an encoding is declared."""

STANDARD_INPUT = "standard input"
"""The name of what has none."""
HEAD_BYTES = 1 << 20
"""How much of a file is looked at: text in another encoding has shown itself by then."""

_ZEROS: dict[tuple[bool, ...], str] = {
    (False, True, True, True): "UTF-32LE",
    (True, True, True, False): "UTF-32BE",
    (False, True, False, True): "UTF-16LE",
    (True, False, True, False): "UTF-16BE",
}
"""Encodings by which of a character's four bytes are mostly zero, in European text."""

_LOOKS = (
    (re.compile(rb"\s*<(\?xml|!doctype|html)\b", re.IGNORECASE), "XML or HTML", "html` or `xliff"),
    (re.compile(rb"WEBVTT\b"), "subtitles", "vtt"),
    (re.compile(rb"\s*\d+\s*\n\d+:\d\d:\d\d,\d+ -->"), "subtitles", "srt"),
    (re.compile(rb'\s*[\[{]\s*"[^"\n]*"\s*[:,]'), "JSON", "json` or, if each line is an object, `jsonl"),
    (re.compile(rb"\s*\[\s*\{"), "JSON", "json"),
)
"""How texts begin that lines make no sense of, what they are, and the formats that do."""

_ZIP = b"PK\x03\x04"
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
    for kind, beginnings in read_table("names.toml")["magic"].items():
        if head.startswith(tuple(beginning.encode("latin-1") for beginning in beginnings)):
            advice = ". `--format docx` reads it as one" if head.startswith(_ZIP) else ""
            raise FileError(f"{name} is {kind}, not text; save what it holds as plain text in UTF-8", advice)


def check_is_utf8(head: bytes, name: str) -> None:
    """Raises FileError for binary data, and where most of what goes beyond ASCII is in another encoding.

    A line that is no UTF-8 among many that are is no matter here: it fails alone.
    """
    if b"\x00" in head:
        problem = f"{name} holds binary data: byte {head.index(0)} is NUL"
        advice = "; save what it holds as plain text in UTF-8"
        raise FileError(problem + advice, f". {_BY_FORCE} translates its lines as they are")
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
    for encoding, mark in _MARKS.items():
        if encoding != "utf-8" and head.startswith(mark):
            return encoding[:6].upper()
    quads = len(head) // 4
    if not quads:
        return None
    zeros = tuple(2 * head[offset : 4 * quads : 4].count(0) > quads for offset in range(4))
    return _ZEROS.get(zeros)


def _faults(head: bytes) -> Iterator[tuple[int, int, int]]:
    """The faults of lines that are not in UTF-8: each line's number from 1, its first wrong byte's offset
    from 0, and that byte."""
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


@dataclass(frozen=True, kw_only=True)
class Codec:
    """An encoding of text."""

    name: str
    """The codec's name in Python, with its byte order."""
    mark: bytes
    """The mark of byte order at the file's beginning; empty where it has none."""
    errors: Literal["strict", "xmlcharrefreplace"] = "strict"
    """The way to write a character that the encoding lacks: an error, or a reference of XML and HTML."""

    def encode(self, text: str) -> bytes:
        """Raises UnitError for a character that the encoding lacks."""
        try:
            return text.encode(self.name, self.errors)
        except UnicodeEncodeError as error:
            raise UnitError(
                f"{text[error.start]!r} of the translation can't be written in {self.name}, which the file "
                "is in: convert it to UTF-8 first"
            ) from None


def codec_of(encoding: str, head: bytes) -> Codec:
    """The encoding of a file that begins like this, by its name. Raises FileError for a name that is none."""
    try:
        name = codecs.lookup(encoding).name.removesuffix("-sig").removesuffix("_sig")
        b"".decode(name)
        # No charmap holds these two, but every encoding of a family has its own way to write them.
        "\n".encode(name)
    except LookupError:
        known = "utf-8, utf-16, windows-1252, gb18030 and more"
        raise FileError(f"there is no encoding {encoding[:80]!r}; there are {known}") from None
    for ordered, mark in _MARKS.items():
        if head.startswith(mark) and name in (ordered, re.sub("-(le|be)$", "", ordered)):
            return Codec(name=ordered, mark=mark)
    # Without a mark: the byte order of Windows, whose files these are.
    return Codec(name=f"{name}-le" if name in ("utf-16", "utf-32") else name, mark=b"")


def decode(
    content: bytes, name: str, encoding: str | None, declared: re.Pattern[bytes] | None
) -> tuple[str, Codec]:
    """The text of a file, and the encoding that it is in: the one given, by a mark, declared, or UTF-8.

    `declared` finds in a file's head the encoding that the file names. Raises FileError for an encoding that
    is not the file's.
    """
    is_marked = content.startswith(codecs.BOM_UTF8)
    found = None if is_marked or declared is None else declared.search(content[:_DECLARING_BYTES])
    codec = codec_of(encoding or (found[1].decode() if found else "utf-8"), content[:4])
    try:
        return content[len(codec.mark) :].decode(codec.name), codec
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, len(codec.mark) + error.start) + 1
        byte = content[len(codec.mark) + error.start]
        raise FileError(
            f"{name} is not in {codec.name.upper()}: byte {byte:#04x} of line {number} is none of it",
            f". `--encoding` says which encoding it is in{readings(content, number)}",
            elsewhere=_SAVE,
        ) from None


def readings(content: bytes, number: int) -> str:
    """How a line, counted from 1, reads in encodings that the text may be in: for a person, who sees which is
    right. Of short texts the likeliest is wrong in one of four.
    """
    # Only errors need it.
    from charset_normalizer import from_bytes

    lines = content.split(b"\n")
    sample = b"\n".join(islice((line for line in lines if not line.isascii()), _SAMPLE_LINES))
    found: dict[str, str] = {}
    for match in from_bytes(sample, cp_isolation=_LIKELY):
        read = " ".join(lines[number - 1].decode(match.encoding, "replace").split())
        found.setdefault(read[:_SHOWN_CHARACTERS], match.encoding)
    shown = [f"{encoding} {read!r}" for read, encoding in islice(found.items(), _NUM_SHOWN)]
    return f". Line {number} reads in {', in '.join(shown)}" if shown else ""

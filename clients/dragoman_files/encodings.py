"""Text in encodings other than UTF-8: read as what it is, and written as it was."""

import codecs
import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from dragoman_files.format import FileError, UnitError

_MARKS = {
    "utf-8": ((codecs.BOM_UTF8, "utf-8"),),
    "utf-16": ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
    "utf-32": ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")),
}
"""Marks of byte order by encoding, and which order each says."""


_LIKELY = [*(f"cp{number}" for number in range(1250, 1259)), "cp874", "koi8_r"]
_LIKELY += ["cp932", "euc_jp", "gb18030", "big5", "cp949"]
"""Encodings that files are in which are not in UTF-8."""
_SAMPLE_LINES, _SHOWN_CHARACTERS, _NUM_SHOWN = 500, 60, 3


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
        raise FileError(
            f"there is no encoding {encoding[:80]!r}; there are utf-8, utf-16, windows-1252, gb18030 and more"
        ) from None
    family = re.sub("-(le|be)$", "", name)
    for mark, ordered in _MARKS.get(family, ()):
        if head.startswith(mark) and name in (family, ordered):
            return Codec(name=ordered, mark=mark)
    # Without a mark: the byte order of Windows, whose files these are.
    return Codec(name=f"{name}-le" if name in ("utf-16", "utf-32") else name, mark=b"")


def decode(content: bytes, name: str, encoding: str | None, declared: str | None) -> tuple[str, Codec]:
    """The text of a file, and the encoding that it is in: the one given, by a mark, declared, or UTF-8.

    Raises FileError for an encoding that is not the file's.
    """
    if encoding is None and content.startswith(codecs.BOM_UTF8):
        declared = "utf-8"
    codec = codec_of(encoding or declared or "utf-8", content[:4])
    try:
        return content[len(codec.mark) :].decode(codec.name), codec
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, len(codec.mark) + error.start) + 1
        byte = content[len(codec.mark) + error.start]
        raise FileError(
            f"{name} is not in {codec.name.upper()}: byte {byte:#04x} of line {number} is none of it",
            f". `--encoding` says which encoding it is in{readings(content, number)}",
            elsewhere="; save it as text in UTF-8",
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

"""Files of lines: each a bare text, or a JSON object with one."""

import codecs
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from dragoman_files.content import Codec, codec_of
from dragoman_files.format import (
    Details,
    FileError,
    Format,
    FormatName,
    FormatOptions,
    Input,
    Unit,
    UnitError,
)
from dragoman_files.texts import BLANK, RangedText, join_lines, ranges_of

MAX_PARAGRAPH_BYTES = 20_000
"""Lines are joined up to here: a server takes no text of any length."""


class LineFormat(Protocol):
    """Reads the text of a line, and writes the line that stands for it in the output."""

    def read(self, content: bytes) -> str:
        """The text of a line, in UTF-8. Raises UnitError where it holds none."""

    def write(self, content: bytes, translation: str | None, details: Details) -> bytes:
        """The output's line for an input line and its translation, None where it failed. No line ending."""


def parse_line(raw: bytes, format_: LineFormat, *, number: int, position: int) -> Unit:
    """The line that was read, its ending included."""
    raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
    content = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
    ending = raw[len(content) :]
    try:
        text, error = format_.read(content), None
    except UnitError as line_error:
        text, error = "", str(line_error)
    return Unit(
        number=number,
        position=position,
        text=text,
        raw=content.decode(errors="backslashreplace"),
        error=error,
        location={"line": number},
        write=lambda translation, details: format_.write(content, translation, details) + ending,
    )


def raw_lines(source: Input, codec: Codec | None) -> Iterator[bytes]:
    """The lines with their endings, "\\n" or "\\r\\n"; in UTF-8 where they are in another encoding.

    Raises FileError for bytes that are not in that encoding.
    """
    if codec is None:
        # Not `yield from`, which closes what it reads when somebody stops early.
        for line in source.stream:  # noqa: UP028
            yield line
        return
    source.stream.seek(len(codec.mark))
    text = io.TextIOWrapper(source.stream, encoding=codec.name, newline="\n")
    number = 0
    try:
        for decoded in text:
            number += 1
            yield decoded.encode()
    except UnicodeError as error:
        raise FileError(
            f"{source.name} is not in {codec.name}, after line {number}: {error}",
            "; --encoding says which encoding it is in",
            elsewhere="; save it as text in UTF-8",
        ) from None
    finally:
        # So that what it reads from stays open.
        text.detach()


def transcoded(unit: Unit, codec: Codec | None) -> Unit:
    """The unit of a line that was read in UTF-8 as one that is written in the input's own encoding."""
    if codec is None:
        return unit

    def write(translation: str | None, details: Details) -> bytes:
        mark = codec.mark if unit.number == 1 else b""
        return mark + codec.encode(unit.write(translation, details).decode())

    return replace(unit, write=write)


def lines_format(name: FormatName, lines: LineFormat, options: FormatOptions) -> Format:
    """A format whose every line is a unit; of text with its lines joined, every paragraph."""
    has_paragraphs = name == "text" and bool(options.join_lines)

    def units(source: Input) -> Iterator[Unit]:
        """A generator: a file of lines is never held as a whole. Raises FileError."""
        codec = codec_of_lines(source, options.encoding)
        found, position = raw_lines(source.rewound(), codec), source.position
        read = paragraphs(found, position) if has_paragraphs else single_lines(found, position, lines)
        return (transcoded(unit, codec) for unit in read)

    noun = "paragraphs" if has_paragraphs else "lines"
    return Format(name=name, noun=noun, units=units, checks_encoding=False)


def codec_of_lines(source: Input, encoding: str | None) -> Codec | None:
    """None for UTF-8, whose lines are read as they are."""
    if encoding is None:
        return None
    codec = codec_of(encoding, source.rewound().stream.read(4))
    return None if codec.name == "utf-8" else codec


def single_lines(lines: Iterator[bytes], position: Callable[[], int], format_: LineFormat) -> Iterator[Unit]:
    """Each line is a text."""
    for number, raw in enumerate(lines, start=1):
        yield parse_line(raw, format_, number=number, position=position())


def paragraphs(lines: Iterator[bytes], position: Callable[[], int]) -> Iterator[Unit]:
    """Lines up to a blank one are one text, which is written as one line. A blank line is a unit, too."""
    line = 0
    for number, group in enumerate(_groups(lines), start=1):
        unit = parse_line(b"".join(group), TextLines(join=True), number=number, position=position())
        yield replace(unit, location={"line": line + 1})
        line += len(group)


def _groups(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    pending: list[bytes] = []
    num_bytes = 0
    for raw in lines:
        is_blank = not raw.strip()
        if pending and (is_blank or num_bytes >= MAX_PARAGRAPH_BYTES):
            yield pending
            pending, num_bytes = [], 0
        if is_blank:
            yield [raw]
        else:
            pending.append(raw)
            num_bytes += len(raw)
    if pending:
        yield pending


class TextLines:
    """Every line is a text, or all lines of a paragraph are one. A failed one leaves an empty line."""

    def __init__(self, *, join: bool = False) -> None:
        self._join = join

    def read(self, content: bytes) -> str:
        """Raises UnitError for bytes that are not UTF-8."""
        try:
            return join_lines(content.decode()) if self._join else content.decode()
        except UnicodeDecodeError as error:
            raise UnitError(f"not UTF-8: byte {error.start} is 0x{content[error.start]:02x}") from None

    def write(self, content: bytes, translation: str | None, details: Details) -> bytes:
        """A line break within a line's translation would be a line too many."""
        translation = translation or ""
        return (translation if self._join else translation.replace("\n", " ")).encode()


_RANGES = "protected_ranges"
_DETAILS = {name: f"translation_{name}" for name in ("truncated", "confidence")}
"""A bare "truncated" is the callers' own: posts of social networks have one next to their "text"."""
_RESULTS = ("translation", *_DETAILS.values())


class JsonLines:
    """Every line is an object with a "text". It comes back with a "translation", null where it failed.

    The text may be under another key. "protected_ranges" next to it are ranges of it, pairs [start, end]
    of code points, that stay as they are.

    What is known of a translation stands next to it, as a "translation_truncated" of true and a
    "translation_confidence". An object that has one of these already fails, and one with a "translation"
    stays what it is.
    """

    def __init__(self, key: str = "text", *, join: bool = False) -> None:
        self._key = key
        self._join = join

    def read(self, content: bytes) -> str:
        """Raises UnitError for what is no such object. A blank line is an empty text."""
        if not content.strip():
            return ""
        document = _parse(content)
        for name in _RESULTS:
            if name in document:
                raise UnitError(f'the object has a "{name}" already; remove or rename it')
        text = document.get(self._key)
        if not isinstance(text, str):
            raise UnitError(f'the object has no string "{self._key}"')
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UnitError(f'"{self._key}" has a lone surrogate at code point {error.start}') from None
        text = _protected(text, document.get(_RANGES))
        return _joined(text) if self._join else text

    def write(self, content: bytes, translation: str | None, details: Details) -> bytes:
        """A blank line stays blank."""
        if not content.strip():
            return content
        try:
            document = _parse(content)
        except UnitError:
            document = {}
        if "translation" in document:
            return content
        added = {
            "translation": translation,
            **{_DETAILS[name]: value for name, value in details.items()},
        }
        appended = json.dumps(added, ensure_ascii=False).encode()
        if not document:
            return appended
        # The caller's own bytes: numbers and escapes come back as they were written.
        return content.rstrip().removesuffix(b"}").rstrip() + b", " + appended.removeprefix(b"{")


def _protected(text: str, ranges: object) -> str:
    """The text with its ranges, where it has some. Raises UnitError for what are none."""
    if ranges is None:
        return text
    if not isinstance(ranges, list):
        kind = _NAMES.get(type(ranges), "an object")
        raise UnitError(f'"{_RANGES}" is no array of pairs [start, end] but {kind}')
    try:
        return RangedText(text, ranges)
    except TypeError as error:
        raise UnitError(str(error)) from None


def _joined(text: str) -> str:
    """The text with its lines joined, and its ranges where they are then, without blanks at their ends."""
    ranges = []
    for start, end in ranges_of(text):
        first = end - len(text[start:end].lstrip(BLANK))
        last = start + len(text[start:end].rstrip(BLANK)) - 1
        if first <= last:
            # Up to a letter, a part is joined as it is within the whole.
            ranges.append((len(join_lines(text[: first + 1])) - 1, len(join_lines(text[: last + 1]))))
    joined = join_lines(text)
    return RangedText(joined, ranges) if ranges else joined


_NAMES = {type(None): "null", bool: "a truth value", str: "a string", list: "an array"}
_NAMES |= {int: "a number", float: "a number"}
"""JSON's names for its values."""


def _parse(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UnitError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UnitError(f"not a JSON object but {_NAMES[type(document)]}")
    return document


def json_lines(name: FormatName, options: FormatOptions) -> Format:
    """Raises FileError for a key that can't be the text's."""
    keys = options.keys or ("text",)
    if len(keys) > 1 or keys[0] in _RESULTS:
        rule = f"the text of JSON lines is under one key, and none of {', '.join(_RESULTS)}"
        raise FileError(f"{rule}; given were {', '.join(keys)}")
    return lines_format(name, JsonLines(keys[0], join=bool(options.join_lines)), options)

"""Files of lines: each a bare text, or a JSON object with one."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from dragoman.errors import InvalidRequestError
from dragoman.jobs.errors import JobError, UnitError
from dragoman.jobs.format import FormatName, FormatOptions, Input
from dragoman.jobs.formats.encodings import Codec, codec_of
from dragoman.jobs.formats.spacing import BLANK, join_lines
from dragoman.jobs.lines import LineFormat, parse_line, raw_lines, transcoded
from dragoman.jobs.unit import Unit
from dragoman.protected_text import ProtectedText, ranges_of
from dragoman.settings import TextFormat

MAX_PARAGRAPH_BYTES = 20_000
"""Lines are joined up to here: a server takes no text of any length."""


class LinesFormat:
    """A format whose every line is a unit."""

    noun = "lines"
    text_format: TextFormat | None = None
    checks_encoding = False

    def __init__(self, name: FormatName, lines: LineFormat, options: FormatOptions) -> None:
        self.name = name
        self._lines = lines
        self._options = options
        if options.join_lines and name == "text":
            self.noun = "paragraphs"

    def units(self, source: Input) -> Iterable[Unit]:
        """A generator: a file of lines is never held as a whole. Raises JobError."""
        codec = codec_of_lines(source, self._options.encoding)
        units = self._units(raw_lines(source.rewound(), codec), source)
        return (transcoded(unit, codec) for unit in units)

    def _units(self, lines: Iterator[bytes], source: Input) -> Iterator[Unit]:
        if self.noun == "paragraphs":
            yield from paragraphs(lines, source.position)
            return
        for number, raw in enumerate(lines, start=1):
            yield parse_line(raw, self._lines, number=number, position=source.position())


def codec_of_lines(source: Input, encoding: str | None) -> Codec | None:
    """None for UTF-8, whose lines are read as they are."""
    if encoding is None:
        return None
    codec = codec_of(encoding, source.rewound().stream.read(4))
    return None if codec.name == "utf-8" else codec


def paragraphs(lines: Iterator[bytes], position: Callable[[], int]) -> Iterator[Unit]:
    """Lines up to a blank one are one text, which is written as one line. A blank line is a unit, too."""
    held: list[bytes] = []
    first = number = num_bytes = 0

    def paragraph() -> Unit:
        unit = parse_line(b"".join(held), _Paragraph(), number=number, position=position())
        return replace(unit, location={"line": first})

    for line_number, raw in enumerate(lines, start=1):
        is_blank = not raw.strip()
        if held and (is_blank or num_bytes >= MAX_PARAGRAPH_BYTES):
            number += 1
            yield paragraph()
            held = []
        if not held:
            first, num_bytes = line_number, 0
        held.append(raw)
        num_bytes += len(raw)
        if is_blank:
            number += 1
            yield paragraph()
            held = []
    if held:
        number += 1
        yield paragraph()


class TextLines:
    """Every line is a text. A failed one leaves an empty line."""

    def read(self, content: bytes) -> str:
        """Raises UnitError for bytes that are not UTF-8."""
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise UnitError(f"not UTF-8: byte {error.start} is 0x{content[error.start]:02x}") from None

    def write(self, content: bytes, translation: str | None, *, truncated: bool) -> bytes:
        """A line break within a translation would be a line too many."""
        return (translation or "").replace("\n", " ").encode()


_RANGES = "protected_ranges"
_TRUNCATED = "translation_truncated"
"""A bare "truncated" is the callers' own: posts of social networks have one beside their "text"."""


class _Paragraph(TextLines):
    """Lines that are one text."""

    def read(self, content: bytes) -> str:
        """Raises UnitError for bytes that are not UTF-8."""
        return join_lines(super().read(content))

    def write(self, content: bytes, translation: str | None, *, truncated: bool) -> bytes:
        """The lines that were not joined are lines of the translation, too."""
        return (translation or "").encode()


class JsonLines:
    """Every line is an object with a "text". It comes back with a "translation", null where it failed.

    The text may be under another key. "protected_ranges" beside it are ranges of it, pairs [start, end]
    of code points, that stay as they are.

    A translation that lacks an end has a "translation_truncated" of true beside it. An object that has one of
    both already fails, and one with a "translation" stays what it is.
    """

    def __init__(self, key: str = "text", *, join: bool = False) -> None:
        self._key = key
        self._join = join

    def read(self, content: bytes) -> str:
        """Raises UnitError for what is no such object. A blank line is an empty text."""
        if not content.strip():
            return ""
        document = _parse(content)
        for name in ("translation", _TRUNCATED):
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

    def write(self, content: bytes, translation: str | None, *, truncated: bool) -> bytes:
        """A blank line stays blank."""
        if not content.strip():
            return content
        try:
            document = _parse(content)
        except UnitError:
            document = {}
        if "translation" in document:
            return content
        added = {"translation": translation} | ({_TRUNCATED: True} if truncated else {})
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
        return ProtectedText(text, ranges)
    except (TypeError, InvalidRequestError) as error:
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
    return ProtectedText(joined, ranges) if ranges else joined


_NAMES = {
    type(None): "null",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
}
"""JSON's names for its values."""


def _parse(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UnitError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UnitError(f"not a JSON object but {_NAMES[type(document)]}")
    return document


def json_lines(options: FormatOptions) -> LinesFormat:
    """Raises JobError for a key that can't be the text's."""
    keys = options.keys or ("text",)
    if len(keys) > 1 or keys[0] in ("translation", _TRUNCATED):
        raise JobError(
            f'the text of JSON lines is under one key, and neither "translation" nor "{_TRUNCATED}"; '
            f"--key gave {', '.join(keys)}"
        )
    return LinesFormat("jsonl", JsonLines(keys[0], join=bool(options.join_lines)), options)

"""What a line of a file holds: a bare text, or a JSON object with one."""

import json
from collections.abc import Callable
from typing import Any, Literal, Protocol

from dragoman.jobs.errors import LineError

FormatName = Literal["text", "jsonl"]


class Format(Protocol):
    """Reads the text of a line, and writes the line that stands for it in the output."""

    name: FormatName

    def read(self, content: bytes) -> str:
        """The text of a line. Raises LineError where it holds none."""

    def write(self, content: bytes, translation: str | None, *, truncated: bool) -> bytes:
        """The output's line for an input line and its translation, None where it failed. No line ending.

        `truncated` says that the translation lacks an end: the text's was dropped, or its own limit reached.
        """


class TextLines:
    """Every line is a text. A failed one leaves an empty line."""

    name: FormatName = "text"

    def read(self, content: bytes) -> str:
        """Raises LineError for bytes that are not UTF-8."""
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise LineError(f"not UTF-8: byte {error.start} is 0x{content[error.start]:02x}") from None

    def write(self, content: bytes, translation: str | None, *, truncated: bool) -> bytes:
        """A line break within a translation would be a line too many."""
        return (translation or "").replace("\n", " ").encode()


_TRUNCATED = "translation_truncated"
"""A bare "truncated" is the callers' own: posts of social networks have one beside their "text"."""


class JsonLines:
    """Every line is an object with a "text". It comes back with a "translation", null where it failed.

    A translation that lacks an end has a "translation_truncated" of true beside it. An object that has one of
    both already fails, and one with a "translation" stays what it is.
    """

    name: FormatName = "jsonl"

    def read(self, content: bytes) -> str:
        """Raises LineError for what is no such object. A blank line is an empty text."""
        if not content.strip():
            return ""
        document = _parse(content)
        for name in ("translation", _TRUNCATED):
            if name in document:
                raise LineError(f'the object has a "{name}" already; remove or rename it')
        text = document.get("text")
        if not isinstance(text, str):
            raise LineError('the object has no string "text"')
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise LineError(f'"text" has a lone surrogate at code point {error.start}') from None
        return text

    def write(self, content: bytes, translation: str | None, *, truncated: bool) -> bytes:
        """A blank line stays blank."""
        if not content.strip():
            return content
        try:
            document = _parse(content)
        except LineError:
            document = {}
        if "translation" in document:
            return content
        added = {"translation": translation} | ({_TRUNCATED: True} if truncated else {})
        appended = json.dumps(added, ensure_ascii=False).encode()
        if not document:
            return appended
        # The caller's own bytes: numbers and escapes come back as they were written.
        return content.rstrip().removesuffix(b"}").rstrip() + b", " + appended.removeprefix(b"{")


_NAMES = {
    type(None): "null",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
}
"""What JSON calls its values."""


def _parse(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise LineError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise LineError(f"not a JSON object but {_NAMES[type(document)]}")
    return document


FORMATS: dict[FormatName, Callable[[], Format]] = {"text": TextLines, "jsonl": JsonLines}

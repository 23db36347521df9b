"""The events of an XML parser, each with its range of the source."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal
from xml.parsers import expat

from dragoman_files.format import FileError

_DECLARED = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 (section 2.2) can't write."""
_MIN_PART_BYTES = 1 << 16
_MAX_PARTS = 32
"""A document is parsed in so many parts at most, and events of one are held at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A start tag, an end tag, characters, or anything else."""

    start: int
    end: int
    kind: Literal["start", "end", "text", "cdata", "other"]
    """An element without content has two, of which the second is empty. "cdata" is text that has no
    references, "other" all that is not for readers, such as comments and the brackets of CDATA."""
    name: str = ""
    """A tag's name without its prefix."""
    attributes: tuple[str, ...] = ()
    """A start tag's attributes, with prefixes: the name and the value of each."""

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The attributes, by name and value."""
        return zip(self.attributes[::2], self.attributes[1::2], strict=True)

    def attribute(self, name: str) -> str | None:
        """The value of an attribute, by its name with its prefix."""
        names = self.attributes[::2]
        return self.attributes[2 * names.index(name) + 1] if name in names else None


def declared_encoding(head: bytes) -> str | None:
    """The encoding that a file declares. That of UTF-16 is said by whoever asks for it, too."""
    match = _DECLARED.match(head.removeprefix(b"\xef\xbb\xbf").lstrip())
    name = match[1].decode().lower() if match is not None else None
    return None if name is None or name.startswith("utf-16") else name


def events(source: str, check: Callable[[], None] = lambda: None) -> Iterator[Event]:
    """All of a document, in order and without gaps. Raises FileError for what is not well-formed XML.

    A document that declares entities is refused: they could make much out of little. `check` is called before
    each part of it is read.
    """
    # Its positions are of bytes.
    content = source.encode()
    reader = _Reader()
    num_bytes = num_characters = 0
    last: _RawEvent | None = None
    last_start = 0
    # What a part cuts off is read again with the next one, so their number is bounded.
    size = max(_MIN_PART_BYTES, len(content) // _MAX_PARTS + 1)
    for begin in range(0, max(1, len(content)), size):
        check()
        try:
            reader.parser.Parse(content[begin : begin + size], begin + size >= len(content))
        except expat.ExpatError as error:
            raise FileError(
                f"no well-formed XML: {expat.ErrorString(error.code)} at line {error.lineno}, column "
                f"{error.offset + 1}"
            ) from None
        for event in reader.events:
            num_characters += len(content[num_bytes : event[0]].decode())
            num_bytes = event[0]
            if last is not None:
                yield _event(last, last_start, num_characters)
            last, last_start = event, num_characters
        reader.events.clear()
    if last is not None:
        yield _event(last, last_start, len(source))


def _event(raw: "_RawEvent", start: int, end: int) -> Event:
    _, kind, name, attributes = raw
    return Event(start=start, end=end, kind=kind, name=name, attributes=attributes)


def escape(text: str) -> str:
    """The text as characters of XML."""
    text = _ILLEGAL.sub("", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_RawEvent = tuple[int, Literal["start", "end", "text", "cdata", "other"], str, tuple[str, ...]]


class _Reader:
    """Notes where everything begins."""

    def __init__(self) -> None:
        # What the declaration says is of the file, not of this text.
        self.parser = parser = expat.ParserCreate("utf-8")
        self.events: list[_RawEvent] = []
        self._is_cdata = False
        parser.buffer_text = False
        parser.ordered_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = lambda name: self._note("end", name)
        parser.CharacterDataHandler = lambda text: self._note("cdata" if self._is_cdata else "text")
        parser.StartCdataSectionHandler = lambda: self._cdata(True)
        parser.EndCdataSectionHandler = lambda: self._cdata(False)
        parser.CommentHandler = lambda text: self._note("other")
        parser.ProcessingInstructionHandler = lambda target, text: self._note("other")
        parser.XmlDeclHandler = lambda *declaration: self._note("other")
        parser.EntityDeclHandler = self._entity

    def _start(self, name: str, attributes: list[str]) -> None:
        self._note("start", name, tuple(attributes))

    def _cdata(self, begins: bool) -> None:
        self._is_cdata = begins
        self._note("other")

    def _entity(self, name: str, *declaration: object) -> None:
        raise FileError(f"it declares an entity, {name[:80]!r}; write out what it stands for")

    def _note(
        self,
        kind: Literal["start", "end", "text", "cdata", "other"],
        name: str = "",
        attributes: tuple[str, ...] = (),
    ) -> None:
        self.events.append((self.parser.CurrentByteIndex, kind, name.rpartition(":")[2], attributes))

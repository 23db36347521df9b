"""The tag language: a text with markup in it, as a row of pieces, as the server takes it, and written back.

The server's HTML has tags of our own in place of the file's: `<g1>` and `</g1>` around what an element of
the file is around, `<x2/>` for what a sentence is complete without, `<ph id="3"></ph>` for what stands for a
word, `<br id="4"/>` for a line break. It sees to it that each comes back once, and that they nest.
"""

import html
import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, Reading, UnitError
from dragoman_files.texts import BLANK, collapse, has_letters, unescape

Kind = Literal["text", "markup", "bound", "glue", "open", "close", "empty", "word", "break"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A text within markup, such as an attribute's: no part of the sentence that its tag stands in."""

    start: int
    end: int
    decode: Callable[[str], str]
    """The text that its notation in the source stands for."""
    encode: Callable[[str], str]
    """The notation of a text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A range of the source. The pieces of a block follow each other without gaps."""

    start: int
    end: int
    kind: Kind
    """Text; markup, which bounds it; a bound of a block; or glue, markup within one text that must stay,
    wherever it then is.

    Of a text that has its markup with it, too: the tags that open and close an element, something empty that
    a sentence is complete without, something that stands for a word of it, and a break that ends a sentence.
    """
    decode: Callable[[str], str] = str
    """The text that stands for a text's notation in the source."""
    name: str = ""
    """A tag's name: the next end tag of this name closes it."""
    output: str | None = None
    """The text in the translation in its place; None keeps the source's."""
    values: tuple[Value, ...] = ()
    """The texts within markup, in order."""
    look: str = ""
    """The prefix that gives a text the look of its format, where each format has its own."""


def block_segments(
    source: str, pieces: Sequence[Piece], reading: Reading, encode: "Encode", write: "Write | None" = None
) -> Iterator[Segment]:
    """The texts of a block, which are written so, and those within markup that is in none of them."""
    found = list(runs(source, pieces, reading, encode))
    remaining = deque(found)
    for value in (value for piece in pieces for value in piece.values):
        while remaining and remaining[0].end <= value.start:
            remaining.popleft()
        if not remaining or value.start < remaining[0].start:
            yield _segment_of(source, value)
    yield from (run.segment(write) for run in found)


def _segment_of(source: str, value: Value) -> Segment:
    text = value.decode(source[value.start : value.end])
    return Segment(
        start=value.start,
        end=value.end,
        text=html.escape(text, quote=False),
        readable=text,
        write=lambda translation: value.encode(unescape(translation)),
    )


def runs(source: str, pieces: Iterable[Piece], reading: Reading, encode: "Encode") -> Iterator["Run"]:
    """The texts of a block, which is bounded by blocks: those between markup, each without white space and
    tags at its ends.

    An element that is not closed in the text that it is opened in bounds that text, too.
    """
    bounded, partners = _bounded(pieces, reading)
    num_held = first = 0
    for last, piece in enumerate((*bounded, None)):
        if piece is not None and piece.kind != "markup":
            continue
        run = _run(source, bounded, partners, first, last - 1, encode)
        if run is not None:
            num_held += len(run.pieces)
            yield run
        first = last + 1
    reading.give_back(ITEM_BYTES * (len(bounded) - num_held))


def _bounded(pieces: Iterable[Piece], reading: Reading) -> tuple[list[Piece], dict[int, int]]:
    """The pieces, in which elements nest and none is in a text in part: their tags are markup then; and where
    each element that is opened is closed."""
    result = []
    for piece in pieces:
        reading.take(ITEM_BYTES)
        result.append(piece)
    opened: list[int] = []
    partners: dict[int, int] = {}

    def bound(indices: Iterable[int]) -> None:
        for index in indices:
            result[index] = replace(result[index], kind="markup")
        opened.clear()

    for index, piece in enumerate(result):
        if piece.kind == "open":
            opened.append(index)
        elif piece.kind == "markup":
            bound(opened)
        elif piece.kind == "close":
            if opened and result[opened[-1]].name == piece.name:
                partners[opened.pop()] = index
            else:
                bound([*opened, index])
    bound(opened)
    return result, partners


def _run(
    source: str, pieces: Sequence[Piece], partners: Mapping[int, int], first: int, last: int, encode: "Encode"
) -> "Run | None":
    while first <= last:
        if _is_outside(source, pieces[first]):
            first += 1
        elif _is_outside(source, pieces[last]):
            last -= 1
        elif partners.get(first) == last and pieces[last].output is None:
            first, last = first + 1, last - 1
        else:
            break
    within = list(pieces[first : last + 1])
    # Most rows of markup have no text at all.
    if not any(piece.kind in ("text", "break") for piece in within):
        return None
    start, end = within[0].start, within[-1].end
    if within[0].kind == "text":
        while source[start] in BLANK:
            start += 1
        within[0] = replace(within[0], start=start)
    if within[-1].kind == "text":
        while source[end - 1] in BLANK:
            end -= 1
        within[-1] = replace(within[-1], end=end)
    texts = (piece for piece in within if piece.kind in ("text", "break"))
    text = "".join(piece.decode(source[piece.start : piece.end]) for piece in texts)
    return Run(source, within, text, encode) if has_letters(text) else None


def _is_outside(source: str, piece: Piece) -> bool:
    """Whether it stays where it is at the beginning or the end of a text."""
    if piece.kind == "text":
        return not source[piece.start : piece.end].strip(BLANK)
    return piece.kind in ("glue", "empty", "break")


Notations = Mapping[int, str]
"""The notations of characters at some positions of a text."""
Encode = Callable[["Run", str, Notations], str]
"""A text of a run in the notation of the file."""
Write = Callable[["Run", str], str]
"""A run's translation in the notation of the file, with its markup."""

_TAG = re.compile(r'(<g\d+>|</g\d+>|<x\d+/>|<ph id="\d+"></ph>|<br id="\d+"/>)')
_WITHOUT_CONTENT = {"empty": "<x{}/>", "word": '<ph id="{}"></ph>', "break": '<br id="{}"/>'}


class Run:
    """A row of pieces that is translated as one text, with tags for its markup."""

    __slots__ = (
        *("_encode", "_notations", "_tagged", "_values"),
        *("end", "html", "pieces", "source", "start", "text"),
    )

    def __init__(self, source: str, pieces: Sequence[Piece], text: str, encode: Encode) -> None:
        self.source = source
        self.start, self.end = pieces[0].start, pieces[-1].end
        self.pieces = tuple(pieces)
        """The pieces; elements nest."""
        self.text = text
        """All text in it, without markup."""
        self._encode = encode
        self._tagged: dict[str, Piece] = {}
        # By the break before each, the texts within markup, which stand behind all else.
        self._values: dict[str, Value] = {}
        self._notations: dict[str, list[str]] = {}
        self.html = "".join(self._tags())
        """The text that is sent to the server."""
        self._note()

    def segment(self, write: Write | None = None) -> Segment:
        """It with the white space that HTML shows, and how it is written if not as it is by itself."""
        return Segment(
            start=self.start,
            end=self.end,
            text=collapse(self.html),
            readable=self.text,
            write=partial(write or Run.write, self),
        )

    def _tags(self) -> Iterator[str]:
        opened: list[int] = []
        for number, piece in enumerate(self.pieces, start=1):
            if piece.kind == "text":
                yield self._escaped(piece)
                continue
            if piece.kind == "glue":
                continue
            if piece.kind == "open":
                opened.append(number)
                tag = f"<g{number}>"
            elif piece.kind == "close":
                tag = f"</g{opened.pop()}>"
            else:
                tag = _WITHOUT_CONTENT[piece.kind].format(number)
            self._tagged[tag] = piece
            yield tag
        values = (value for piece in self.pieces for value in piece.values)
        for number, value in enumerate(values, start=len(self.pieces) + 1):
            tag = _WITHOUT_CONTENT["break"].format(number)
            self._values[tag] = value
            yield tag + html.escape(value.decode(self.source[value.start : value.end]), quote=False)

    def _escaped(self, piece: Piece) -> str:
        decoded = self._decoded(piece)
        if self.raw(piece).startswith("&") and len(decoded) == 1 and not decoded.isalnum():
            # A reference that stays one, such as to a no-break space.
            return f"&#{ord(decoded)};"
        return html.escape(decoded, quote=False)

    def _note(self) -> None:
        """Notes how each character is written that the source writes in a way of its own, in order."""
        texts = [piece for piece in self.pieces if piece.kind == "text"]
        special = {
            self._decoded(piece)
            for piece in texts
            if self._decoded(piece) != self.raw(piece) and not self._decoded(piece).isalnum()
        }
        self._notations = {character: [] for character in special if len(character) == 1}
        for piece in texts:
            decoded = self._decoded(piece)
            for character in decoded:
                if character in self._notations:
                    # Of a longer piece each character stands for itself.
                    raw = self.raw(piece) if len(decoded) == 1 else character
                    self._notations[character].append(raw)

    def _decoded(self, piece: Piece) -> str:
        return piece.decode(self.raw(piece))

    def raw(self, piece: "Piece | Run") -> str:
        return self.source[piece.start : piece.end]

    def write(self, translation: str) -> str:
        """The translation in the notation of the file. Raises UnitError, as `parts` does."""
        parts = (part if isinstance(part, str) else self.written(part) for part in self.parts(translation))
        return "".join(parts) + "".join(self.raw(piece) for piece in self.pieces if piece.kind == "glue")

    def written(self, piece: Piece) -> str:
        """A piece of markup as the translation has it."""
        return self.raw(piece) if piece.output is None else piece.output

    def parts(self, translation: str) -> list[str | Piece]:
        """A translation's texts as the file writes them, and between them pieces of markup.

        Raises UnitError for one that has not all the markup of its text, or has some twice.
        """
        found = _TAG.split(translation)
        tags = found[1::2]
        num_pieces = len(self._tagged)
        has_all = Counter(tags[:num_pieces]) == Counter(list(self._tagged))
        if not (has_all and tags[num_pieces:] == list(self._values) and _nests(tags)):
            raise UnitError("the translation has not the markup of its text")
        texts = list(map(unescape, found[::2]))
        values = {
            value: value.encode(text.strip())
            for value, text in zip(self._values.values(), texts[num_pieces + 1 :], strict=True)
        }
        written = self._written(texts[: num_pieces + 1])
        parts: list[str | Piece] = []
        for text, tag in itertools.zip_longest(written, tags[:num_pieces]):
            parts += [text] if text else []
            parts += [self._filled(self._tagged[tag], values)] if tag else []
        return parts

    def _filled(self, piece: Piece, values: Mapping[Value, str]) -> Piece:
        """A piece with the translations of the texts within it."""
        if not piece.values:
            return piece
        output, position = "", piece.start
        for value in piece.values:
            output += self.source[position : value.start] + values[value]
            position = value.end
        return replace(piece, output=output + self.source[position : piece.end])

    def _written(self, texts: list[str]) -> list[str]:
        """The texts as the file writes them: a character as in the source, where that had one of its own.

        Where there are more or fewer of it, all are references if one was, and none has a notation otherwise.
        """
        num_there = Counter("".join(texts)) if self._notations else {}
        notations = {
            character: iter(raws)
            if num_there[character] == len(raws)
            else itertools.repeat(next(raw for raw in raws if raw != character))
            for character, raws in self._notations.items()
            if num_there[character] == len(raws) or any(raw.startswith("&") for raw in raws)
        }

        def encoded(text: str) -> str:
            noted = {
                index: next(notations[character])
                for index, character in enumerate(text if notations else "")
                if character in notations
            }
            return self._encode(self, text, noted)

        return [encoded(text) if text else "" for text in texts]


def _nests(tags: list[str]) -> bool:
    opened: list[str] = []
    for tag in tags:
        if tag.startswith("<g"):
            opened.append(tag[2:])
        elif tag.startswith("</g") and (not opened or opened.pop() != tag[3:]):
            return False
    return True


def encode_with(escape: Callable[[str], str]) -> Encode:
    """An encoder that writes each character by itself."""

    def encode(run: Run, text: str, notations: Notations) -> str:
        if not notations:
            return escape(text)
        return "".join(
            notations[index] if index in notations else escape(character)
            for index, character in enumerate(text)
        )

    return encode

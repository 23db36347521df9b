"""A text with its markup as the server takes it, and its translation in the notation of the file.

The server's HTML has tags of our own in place of the file's: `<g1>` and `</g1>` around what an element of
the file is around, `<x2/>` for what a sentence is complete without, `<ph id="3"></ph>` for what stands for a
word, `<br id="4"/>` for a line break. It sees to it that each comes back once, and that they nest.
"""

import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dragoman_files.errors import UnitError
from dragoman_files.spacing import unescape
from dragoman_files.tags.markup import Piece, Run

Notations = Mapping[int, str]
"""The notations of characters at some positions of a text."""
Encode = Callable[[str, Notations], str]
"""A text in the notation of the file."""

_TAG = re.compile(r'(<g\d+>|</g\d+>|<x\d+/>|<ph id="\d+"></ph>|<br id="\d+"/>)')
_WITHOUT_CONTENT = {"empty": "<x{}/>", "word": '<ph id="{}"></ph>', "break": '<br id="{}"/>'}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a translation."""

    text: str
    """Decoded; of anything but a text, empty."""
    piece: Piece | None
    """The piece of the source; None of a text."""


class Tagged:
    """One text."""

    __slots__ = ("_encode", "_notations", "_pieces", "_run", "_source", "html")

    def __init__(self, source: str, run: Run, encode: Encode) -> None:
        self._source = source
        self._run = run
        self._encode = encode
        self._pieces: dict[str, Piece] = {}
        self._notations: dict[str, list[str]] = {}
        self.html = "".join(self._tags())
        """The text that is sent to the server."""
        self._note()

    def _tags(self) -> Iterator[str]:
        opened: list[int] = []
        for number, piece in enumerate(self._run.pieces, start=1):
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
            self._pieces[tag] = piece
            yield tag

    def _escaped(self, piece: Piece) -> str:
        decoded = self._decoded(piece)
        if self._raw(piece).startswith("&") and len(decoded) == 1 and not decoded.isalnum():
            # A reference that stays one, such as to a no-break space.
            return f"&#{ord(decoded)};"
        return html.escape(decoded, quote=False)

    def _note(self) -> None:
        """Notes how each character is written that the source writes in a way of its own, in order."""
        texts = [piece for piece in self._run.pieces if piece.kind == "text"]
        special = {
            self._decoded(piece)
            for piece in texts
            if self._decoded(piece) != self._raw(piece) and not self._decoded(piece).isalnum()
        }
        self._notations = {character: [] for character in special if len(character) == 1}
        for piece in texts:
            decoded = self._decoded(piece)
            for character in decoded:
                if character in self._notations:
                    # Of a longer piece each character stands for itself.
                    raw = self._raw(piece) if len(decoded) == 1 else character
                    self._notations[character].append(raw)

    def _decoded(self, piece: Piece) -> str:
        return piece.decode(self._raw(piece))

    def _raw(self, piece: Piece) -> str:
        return self._source[piece.start : piece.end]

    def write(self, translation: str) -> str:
        """The translation in the notation of the file. Raises UnitError, as `parts` does."""
        written = ""
        for part in self.parts(translation):
            if part.piece is None:
                written += part.text
            else:
                written += self._raw(part.piece) if part.piece.output is None else part.piece.output
        return written + self._run.glue

    def parts(self, translation: str) -> list[Part]:
        """The parts of a translation, texts as the file writes them.

        Raises UnitError for one that has not all the markup of its text, or has some twice.
        """
        found = _TAG.split(translation)
        tags = found[1::2]
        if Counter(tags) != Counter(list(self._pieces)) or not _nests(tags):
            raise UnitError("the translation has not the markup of its text")
        texts = list(map(unescape, found[::2]))
        written = self._written(texts)
        parts = []
        for index, text in enumerate(written):
            if text:
                parts.append(Part(text=text, piece=None))
            if index < len(tags):
                parts.append(Part(text="", piece=self._pieces[tags[index]]))
        return parts

    def _written(self, texts: list[str]) -> list[str]:
        """The texts as the file writes them: a character as in the source, where that had one of its own.

        Where there are more or fewer of it, all are references if one was, and none has a notation otherwise.
        """
        num_there = Counter("".join(texts)) if self._notations else {}
        notations = {
            character: iter(raws) if num_there[character] == len(raws) else _repeated(raws, character)
            for character, raws in self._notations.items()
            if num_there[character] == len(raws) or any(raw.startswith("&") for raw in raws)
        }
        return [
            self._encode(
                text,
                {
                    index: next(notations[character])
                    for index, character in enumerate(text)
                    if character in notations
                }
                if notations
                else {},
            )
            if text
            else ""
            for text in texts
        ]


def _repeated(raws: list[str], character: str) -> Iterator[str]:
    return itertools.repeat(next(raw for raw in raws if raw != character))


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

    def encode(text: str, notations: Notations) -> str:
        if not notations:
            return escape(text)
        return "".join(
            notations[index] if index in notations else escape(character)
            for index, character in enumerate(text)
        )

    return encode

"""How the texts of a paragraph of Word look, and how a translation gets these looks.

A paragraph is a row of runs, each with a look of its own and a text; there are no tags around words as in
HTML. So the texts that look like the first one of their sentence are its plain text, and each row of others
is an element around them. Of a translation the runs are made anew.
"""

import html
import re
from collections.abc import Sequence

from dragoman.jobs.formats.tags.markup import Kind, Piece, Run
from dragoman.jobs.formats.tags.tagged import Tagged
from dragoman.jobs.formats.tags.xml_events import Event

_OF_RUNS = frozenset(("r", "t", "rPr", "lastRenderedPageBreak"))
_BETWEEN = frozenset(("proofErr", "bookmarkStart", "bookmarkEnd", "permStart", "permEnd"))
"""Elements between runs that bound no text."""
_AROUND = frozenset(("hyperlink", "smartTag", "ins"))
"""Elements around runs within a sentence."""
_UNSEEN = frozenset(("lang", "noProof"))
"""Properties of a run that nobody sees."""
_SPACE = re.compile(r"\sxml:space\s*=\s*(\"[^\"]*\"|'[^']*')")
_TEXT_TAG = re.compile(r"<((?:\w+:)?)t\s[^<>]*>\Z")


def pieces_of(source: str, paragraph: Sequence[Event | None]) -> list[Piece]:
    """The texts of a paragraph, whose events those are, without its tags; None for a paragraph within it."""
    reader = _Reader(source)
    for event in paragraph:
        reader.read(event)
    reader.close_look()
    return reader.pieces


def write_looks(source: str, run: Run, tagged: Tagged, translation: str) -> str:
    """The translation of a text, in runs that look as its words did. Raises UnitError, as `Tagged.write`."""
    writer = _Writer(source, run)
    for part in tagged.parts(translation):
        if part.piece is None:
            writer.write_text(part.text)
        else:
            writer.write_tag(part.piece)
    return writer.finish()


class _Reader:
    """Sorts out what belongs together."""

    def __init__(self, source: str) -> None:
        self.pieces: list[Piece] = []
        self._source = source
        self._names: list[str] = []
        # Of the run: its properties, and what opens it up to its text.
        self._look = self._opening = self._text_tag = ""
        # The look of the first text behind what bounds texts, for each element around.
        self._first: list[str | None] = [None]
        # The look of the element that is open, and where its last text is.
        self._current: str | None = None
        self._last_text = 0

    def read(self, event: Event | None) -> None:
        """Takes in the next event."""
        if event is None:
            self._bound(Piece(start=0, end=0, kind="markup"))
            return
        raw = self._source[event.start : event.end]
        if event.kind == "start":
            if event.name == "r":
                self._look, self._opening = "", raw
            self._names.append(event.name)
        in_properties = "rPr" in self._names
        if in_properties:
            self._opening += raw
            if event.name != "rPr" and not _UNSEEN.intersection(self._names):
                self._look += raw
        elif event.kind == "start" and event.name == "t":
            self._text_tag = _SPACE.sub("", raw)[:-1].rstrip("/") + ' xml:space="preserve">'
        if event.kind == "end":
            self._names.pop()
        if event.kind == "text" and self._names[-1:] == ["t"] and "oMath" not in self._names:
            self._text(event)
        elif in_properties or event.kind == "text" or event.name in _OF_RUNS:
            self.pieces.append(Piece(start=event.start, end=event.end, kind="glue"))
        elif event.name in _BETWEEN:
            self.pieces.append(Piece(start=event.start, end=event.end, kind="glue", name=event.name))
        elif event.name in _AROUND and event.kind in ("start", "end"):
            self.close_look()
            kind: Kind = "open" if event.kind == "start" else "close"
            if kind == "open":
                self._first.append(None)
            elif len(self._first) > 1:
                self._first.pop()
            self.pieces.append(Piece(start=event.start, end=event.end, kind=kind, name=event.name))
        else:
            self._bound(Piece(start=event.start, end=event.end, kind="markup"))

    def _text(self, event: Event) -> None:
        look = f"{'/'.join(name for name in self._names[:-2] if name not in _AROUND)} {self._look}"
        if self._current not in (None, look):
            self.close_look()
        if self._first[-1] is None:
            self._first[-1] = look
        if self._current is None and look != self._first[-1]:
            self._current = look
            self.pieces.append(Piece(start=event.start, end=event.start, kind="open", name=look))
        self._last_text = len(self.pieces)
        self.pieces.append(
            Piece(
                start=event.start,
                end=event.end,
                kind="text",
                decode=html.unescape,
                look=self._opening + self._text_tag,
            )
        )

    def close_look(self) -> None:
        """Ends the element that is open because of a look, behind its last text."""
        if self._current is not None:
            end = self.pieces[self._last_text].end
            close = Piece(start=end, end=end, kind="close", name=self._current)
            self.pieces.insert(self._last_text + 1, close)
            self._current = None

    def _bound(self, piece: Piece) -> None:
        self.close_look()
        self._first = [None]
        self.pieces.append(piece)


class _Writer:
    """Writes runs, one after the other."""

    def __init__(self, source: str, run: Run) -> None:
        self._source = source
        self._run = run
        self._written: list[str] = []
        texts = [piece for piece in run.pieces if piece.kind == "text"]
        self._base = _first_look(run.pieces) or texts[0].look
        self._last = texts[-1].look
        self._ends_in_text = not self._is_tag(run.pieces[-1])
        # The look of the run that is open; None between runs.
        self._look = None if self._is_tag(run.pieces[0]) else texts[0].look
        self._looks = [self._base]
        prefix = _TEXT_TAG.search(self._last)
        assert prefix is not None, self._last
        self._closing = f"</{prefix[1]}t></{prefix[1]}r>"
        if self._look is not None and "xml:space" not in source[source.rfind("<", 0, run.start) : run.start]:
            # White space at its ends would not be shown.
            self._look = ""

    def write_text(self, text: str) -> None:
        """A text in the look of the element that it stands in."""
        self._open(self._looks[-1])
        self._written.append(text)

    def write_tag(self, piece: Piece) -> None:
        """The beginning or the end of an element."""
        if self._is_tag(piece):
            self._close()
            self._written.append(self._source[piece.start : piece.end])
        if piece.kind == "open":
            self._looks.append(_look_within(self._run.pieces, piece) or self._looks[-1])
        else:
            self._looks.pop()

    def finish(self) -> str:
        """All that was written, then what stood between the runs and is none of them."""
        between = "".join(
            self._source[piece.start : piece.end]
            for piece in self._run.pieces
            if piece.kind == "glue" and piece.name
        )
        if between:
            self._close()
            self._written.append(between)
        if self._ends_in_text:
            self._open(self._last)
        else:
            self._close()
        return "".join(self._written)

    def _open(self, look: str) -> None:
        if self._look != look:
            self._close()
            self._written.append(look)
            self._look = look

    def _close(self) -> None:
        if self._look is not None:
            self._written.append(self._closing)
            self._look = None

    def _is_tag(self, piece: Piece) -> bool:
        """Whether it is a tag of the document, rather than one for a look."""
        return piece.kind in ("open", "close") and piece.end > piece.start


def _first_look(pieces: Sequence[Piece]) -> str | None:
    """The look of the first text that is in no element; None where all are."""
    depth = 0
    for piece in pieces:
        depth += {"open": 1, "close": -1}.get(piece.kind, 0)
        if piece.kind == "text" and depth == 0:
            return piece.look
    return None


def _look_within(pieces: Sequence[Piece], opened: Piece) -> str | None:
    """The look of the first text in an element, of those in none within it if there are; None without."""
    depth = 0
    within: list[Piece] = []
    for piece in pieces[pieces.index(opened) :]:
        depth += {"open": 1, "close": -1}.get(piece.kind, 0)
        within.append(piece)
        if depth == 0:
            break
    texts = [piece.look for piece in within if piece.kind == "text"]
    return _first_look(within[1:-1]) or (texts[0] if texts else None)

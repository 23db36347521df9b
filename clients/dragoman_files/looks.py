"""How the texts of a paragraph of Word, PowerPoint or Excel look, and how a translation gets these looks.

A paragraph is a row of runs, each with a look of its own and a text; there are no tags around words as in
HTML. So the texts that look like the first one of their sentence are its plain text, and each row of others
is an element around them. Of a translation the runs are made anew.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dragoman_files.format import Reading
from dragoman_files.tags import Kind, Piece, Run
from dragoman_files.texts import ELEMENTS, has_letters
from dragoman_files.xml_texts import Event, Grammar, Paragraph, text_pieces

_ELEMENTS = ELEMENTS["runs"]
_AROUND, _UNSEEN = _ELEMENTS["around"], _ELEMENTS["unseen"]
_RUN_TAG = re.compile(r"<((?:\w+:)?)r\b")
_SPACE = re.compile(r"\sxml:space\s*=\s*(\"[^\"]*\"|'[^']*')")
_TEXT_TAG = re.compile(r"<((?:\w+:)?)t(?:\s[^<>]*)?>\Z")


def _is_drawn(tag: str) -> bool:
    """Whether the tag of a text is DrawingML's, which shows all white space and has no attribute for it."""
    return tag.startswith("<a:")


def pieces_of(source: str, paragraph: Paragraph, grammar: Grammar, reading: Reading) -> list[Piece]:
    reader = _Reader(source, grammar, reading)
    wholes = _wholes(source, paragraph)
    position = 0
    while position < len(paragraph):
        first = paragraph[position]
        last = wholes.get(position, position)
        if last == position or first is None:
            reader.read(first)
        else:
            reader.read_whole([event for event in paragraph[position : last + 1] if event is not None])
        position = last + 1
    reader.close_look()
    return reader.pieces


def _wholes(source: str, paragraph: Paragraph) -> dict[int, int]:
    """The first and the last event of all that is one piece, whatever is in it: elements that a sentence is
    complete without, and fields whose result has no letter.

    None has a paragraph within it.
    """
    found: dict[int, int] = {}
    opened: list[tuple[int, int]] = []
    fields: list[tuple[int, int, int]] = []
    num_paragraphs = num_texts = 0
    for index, event in enumerate(paragraph):
        if event is None:
            num_paragraphs += 1
        elif event.kind == "start":
            opened.append((index, num_paragraphs))
            if event.name == "fldChar":
                kinds = [value for name, value in event.pairs() if name.endswith("fldCharType")]
                if kinds == ["begin"]:
                    fields.append((index, num_paragraphs + num_texts, len(opened)))
                elif kinds == ["end"] and fields:
                    first, before, depth = fields.pop()
                    if before == num_paragraphs + num_texts and depth == len(opened):
                        found[first] = index + 1
        elif event.kind == "end":
            first, before = opened.pop()
            if fields and len(opened) < fields[-1][2] - 2:
                # It does not end in the element that it begins in.
                fields.clear()
            started = paragraph[first]
            if started is not None and started.name in _ELEMENTS["empty"] and before == num_paragraphs:
                found[first] = index
        elif event.kind == "text" and opened:
            started = paragraph[opened[-1][0]]
            is_read = started is not None and started.name == "t"
            num_texts += is_read and has_letters(source[event.start : event.end])
    return found


def write_looks(run: Run, translation: str) -> str:
    """The translation of a text, in runs that look as its words did. Raises UnitError, as `Run.write`."""
    if all(piece.kind in ("text", "break", "glue") for piece in run.pieces):
        return run.write(translation)
    writer = _Writer(run)
    for part in run.parts(translation):
        if isinstance(part, str):
            writer.write_text(part)
        else:
            writer.write_tag(part)
    return writer.finish()


class _Reader:
    """Sorts out what belongs together."""

    def __init__(self, source: str, grammar: Grammar, reading: Reading) -> None:
        self.pieces: list[Piece] = []
        self._source = source
        self._grammar = grammar
        self._reading = reading
        # The names of the elements that are open, how many are of each, and a number for those around a run.
        self._names: list[str] = []
        self._num_open: Counter[str] = Counter()
        self._around = [0]
        self._numbers: dict[tuple[int, str], int] = {}
        # Of the run: its properties, and what opens it up to its text.
        self._look: list[str] = []
        self._opening: list[str] = []
        self._text_tag = ""
        # The look of the first text behind what bounds texts, for each element around.
        self._first: list[str | None] = [None]
        # The look of the element that is open, and where its last text is.
        self._current: str | None = None
        self._last_text = 0

    def read(self, event: Event | None) -> None:
        if event is None:
            self._bound(Piece(start=0, end=0, kind="markup"))
            return
        raw = self._source[event.start : event.end]
        if event.kind == "start":
            if event.name == "r":
                self._look, self._opening = [], [raw]
            self._names.append(event.name)
            self._num_open[event.name] += 1
            key = (self._around[-1], event.name)
            number = len(self._numbers) + 1
            self._around.append(key[0] if event.name in _AROUND else self._numbers.setdefault(key, number))
        in_properties = self._num_open["rPr"] > 0
        if in_properties:
            self._opening.append(raw)
            if event.name == "rPr":
                self._look += [f"{name}={value}" for name, value in event.pairs() if name not in _UNSEEN]
            elif not any(self._num_open[name] for name in _UNSEEN):
                self._look.append(raw)
        elif event.kind == "start" and event.name == "t":
            space = "" if _is_drawn(raw) else ' xml:space="preserve"'
            self._text_tag = f"{_SPACE.sub('', raw)[:-1].rstrip('/')}{space}>"
        if event.kind == "end":
            self._num_open[self._names.pop()] -= 1
            self._around.pop()
        if event.kind == "text" and self._names[-1:] == ["t"] and not self._num_open["oMath"]:
            self._text(event)
        elif in_properties or event.kind == "text" or event.name in _ELEMENTS["of_runs"]:
            last = self.pieces[-1] if self.pieces else None
            if last is not None and last.kind == "glue" and not last.name:
                self.pieces[-1] = replace(last, end=event.end)
            else:
                self.pieces.append(Piece(start=event.start, end=event.end, kind="glue"))
        elif event.name in _ELEMENTS["between"]:
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

    def read_whole(self, events: Sequence[Event]) -> None:
        """Takes in events that are one piece, which in a run gets a run of its own."""
        start, end = events[0].start, events[-1].end
        if events[0].name == "sdtPr" and self.pieces[-1].kind == "open":
            # It stays where a content control begins.
            self.pieces[-1] = replace(self.pieces[-1], end=end)
            return
        output = None
        if self._num_open["r"]:
            opening = "".join(self._opening)
            prefix = _RUN_TAG.match(opening)
            assert prefix is not None, opening
            output = f"{opening}{self._source[start:end]}</{prefix[1]}r>"
            self._reading.take(len(output))
        self.pieces.append(Piece(start=start, end=end, kind="empty", output=output))

    def _text(self, event: Event) -> None:
        # The run's own elements are its text and itself.
        look = f"{self._around[-3] if len(self._around) > 2 else 0} {''.join(self._look)}"
        opening = "".join(self._opening) + self._text_tag
        self._reading.take(len(look) + len(opening))
        if self._current not in (None, look):
            self.close_look()
        if self._first[-1] is None:
            self._first[-1] = look
        if self._current is None and look != self._first[-1]:
            self._current = look
            self.pieces.append(Piece(start=event.start, end=event.start, kind="open", name=look))
        for piece in text_pieces(self._source, event, join=self._grammar.joins):
            self._last_text = len(self.pieces)
            self.pieces.append(replace(piece, look=opening))

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
    def __init__(self, run: Run) -> None:
        self._run = run
        self._written: list[str] = []
        texts = [piece for piece in run.pieces if piece.kind == "text"]
        self._within = _looks_within(run.pieces)
        self._last = texts[-1].look
        self._ends_in_text = not self._is_tag(run.pieces[-1])
        # The look of the run that is open; None between runs.
        self._look = None if self._is_tag(run.pieces[0]) else texts[0].look
        self._looks = [self._within[None]]
        prefix = _TEXT_TAG.search(self._last)
        assert prefix is not None, self._last
        self._closing = f"</{prefix[1]}t></{prefix[1]}r>"
        tag = run.source[run.source.rfind("<", 0, run.start) : run.start]
        if self._look is not None and "xml:space" not in tag and not _is_drawn(tag):
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
            self._written.append(self._run.written(piece))
        elif piece.kind == "break":
            self.write_text(self._run.raw(piece))
        if piece.kind == "open":
            self._looks.append(self._within.get(id(piece)) or self._looks[-1])
        elif piece.kind == "close":
            self._looks.pop()

    def finish(self) -> str:
        """All that was written, then what stood between the runs and is none of them."""
        pieces = self._run.pieces
        between = "".join(self._run.raw(piece) for piece in pieces if piece.kind == "glue" and piece.name)
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
        """Whether it is markup of the document, rather than a tag for a look."""
        return piece.kind in ("open", "close", "empty") and piece.end > piece.start


def _looks_within(pieces: Sequence[Piece]) -> dict[int | None, str]:
    """The look of the first text in each element, of those in none within it if there are, by the identity of
    the piece that opens it; by None that of the whole text."""
    looks: dict[int | None, str] = {}
    # For each element that is open: its key, the first look in it, the first deeper one.
    opened: list[tuple[int | None, str, str]] = [(None, "", "")]
    for piece in pieces:
        element, own, deeper = opened[-1]
        if piece.kind == "open":
            opened.append((id(piece), "", ""))
        elif piece.kind == "close":
            opened.pop()
            looks[element] = own or deeper
            around, first, within = opened[-1]
            opened[-1] = (around, first, within or own or deeper)
        elif piece.kind == "text":
            opened[-1] = (element, own or piece.look, deeper)
    [(_, own, deeper)] = opened
    looks[None] = own or deeper
    return looks

"""Subtitles, SubRip and WebVTT: the texts of cues; numbers, timings, settings, styles and comments stay.

Libraries for these write files of their own: numbers anew, cues without settings, no comments. So the lines
are read here, as https://www.w3.org/TR/webvtt1/ (section 4) has them; SubRip has no other standard.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence

from dragoman_files.document import Segment
from dragoman_files.format import FileError, Reading
from dragoman_files.tags import Kind, Piece, Run, encode_with, runs
from dragoman_files.texts import ELEMENTS, ITEMS, collapse, unescape

_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?![\d:])")
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\n|\r|\Z)")
# Up to the next ">", whatever stands before it: webvtt1, section 6.4.5, the tokenizer of cue texts.
_MARKUP = re.compile(r"<(?P<end>/?)(?P<name>[a-z]*)[^<>]*>|\{\\[^{}]*\}|(?P<line>\r\n|\n|\r)", re.IGNORECASE)
_SOUND = re.compile(rf"\s*(?:[{ITEMS}]\s+)?(\[[^\[\]<>\r\n]*\]|\([^()<>\r\n]*\))(?=\s|\Z)")
"""What is heard or done, where a line begins."""
_SPEAKER = re.compile(rf"\s*(?:[{ITEMS}]\s+)?([^\W\d_][\w .'’&-]{{0,30}}:)(?=\s)")
_ITEM = re.compile(rf"[ \t]*[{ITEMS}]")
_NO_CUES = ("NOTE", "STYLE", "REGION")
_ENDS = '.!?…。！？♪"”“»«)]'
"""What a text ends in that does not go on in the next cue."""
_MAX_SHARED = 10
"""Most cues that one sentence is shared out over."""


def srt_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of SubRip. A block without a timing goes on with the cue before it. Raises FileError."""
    return _segments(source, reading, str, str)


def vtt_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of WebVTT. Raises FileError for a file that does not begin as such."""
    if not re.match(r"WEBVTT(?=[ \t\r\n]|\Z)", source):
        raise FileError(
            'WebVTT begins with a line "WEBVTT", and this does not',
            "; `--format srt` takes SubRip",
            elsewhere="; a name that ends in .srt takes SubRip",
        )
    return _segments(source, reading, unescape, lambda text: html.escape(text, quote=False), header=True)


def _segments(
    source: str,
    reading: Reading,
    decode: Callable[[str], str],
    encode: Callable[[str], str],
    *,
    header: bool = False,
) -> Iterator[Segment]:
    """`header` says that the first block is no cue, nor any without a timing."""

    def encoded(text: str) -> str:
        # A line end would be one of the cue's, an arrow make a timing of its line.
        return encode(" ".join(text.split("\n")).replace("-->", "->"))

    has_cue, join = False, bool(reading.options.join_lines)
    # The last texts, which may go on in the next cue.
    held: list[Run] = []
    for begin, end in _blocks(source):
        if header and begin == 0:
            continue
        start = _text_start(source, begin, end)
        if start is None:
            if header or source.startswith(_NO_CUES, begin):
                continue
            if not has_cue:
                text = source[begin:end].strip()[:80]
                raise FileError(f"line {_line(source, begin)} begins no cue: {text!r}")
            start = begin
        has_cue = True
        pieces = _pieces(source, start, end, decode, join)
        for number, run in enumerate(runs(source, pieces, reading, encode_with(encoded))):
            goes_on = join and number == 0 and len(held) < _MAX_SHARED and _goes_on(held, run)
            if held and not goes_on:
                yield _segment(source, held, encoded)
                held = []
            held.append(run)
    if held:
        yield _segment(source, held, encoded)
    if not has_cue and source.strip() and not header:
        raise FileError("no cue: no line with a timing such as 00:00:01,000 --> 00:00:02,000")


def _goes_on(held: Sequence[Run], run: Run) -> bool:
    """Whether a cue's text is the rest of the sentence before it. Only such without markup are one text."""
    if not held:
        return False
    before = held[-1].text.rstrip()
    is_plain = all(piece.kind == "text" for one in (held[-1], run) for piece in one.pieces)
    return is_plain and before[-1] not in _ENDS and (run.text[0].islower() or before[-1] == ",")


def _segment(source: str, held: Sequence[Run], encode: Callable[[str], str]) -> Segment:
    """One text, or several that are one sentence."""
    if len(held) == 1:
        return held[0].segment()

    def shared(translation: str) -> str:
        parts = _shares(unescape(translation).strip(), [len(run.text) for run in held])
        written, end = "", held[0].start
        for run, part in zip(held, parts, strict=True):
            written += source[end : run.start] + encode(part)
            end = run.end
        return written

    return Segment(
        start=held[0].start,
        end=held[-1].end,
        text=collapse(" ".join(run.html for run in held)),
        readable=" ".join(run.text for run in held),
        write=shared,
    )


def _shares(text: str, lengths: Sequence[int]) -> list[str]:
    """A text in so many parts, cut between words, if possible behind a comma, about as long as these."""
    # Where a part may begin, and how near that is behind a comma.
    places = [
        (found.end(), 0.5 if text[found.start() - 1] in ",;:–—.!?" else 1)
        for found in re.finditer(r"\s+", text)
    ] or [(place, 1) for place in range(1, len(text))]
    parts, start, rest = [], 0, sum(lengths)
    for length in lengths[:-1]:
        wanted = start + (len(text) - start) * length / rest
        rest -= length
        free = [(abs(place - wanted) * weight, place) for place, weight in places if place > start]
        _, end = min(free, default=(0, len(text)))
        parts.append(text[start:end].strip())
        start = end
    return [*parts, text[start:].strip()]


def _blocks(source: str) -> Iterator[tuple[int, int]]:
    """Where the lines between blank ones begin and end."""
    begin = None
    for line in _LINE.finditer(source):
        if line[0].strip():
            begin = line.start() if begin is None else begin
        elif begin is not None:
            yield begin, line.start()
            begin = None


def _text_start(source: str, start: int, end: int) -> int | None:
    """Where a cue's text begins; None for a block that is no cue. Raises FileError for a broken timing."""
    position = start
    # Before the timing stands a number or a name, of one line.
    for _ in range(2):
        if position >= end:
            return None
        line = _LINE.match(source, position)
        assert line is not None
        if _TIMING.match(line[0]):
            return line.end()
        if "-->" in line[0]:
            rule = "no timing such as 00:00:01,000 --> 00:00:02,000"
            raise FileError(f"line {_line(source, position)} is {rule}: {line[0].strip()[:80]!r}")
        position = line.end()
    return None


def _pieces(source: str, start: int, end: int, decode: Callable[[str], str], join: bool) -> Iterator[Piece]:
    """The pieces of a cue's text, in which a sound is a text of its own, and the name of a speaker none."""
    is_first = True
    while start < end:
        if is_first:
            # What a line begins with.
            while lead := _SOUND.match(source, start, end) or _speaker(source, start, end):
                first, last = lead.span(1)
                inner = (first + 1, last - 1) if lead[1][0] in "[(" else (last, last)
                yield Piece(start=start, end=inner[0], kind="markup")
                yield Piece(start=inner[0], end=inner[1], kind="text", decode=decode)
                yield Piece(start=inner[1], end=last, kind="markup")
                start = lead.end(1)
        mark = _MARKUP.search(source, start, end)
        stop = end if mark is None else mark.start()
        yield Piece(start=start, end=stop, kind="text", decode=decode)
        start = stop
        if mark is not None:
            is_first = mark["line"] is not None or (is_first and not source[start:stop].strip())
            yield _mark_piece(source, mark, join=join)
            start = mark.end()


def _mark_piece(source: str, mark: re.Match[str], *, join: bool) -> Piece:
    kind: Kind = "empty"
    name = (mark["name"] or "").lower()
    if mark["line"]:
        kind = "text" if join and not _ITEM.match(source, mark.end()) else "break"
    elif name in ELEMENTS["subtitles"]["around"]:
        kind = "close" if mark["end"] else "open"
    elif name:
        # A voice, which bounds texts.
        kind = "markup"
    return Piece(start=mark.start(), end=mark.end(), kind=kind, name=name)


def _speaker(source: str, start: int, end: int) -> re.Match[str] | None:
    """The speaker, where a line begins with a name in capitals."""
    found = _SPEAKER.match(source, start, end)
    return found if found is not None and found[1].isupper() else None


def _line(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1

"""Subtitles, SubRip and WebVTT: the texts of cues; numbers, timings, settings, styles and comments stay.

Libraries for these write files of their own: numbers anew, cues without settings, no comments. So the lines
are read here, as https://www.w3.org/TR/webvtt1/ (section 4) has them; SubRip has no other standard.
"""

import html
import re
from collections.abc import Callable, Iterator

from dragoman_files.document import Segment
from dragoman_files.format import FileError, Reading
from dragoman_files.tags import Piece, runs
from dragoman_files.texts import unescape

_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMING = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?![\d:])")
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\n|\r|\Z)")
# Up to the next ">", whatever stands before it: webvtt1, section 6.4.5, the tokenizer of cue texts.
_MARKUP = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_NO_CUES = ("NOTE", "STYLE", "REGION")


def srt_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of SubRip. A block without a timing goes on with the cue before it. Raises FileError."""
    return _segments(source, reading, str, str)


def vtt_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of WebVTT. Raises FileError for a file that does not begin as such."""
    if not re.match(r"WEBVTT(?=[ \t\r\n]|\Z)", source):
        raise FileError('WebVTT begins with a line "WEBVTT", and this does not; `--format srt` takes SubRip')
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

    def write(translation: str) -> str:
        # A blank line would end the cue, an arrow make a timing of its line.
        lines = (line.strip() for line in translation.splitlines())
        return encode("\n".join(filter(None, lines)).replace("-->", "->"))

    has_cue = False
    for begin, end in _blocks(source):
        if header and begin == 0:
            continue
        start = _text_start(source, begin, end)
        if start is None:
            if header or source.startswith(_NO_CUES, begin):
                continue
            if not has_cue:
                raise FileError(
                    f"line {_line(source, begin)} begins no cue: {source[begin:end].strip()[:80]!r}"
                )
            start = begin
        has_cue = True
        for run in runs(source, _pieces(source, start, end, decode), reading):
            newline = "\r\n" if "\r\n" in source[run.start : run.end] else "\n"
            yield Segment(
                start=run.start,
                end=run.end,
                text=run.text.replace("\r\n", "\n").replace("\r", "\n"),
                write=lambda translation, newline=newline: write(translation).replace("\n", newline),  # type: ignore[misc]
            )
    if not has_cue and source.strip() and not header:
        raise FileError("no cue: no line with a timing such as 00:00:01,000 --> 00:00:02,000")


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
            raise FileError(
                f"line {_line(source, position)} is no timing such as 00:00:01,000 --> 00:00:02,000: "
                f"{line[0].strip()[:80]!r}"
            )
        position = line.end()
    return None


def _pieces(source: str, start: int, end: int, decode: Callable[[str], str]) -> Iterator[Piece]:
    for mark in _MARKUP.finditer(source, start, end):
        yield Piece(start=start, end=mark.start(), kind="text", decode=decode)
        yield Piece(start=mark.start(), end=mark.end(), kind="markup")
        start = mark.end()
    yield Piece(start=start, end=end, kind="text", decode=decode)


def _line(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1

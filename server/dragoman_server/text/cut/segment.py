"""A text's units: what the model translates one by one, and what stands between them.

Owns where a text is cut and how it is put together again. Must not know tokens or models.
Ranges are half-open and count code points of the text that is given.
"""

import re
import unicodedata
from collections.abc import Iterator

from dragoman_bundle.languages import primary_language, writes_spaces

from dragoman_server.text.cut.rules import rules_for
from dragoman_server.text.mapped import Span
from dragoman_server.text.marks import text_outside, trimmed, within
from dragoman_server.text.options import Segmentation
from dragoman_server.text.passage import Passage

# The line ends of str.splitlines.
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
# What begins a line and belongs to none of its sentences, so that models leave it out or make words of it. A
# dash that begins speech is none, nor is a minus sign.
_BULLET = re.compile(
    r"""(?:\s*+(?:
        [-*•‣◦▪●]
        | \[[ xX]?\]                                                     # a box to tick
        | \(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,5}|[IVX]{1,5})\)                # "a)" and "(2)"
        | \[[\d .,:/-]{1,30}(?:[ ]?[AP]M)?\]                             # times: "[14:05]" and "14:05 -"
        | (?:\d[\d./-]{5,9},?[ ])?\d{1,2}:\d{2}(?::\d{2})?(?:[ ]?[AP]M)?[ ][-–](?=\s+[^\W\d])
        | >+ | \#{1,6} | /{2,3} | /\*+                                   # quotations, headings, comments
    )(?:\s++|$))++""",
    re.VERBOSE,
)
# What parts the cells of a table in plain text.
_CELL_END = re.compile(r"\t\s*+|(?:(?<=\s)|^)\|++(?=\s|$)", re.MULTILINE)
_OTHER_SPACE = re.compile(r"[^\S ]")
_SPACES = re.compile(r"\s+")
_CLAUSE_END = re.compile(r"[,;:.!?…)\]–—][\"'”’»]*\s+|\s[-–—]\s+|[、。，；：！？]\s*")
_ZERO_WIDTH_JOINER = "\u200d"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


def cut(passage: Passage) -> list[Span]:
    """The spans of a passage's units, without emoji at their ends and with something to translate in each."""
    spans = segment(passage.shielded, language=passage.languages[0], mode=passage.options.segmentation)
    if not passage.marks:
        return spans
    text = passage.source.text
    found = []
    for span in passage.wanted.each(spans):
        marks = within(passage.marks, span)
        inner = trimmed(text, span, marks) if marks else span
        if inner is not None and holds_letter(text_outside(text, inner, marks)):
            found.append(inner)
    return found


def segment(text: str, *, language: str, mode: Segmentation) -> list[Span]:
    """The ranges of the units, in order; none has white space at its ends or holds a line end.

    Each holds a letter. Of what does not, such as "1." or "😀", a model makes words that nobody wrote. A
    list's bullet belongs to no sentence, and the cells of a table are each on their own.
    """
    spans = []
    for line in _LINE.finditer(text):
        if mode is Segmentation.LINE:
            sentences: Iterator[Span] = iter((line.span(),))
        else:
            sentences = (
                sentence
                for cell in _cells(text, line.span())
                for sentence in _sentences(text, cell, language)
            )
        trimmed = (_trim(text, sentence) for sentence in sentences)
        spans += [span for span in trimmed if span and holds_letter(text[slice(*span)])]
    return spans


def holds_letter(text: str) -> bool:
    """Whether there is a letter of any script in it: a character of one of Unicode's categories L."""
    return any(map(str.isalpha, text))


def halve(text: str, span: Span) -> tuple[Span, Span] | None:
    """Cuts a unit in two near its middle: at a clause's end, else at white space, else between characters.

    A base character keeps its combining marks. None where there is nothing left to cut.
    """
    start, end = span
    middle = (start + end) // 2
    quarter = max(1, (end - start) // 4)
    cuts = [match.end() for match in _CLAUSE_END.finditer(text, start + quarter, end - quarter)]
    cuts = cuts or [match.end() for match in _SPACES.finditer(text, start, end)]
    cut = min(cuts, key=lambda position: abs(position - middle)) if cuts else _between_characters(text, span)
    left, right = _trim(text, (start, cut)), _trim(text, (cut, end))
    return (left, right) if left and right else None


def filler_for(language: str) -> str:
    """The separator between two sentences of that language where the source language wrote none."""
    return " " if writes_spaces(language) else ""


def _cells(text: str, line: Span) -> Iterator[Span]:
    """The parts of a line that are apart, without what begins the line and is no part of a sentence."""
    start, end = line
    bullet = _BULLET.match(text, start, end)
    if bullet:
        start = bullet.end()
    if text[start:end].rstrip().endswith("*/"):
        comment = text[start:end].rstrip().removesuffix("/").rstrip("*")
        end = start + len(comment) if comment[-1:].isspace() else end
    for boundary in _CELL_END.finditer(text, start, end):
        if start < boundary.start():
            yield start, boundary.start()
        start = boundary.end()
    if start < end:
        yield start, end


def _sentences(text: str, line: Span, language: str) -> Iterator[Span]:
    flat = _OTHER_SPACE.sub(" ", text[line[0] : line[1]])
    start = line[0]
    for end in rules_for(primary_language(language)).ends(flat):
        yield start, line[0] + end
        start = line[0] + end
    if start < line[1]:
        yield start, line[1]


def _trim(text: str, span: Span) -> Span | None:
    start, end = span
    piece = text[start:end]
    end -= len(piece) - len(piece.rstrip())
    start += len(piece) - len(piece.lstrip())
    return (start, end) if start < end else None


def _between_characters(text: str, span: Span) -> int:
    start, end = span
    middle = (start + end) // 2
    for cut in range(middle, end):
        continues = unicodedata.category(text[cut]).startswith("M") or text[cut] in _SKIN_TONES
        joined = _ZERO_WIDTH_JOINER in (text[cut], text[cut - 1])
        if cut > start and not continues and not joined:
            return cut
    return middle

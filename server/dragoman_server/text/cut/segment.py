"""A text's units: what the model translates one by one, and what stands between them.

Owns where a text is cut and how it is put together again. Must not know tokens or models.
Ranges are half-open and count code points of the text that is given.
"""

import re
from collections.abc import Iterator, Sequence

from dragoman_bundle.languages import primary_language, writes_spaces

from dragoman_server.text.brackets import matched
from dragoman_server.text.cut.rules import rules_for
from dragoman_server.text.mapped import Span
from dragoman_server.text.marks import Mark, is_text, trimmed, within
from dragoman_server.text.options import Segmentation
from dragoman_server.text.passage import Passage
from dragoman_server.text.words import holds_letter

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
_SPEAKER = r"(?P<speaker>[^\W\d_][\w.'’-]{0,30}(?: [\w.'’-]{1,30}){0,2}):\s+(?=\S)"
# What is heard before a sentence, or done before somebody speaks: "[Applaus] Danke.", "(seufzt) ANNA: Ja."
_HEARD = re.compile(rf"\[[^\[\]]{{1,60}}\]\s+(?P<next>[^\W\d_]|[\[(])|\([^()]{{1,60}}\)\s+{_SPEAKER}")
# What stands before a unit and behind it, and is no part of it.
_FRAME_BEFORE = re.compile(rf"(?:[–—―](?!\d)|…|\.{{3}})\s*|{_SPEAKER}")
_FRAME_BEHIND = re.compile(r"(?:\s*+(?:[…:;,–—―：；，、]|\.{3,}|(?<=\s)-)|(?<=[!?！？])[!?！？.…]++)++\Z")
_MAX_SIGNS = 20
_MAX_LAYERS = 12
_ONLY_SIGNS = re.compile(r"[\s.!?…:;,–—。！？，、：；-]{0,20}")
_OTHER_SPACE = re.compile(r"[^\S ]")


def cut_spans(passage: Passage) -> list[Span]:
    """The spans of a passage's units, without emoji at their ends and with something to translate in each.

    Where protection is automatic, they are without what frames them, too.
    """
    source, options = passage.languages[0], passage.options
    spans = segment(passage.shielded, language=source, mode=options.segmentation)
    is_framed = options.protection.is_automatic
    if not (passage.marks or is_framed):
        return spans
    text = passage.source.text
    found = []
    for span in passage.wanted.each(spans):
        marks = within(passage.marks, span)
        inner = unframed(text, span, marks, source) if is_framed else trimmed(text, span, marks)
        parts = [inner]
        if inner is not None and marks and is_framed:
            parts = [unframed(text, part, marks, source) for part in _speech(text, inner, marks)]
        found += [part for part in parts if part and is_text(text, part, marks)]
    return found


def _speech(text: str, span: Span, marks: Sequence[Mark]) -> Iterator[Span]:
    """A unit in two where a colon and all that somebody says end it: each is a sentence."""
    for opening, closing in matched(within(marks, span)):
        if (
            opening
            and text[max(span[0], opening.span[0] - 3) : opening.span[0]].rstrip()[-1:] in (":", "：")
            and (closing is None or _ONLY_SIGNS.fullmatch(text, closing.span[1], span[1]))
        ):
            yield span[0], opening.span[0]
            span = opening.span[0], span[1]
            break
    yield span


def unframed(text: str, span: Span, marks: Sequence[Mark], language: str) -> Span | None:
    """A unit without what stands around it and is none of its words, which comes out as it was.

    That is who speaks, a dash before speech, brackets and quotation marks around all of it, and all signs at
    its end but the first mark of a sentence's end. None where nothing else is in it.
    """
    marks = within(marks, span)
    pairs = matched(marks)
    opening = {pair[0].span[0]: pair for pair in pairs if pair[0]}
    closing = {pair[1].span[1]: pair for pair in pairs if pair[1]}
    found = trimmed(text, span, marks)
    for _ in range(_MAX_LAYERS):
        if found is None:
            break
        start, end = found
        first, last = opening.get(start, (None, None))
        if first and (last is None or _ONLY_SIGNS.fullmatch(text, last.span[1], end)):
            start, end = first.span[1], last.span[0] if last else end
        first, last = closing.get(end, (None, None))
        if last and (first is None or first.span[1] <= start):
            end = last.span[0]
        if before := _FRAME_BEFORE.match(text, start, end):
            speaker = before["speaker"]
            if not speaker or _speaks(speaker, text[before.end() : end], language):
                start = before.end()
        if behind := _FRAME_BEHIND.search(text, max(start, end - _MAX_SIGNS), end):
            end = behind.start()
        if (start, end) == found:
            break
        found = trimmed(text, (start, end), marks)
    return found


def _speaks(speaker: str, words: str, language: str) -> bool:
    """Whether a line's beginning in capitals is the name of who says the rest, and no heading."""
    is_label = speaker.lower() in rules_for(primary_language(language)).labels
    return speaker.isupper() and not (is_label or words.isupper())


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
        inner = (trimmed(text, sentence) for sentence in sentences)
        spans += [span for span in inner if span and holds_letter(text[slice(*span)])]
    return spans


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
    while heard := _HEARD.match(text, start, end):
        behind = heard.start("next") if heard["next"] else heard.start("speaker")
        if (heard["next"] or heard["speaker"])[:1].islower():
            break
        yield start, behind
        start = behind
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

"""Resources of applications: .NET's (.resx, .resw), Android's and Fluent's (.ftl); and accelerators in menus.

An accelerator is the letter of a menu's entry that a key chooses, as "&File" and "_File" mark it. A text is
translated without its mark. The translation has it before the same letter where it has one, else before its
first.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dragoman_files.document import Segment
from dragoman_files.format import FileError, Reading, UnitError
from dragoman_files.strings import unescaped
from dragoman_files.tags import Piece
from dragoman_files.texts import ELEMENTS, has_letters
from dragoman_files.xml_texts import Event, Grammar, Paragraph, tag_pieces

if TYPE_CHECKING:
    from fluent.syntax.ast import Message

_MAX_WORDS = 6
_MAX_CHARACTERS = 400
"""A text of more words, or of more characters with its tags, is no entry of a menu."""
_ADDRESS = re.compile(r"\S*[/=?@]\S*")
"""Its signs are its own."""
_MARK = re.compile(r"(?:&amp;|&#38;|&)(?=[^\W_])(?!\w+;)|(?<!\w)_(?=[^\W_])(?!\w*_)")
_ABBREVIATION = re.compile(r"(?<=[A-Z])(?:&amp;|&#38;|&)(?=[A-Z](?![a-z]))")
"""The ampersand of an abbreviation: "AT&T" and "Q&A"."""
_FIXED = re.compile(r"<[^<>]*>|&#?\w+;|[%$]\S+|\{[^{}]*\}|`[^`]*`")
"""Parts of a translation that are no words: tags, references, placeholders, code."""
_NAMED = re.compile(r"\{[^{}]*\}|%\([^()]*\)|[$:]\w+|`[^`]*`")
"""Placeholders and code, whose signs are a part of their names."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts whose letters are on no key: the source's stands in brackets behind."""


def without_accelerators(segments: Iterable[Segment], *, is_html: bool) -> Iterator[Segment]:
    """The segments, whose texts have no accelerator, and whose translations have it again."""
    for segment in segments:
        found = _accelerator(segment.text, is_html=is_html)
        if found is None:
            yield segment
            continue
        start, end = found.span()
        yield replace(
            segment,
            text=segment.text[:start] + segment.text[end:],
            write=_with_accelerator(segment.write, found[0], segment.text[end]),
        )


def _accelerator(text: str, *, is_html: bool) -> re.Match[str] | None:
    """The only mark of a text that may have one."""
    if len(text) > _MAX_CHARACTERS or ("&" not in text and "_" not in text) or len(text.split()) > _MAX_WORDS:
        return None
    if any("&" in found[0] or "_" in found[0] for found in _ADDRESS.finditer(re.sub("<[^<>]*>", "", text))):
        return None
    without_names = _NAMED.sub(lambda part: "\0" * len(part[0]), text)
    marks = [mark for mark in _MARK.finditer(without_names) if not is_html or mark[0] != "&"]
    if len(marks) != 1 or _ABBREVIATION.match(text, marks[0].start()):
        return None
    return marks[0] if is_html or len(marks[0][0]) == 1 else None


def _with_accelerator(write: Callable[[str], str], mark: str, letter: str) -> Callable[[str], str]:
    def written(translation: str) -> str:
        shown = _FIXED.sub(lambda part: "\0" * len(part[0]), translation)
        if _UNSPACED.search(shown):
            return write(f"{translation}({mark}{letter.upper()})")
        for pattern in (rf"\b{re.escape(letter)}", re.escape(letter), r"[^\W\d_]"):
            if found := re.search(pattern, shown, re.IGNORECASE):
                return write(translation[: found.start()] + mark + translation[found.start() :])
        return write(translation)

    return written


def _is_no_text(tag: Event) -> bool:
    """Whether it is an object, what a designer notes of one, or about the file."""
    is_data = tag.name == "data"
    is_noted = (tag.attribute("name") or "").startswith(">>")
    is_object = tag.attribute("type") is not None or tag.attribute("mimetype") is not None
    return (is_data and (is_noted or is_object)) or tag.name in ("resheader", "metadata", "assembly")


RESX = Grammar(paragraphs=frozenset(("value",)), is_left_out=_is_no_text, joins=False, root="root")
"""The values of what is a string."""


# developer.android.com/guide/topics/resources/string-resource: a quote keeps the white space around it.
_OF_ANDROID = re.compile(r'(?P<text>(?:[^"\\]|\\(?!n|u0020).?)+)|(?P<line>\\n)|"|\\u0020', re.DOTALL)
_REFERENCE = re.compile(r"[@?][\w.:/+*-]+")


def _android_pieces(source: str, paragraph: Paragraph, grammar: Grammar, reading: Reading) -> Iterator[Piece]:
    """The pieces of a string, in which escapes of white space are pieces of their own."""
    for piece in tag_pieces(source, paragraph, grammar, reading):
        if piece.kind != "text":
            yield piece
            continue
        for found in _OF_ANDROID.finditer(source, piece.start, piece.end):
            part = replace(piece, start=found.start(), end=found.end())
            if found["text"]:
                yield replace(part, decode=lambda raw, decode=piece.decode: unescaped(decode(raw)))  # type: ignore[misc]
            else:
                yield replace(part, kind="break" if found["line"] else "empty", decode=lambda raw: "\n")


_ANDROID = Grammar(
    paragraphs=ELEMENTS["android"]["paragraphs"],
    around=ELEMENTS["android"]["around"],
    is_left_out=lambda tag: tag.attribute("translatable") == "false",
    root="resources",
    pieces=_android_pieces,
    escape=lambda text: re.sub(r"^[@?]|[\\'\"]", r"\\\g<0>", text),
)


def android_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The strings, those of arrays and plurals too, but for references to others. Raises FileError."""
    for segment in _ANDROID.segments(source, reading):
        if not _REFERENCE.fullmatch(source[segment.start : segment.end]):
            yield segment


_ENTRY = re.compile(r"^(?=[A-Za-z])", re.MULTILINE)
"""Where a message begins: all other lines that are not comments or terms begin with white space or "}"."""
_INDENT = re.compile(r"\n([ \t]*)(?=[^ \t\r\n])")
_NO_TEXT = re.compile(r"(?:.*key|keycode|style)", re.IGNORECASE)
"""The names of attributes that are no text."""
_PLACEABLE = re.compile(r"\{[^{}]*\}")
_NODE_BYTES = 2000
"""The maximum that the parser takes for a brace or a line."""


def fluent_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The values of messages and attributes, as texts without their indentation. Terms stay: they are names.

    Mozilla's own parser says where each begins and ends. Raises FileError for what is no Fluent.
    """
    from fluent.syntax import FluentParser, ast

    starts = [0, *(found.start() for found in _ENTRY.finditer(source) if found.start())]
    junk: int | None = None
    has_messages = False
    for start, end in zip(starts, [*starts[1:], len(source)], strict=True):
        entry = source[start:end]
        num_bytes = _NODE_BYTES * (1 + entry.count("{") + entry.count("\n"))
        reading.take(num_bytes)
        try:
            parsed = FluentParser().parse(entry).body
        except RecursionError:
            raise FileError("Fluent that is nested too deep to be read") from None
        for message in parsed:
            if isinstance(message, ast.Message):
                has_messages = True
                yield from _of_message(source, start, message)
            elif isinstance(message, ast.Junk) and junk is None:
                junk = start
        reading.give_back(num_bytes)
    if junk is not None and not has_messages:
        line = source.count("\n", 0, junk) + 1
        raise FileError(f"no Fluent: what begins at line {line} is no message, `name = text`")


def _of_message(source: str, offset: int, message: "Message") -> Iterator[Segment]:
    named = [attribute for attribute in message.attributes if not _NO_TEXT.fullmatch(attribute.id.name)]
    for pattern in filter(None, (message.value, *(attribute.value for attribute in named))):
        first, last = (element.span for element in (pattern.elements[0], pattern.elements[-1]))
        assert first is not None, "the parser notes where each node is"
        assert last is not None
        end = offset + last.end
        raw = source[offset + first.start : end].lstrip()
        if not has_letters(_PLACEABLE.sub("", raw)):
            continue
        start = end - len(raw)
        line_end = "\r\n" if "\r\n" in raw else "\n"
        text = raw.replace("\r\n", "\n")
        indent = min((found[1] for found in _INDENT.finditer(text)), key=len, default="")
        is_block = not source[source.rfind("\n", 0, start) + 1 : start].strip()
        yield Segment(
            start=start,
            end=end,
            text=text.replace(f"\n{indent}", "\n"),
            write=partial(_in_fluent, line_end=line_end, indent=indent, is_block=is_block),
        )


def _in_fluent(translation: str, *, line_end: str, indent: str, is_block: bool) -> str:
    """Raises UnitError for a translation that would be read as something else."""
    from fluent.syntax import FluentParser, ast

    text = re.sub(r"\n(?=.)", lambda found: f"\n{indent}", translation)
    if is_block and text[:1] in ("[", "*", "."):
        text = f'{{"{text[0]}"}}{text[1:]}'
    before = "\n " if is_block else " "
    [entry, *others] = FluentParser().parse(f"name ={before}{text}\n").body
    if others or not isinstance(entry, ast.Message) or entry.attributes:
        raise UnitError("the translation would be read as another message")
    return text.replace("\n", line_end)

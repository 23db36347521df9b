"""Markdown: the texts of paragraphs, headings, items and cells. Code, links' targets and HTML's tags stay."""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dragoman_files import hypertext
from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, Reading, UnitError
from dragoman_files.tags import Kind, Notations, Piece, Run, Value, block_segments, encode_with
from dragoman_files.texts import ELEMENTS, collapse, unescape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(
    r"\A(?:---|\+\+\+)[ \t]*\r?\n.*?^(?:---|\+\+\+|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE
)
_UNSPOKEN = re.compile(r"^\^\S+$|\[\^[^\]\s]+\]:?|\{[/#.][^{}\n]*\}|^\[[ xX]\](?= )")
"""Parts of a text that nobody reads aloud: footnotes' names, anchors and comments in braces, boxes to
tick."""
_BOX = re.compile(
    r"(\[!\w+\][-+]?|:{3,}[ \t]*[\w-]*[ \t]*\[?|(?:!!!|\?\?\?\+?)[ \t]+[a-z][a-z -]*(?:\"|\Z))"
    r"(.*?)([\]\"]?)\Z"
)
"""The line that a box of GitHub, Docusaurus or MkDocs begins or ends with, and the title in it."""
_TITLE = re.compile(r"""\s(["'])((?:\\.|(?!\1)[^\\])*+)\1\s*+\)\Z""", re.DOTALL)
"""The title of a link, behind where it goes."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_TAG = re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z][\w-]*)")
_TEXTS = ("text", "text_special")
_PUNCTUATION = re.compile(r"([\\`*_\[\]#+\-.<>|~&=!:])")
"""The characters that may mean something in Markdown."""
_LINE_BYTES = 250
"""The memory of a line, here and in the parser."""
Decode = Callable[[str], str]


def segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of a document. One that can't be found where its line says stays as it is."""
    return _Markdown().segments(source, reading)


class _Markdown:
    """CommonMark with tables and strikethrough, and a front matter that stays."""

    def __init__(self) -> None:
        from markdown_it import MarkdownIt
        from markdown_it.rules_block import reference
        from markdown_it.rules_inline import image, link

        self._markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        # Escapes and references stay apart, as the source has them.
        self._markdown.disable("text_join")
        # The targets that the document names.
        self._env: dict[str, Any] = {}
        # What the document is read by, while it is.
        self._reading: Reading | None = None
        for rule in ("block", "inline"):
            self._markdown.core.ruler.before(rule, f"count_{rule}", self._count)
        self._markdown.block.ruler.at(
            "reference",
            # A footnote is none, though its text may be a single word.
            lambda state, *others: (
                not state.src.startswith("[^", state.bMarks[others[0]] + state.tShift[others[0]])
                and reference(state, *others)
            ),
        )
        _note_end(self._markdown, "link", link)
        _note_end(self._markdown, "image", image)

    def segments(self, source: str, reading: Reading) -> Iterator[Segment]:
        lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", source)
        starts = list(accumulate(map(len, lines), initial=0))
        front = _FRONT_MATTER.match(source)
        # Blank lines in its place, so that the lines after it keep their numbers.
        body = source if front is None else re.sub(r"[^\r\n]", "", front[0]) + source[front.end() :]
        reading.take(_LINE_BYTES * len(lines))
        row, cursor = -1, 0
        is_cell = False
        # Tokens are counted as they are made.
        self._reading = reading
        tokens = deque(self._markdown.parse(body, self._env))
        self._reading = None
        while tokens:
            token = tokens.popleft()
            if token.type == "html_block" and token.map is not None and token.level == 0:
                start, end = (starts[number] for number in token.map)
                found = hypertext.segments(source[start:end], reading)
                yield from (segment.moved(start) for segment in found)
            elif token.type == "inline" and token.map is not None and token.children:
                first = token.map[0]
                cursor = cursor if is_cell and first == row else 0
                row = first
                if is_cell:
                    token.content = token.content.replace("|", r"\|")
                columns = _columns(token.content, lines, first, cursor if is_cell else None)
                cursor = len(lines[first]) if columns is None else columns[0] + len(token.content)
                if columns is not None:
                    begins = [starts[number] + column for number, column in enumerate(columns, start=first)]
                    yield from self._texts(reading, token, begins, is_cell=is_cell)
            is_cell = token.type in ("td_open", "th_open")

    def _count(self, state: "StateCore") -> None:
        """Counts the tokens of a document: first its blocks, then what they hold."""
        if self._reading is None:
            return
        if not state.tokens:
            state.tokens = _Counted(self._reading)
        for token in state.tokens:
            if token.type == "inline":
                token.children = _Counted(self._reading)

    def _texts(
        self, reading: Reading, token: "Token", line_starts: list[int], *, is_cell: bool
    ) -> Iterator[Segment]:
        """`line_starts` is where in the source each line of the token's content begins."""
        content = token.content
        pieces = _Pieces(content, is_cell=is_cell)
        if not pieces.read(token.children or []) or content[pieces.position :].strip():
            return

        begins = [0, *(match.end() for match in re.finditer("\n", content))]

        def in_source(position: int) -> int:
            number = bisect_right(begins, position) - 1
            return line_starts[number] + position - begins[number]

        encode = partial(self._encode, is_cell=is_cell)
        for segment in block_segments(content, pieces.pieces, reading, encode, self._written):
            start, end, readable = in_source(segment.start), in_source(segment.end), segment.readable
            yield replace(segment, start=start, end=end, readable=collapse(readable or ""))

    def _written(self, run: Run, translation: str) -> str:
        """Raises UnitError for a translation that would be read as other markup than its text is."""
        written = run.write(translation).replace("\n", " ")
        if self._markup(written) != self._markup(run.raw(run)):
            raise UnitError("its markup would be read as another where the translation has it")
        return written

    def _markup(self, content: str) -> Counter[tuple[str, str, str]]:
        """The inline markup of a text: what it is, and where links go or what code says."""
        [inline] = self._markdown.parseInline(content, self._env)
        return Counter(
            (
                child.type,
                str(child.attrs.get("href", "")),
                child.content if child.type in ("code_inline", "html_inline") else "",
            )
            for child in inline.children or []
            if child.type not in ("text", "text_special", "softbreak", "image")
        )

    def _encode(self, run: Run, text: str, notations: Notations, *, is_cell: bool) -> str:
        """A text that means nothing but itself: where it would, its punctuation is escaped."""
        text = text.replace("\n", " ")

        def written(escape: Callable[[str], str]) -> str:
            return encode_with(escape)(run, text, notations)

        plain = written(str)
        # What begins with a space stands behind something.
        before = "x" if text.startswith(" ") else ""
        tokens = self._markdown.parse(before + plain)
        children = tokens[1].children if len(tokens) == 3 and tokens[0].type == "paragraph_open" else None
        is_plain = children is not None and all(child.type in _TEXTS for child in children)
        if not is_plain or "".join(child.content for child in children or []) != (before + text).strip(" "):
            return written(partial(_PUNCTUATION.sub, r"\\\1"))
        return written(lambda character: character.replace("|", r"\|")) if is_cell else plain


class _Counted(list["Token"]):
    """Tokens, each of which takes some of what a reading has."""

    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self._reading = reading

    def append(self, token: "Token") -> None:
        """Raises FileError for more than the document may have."""
        self._reading.take(3 * ITEM_BYTES)
        super().append(token)


class _Pieces:
    """The pieces of a paragraph's content, found by following its tokens."""

    def __init__(self, content: str, *, is_cell: bool) -> None:
        self._content = content
        self._is_cell = is_cell
        self._begins_line = True
        # Whether the line is that of a box.
        self._is_box = False
        self.position = 0
        self.pieces: list[Piece] = []
        self._opened: list[tuple[int, int]] = []

    def read(self, tokens: list["Token"]) -> bool:
        """Whether the content is what the tokens say, as far as they go."""
        rest = iter(tokens)
        return all(self._read(token, rest) for token in rest)

    def _read(self, token: "Token", rest: Iterator["Token"]) -> bool:
        match token.type:
            case "text":
                return self._text(token.content)
            case "text_special":
                return self._literal(token.markup, "text", decode=lambda raw, text=token.content: text)  # type: ignore[misc]
            case "softbreak" if self._is_box or self._content.startswith(":::", self.position + 1):
                return self._take(r"[ \t]*\n[ \t]*")
            case "softbreak":
                return self._take(r"[ \t]*\n[ \t]*", decode=str)
            case "hardbreak":
                return self._take(r"(?: {2,}|\\)\n[ \t]*")
            case "code_inline":
                return self._take(rf"{token.markup}(?!`).*?(?<!`){token.markup}(?!`)", "word")
            case "html_inline":
                return self._literal(token.content, *_tag_kind(token.content))
            case "link_open" if token.markup == "autolink":
                for following in rest:
                    if following.type == "link_close":
                        break
                return self._take("<[^<>]*>", "word")
            case "link_open":
                return self._open(r"\[", "link")
            case "link_close":
                return self._close(token.meta["end"], "link")
            case "image":
                # Its text is no part of the sentence that it stands in.
                self._add(self.position, "markup")
                is_read = self._open(r"!\[", "image") and self.read(token.children or [])
                is_read = is_read and self._close(token.meta["end"], "image")
                self._add(self.position, "markup")
                return is_read
            case _:
                name, _, kind = token.type.rpartition("_")
                if kind not in ("open", "close"):
                    return bool(token.markup) and self._literal(token.markup)
                return bool(token.markup) and self._literal(token.markup, kind, name)  # type: ignore[arg-type]

    def _text(self, text: str) -> bool:
        if self._is_cell:
            text = text.replace("|", r"\|")
        if not self._content.startswith(text, self.position):
            return False
        end = self.position + len(text)
        box = _BOX.match(text) if self._begins_line else None
        self._is_box = box is not None or (self._is_box and not self._begins_line)
        if box is not None:
            for rank in (1, 2, 3):
                self._add(end - len(text) + box.end(rank), "text" if rank == 2 else "markup")
            return True
        for mark in _UNSPOKEN.finditer(text):
            start = end - len(text) + mark.start()
            self._add(start, "text", decode=_unpiped)
            is_empty = mark[0].startswith("[^") and not mark[0].endswith(":")
            self._add(start + len(mark[0]), "empty" if is_empty else "markup")
        self._add(end, "text", decode=_unpiped)
        return True

    def _literal(self, literal: str, kind: Kind = "markup", name: str = "", *, decode: Decode = str) -> bool:
        """Whether this stands here; if so adds its piece."""
        if not self._content.startswith(literal, self.position):
            return False
        self._add(self.position + len(literal), kind, name=name, decode=decode)
        return True

    def _take(
        self, pattern: str, kind: Kind = "markup", name: str = "", *, decode: Decode | None = None
    ) -> bool:
        """Whether the pattern matches here; if so adds its piece, a text where it is decoded."""
        match = re.compile(pattern, re.DOTALL).match(self._content, self.position)
        if match is None:
            return False
        self._add(match.end(), kind if decode is None else "text", name=name, decode=decode or str)
        return True

    def _open(self, pattern: str, name: str) -> bool:
        is_there = self._take(pattern, "open", name)
        self._opened.append((len(self.pieces), self.position))
        return is_there

    def _close(self, end: int, name: str) -> bool:
        first, start = self._opened.pop()
        brackets = self._content[self.position : end]
        output = None
        if brackets in ("]", "][]"):
            # The text is the name of the target, too, which is said behind it: it will be another.
            output = f"][{' '.join(self._content[start : self.position].split())}]"
            if any(piece.kind == "markup" for piece in self.pieces[first:]):
                self.pieces[first:] = [replace(piece, kind="markup") for piece in self.pieces[first:]]
        self._add(end, "close", name=name, output=output)
        if title := _TITLE.search(self._content, end - len(brackets), end):
            start, stop = title.span(2)
            value = Value(start=start, end=stop, decode=_unescaped, encode=partial(_quoted, title[1]))
            self.pieces[-1] = replace(self.pieces[-1], values=(value,))
        return True

    def _add(
        self, end: int, kind: Kind, *, name: str = "", decode: Decode = str, output: str | None = None
    ) -> None:
        piece = Piece(start=self.position, end=end, kind=kind, name=name, decode=decode, output=output)
        self.pieces.append(piece)
        self.position = end
        line = self._content[piece.start : end].rpartition("\n")
        self._begins_line = (self._begins_line or line[1] != "") and not line[2].strip()


def _unpiped(raw: str) -> str:
    """A text as a cell has it, where a bar must be escaped whatever it stands in."""
    return raw.replace(r"\|", "|")


def _unescaped(raw: str) -> str:
    return unescape(_ESCAPED.sub(r"\1", raw))


def _quoted(quote: str, text: str) -> str:
    """A text as a link's title has it between its quotes."""
    return re.sub(rf"([\\&{quote}])", r"\\\1", " ".join(text.split()))


def _tag_kind(tag: str) -> tuple[Kind, str]:
    """The role of an HTML tag within a text, and its name."""
    match = _TAG.match(tag)
    if match is None:
        return "empty", ""
    name = match["name"].lower()
    if name == "br":
        return "markup", ""
    if match["slash"]:
        return "close", f"<{name}"
    return ("empty", "") if name in ELEMENTS["html"]["void"] or tag.endswith("/>") else ("open", f"<{name}")


def _columns(content: str, lines: list[str], first: int, cursor: int | None) -> list[int] | None:
    """Where in its line of the source, from the first one, each line of a content begins; None where one is
    not there.

    The content of a cell is sought from `cursor`; all other ends where its line ends, but for a heading that
    is closed by hashes.
    """
    columns = []
    for number, part in enumerate(content.split("\n"), start=first):
        line, sought = lines[number].rstrip(), part.rstrip()
        if cursor is None and line.endswith(sought):
            columns.append(len(line) - len(sought))
        elif (column := line.find(sought, cursor or 0)) >= 0:
            columns.append(column)
        else:
            return None
    return columns


def _note_end(markdown: "MarkdownIt", name: str, rule: Callable[["StateInline", bool], bool]) -> None:
    """Lets the last token of a link or an image say where in the content it ends."""

    def noted(state: "StateInline", silent: bool) -> bool:
        is_one = rule(state, silent)
        if is_one and not silent:
            state.tokens[-1].meta["end"] = state.pos
        return is_one

    markdown.inline.ruler.at(name, noted)

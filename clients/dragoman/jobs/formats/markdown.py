"""Markdown: the texts of paragraphs, headings, items and cells. Code, links' targets and HTML's tags stay."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

from dragoman.jobs.errors import MissingLibraryError
from dragoman.jobs.formats import hypertext
from dragoman.jobs.formats.document import Place
from dragoman.jobs.formats.markup import Kind, Piece, runs
from dragoman.jobs.formats.spacing import collapse

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(
    r"\A(?:---|\+\+\+)[ \t]*\r?\n.*?^(?:---|\+\+\+|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE
)
_UNSPOKEN = re.compile(r"^\^\S+$|\[\^[^\]\s]+\]:?|\{[/#.][^{}\n]*\}|^\[[ xX]\](?= )")
"""Within a text: footnotes' names, anchors and comments in braces, boxes to tick."""
_PUNCTUATION = re.compile(r"([\\`*_\[\]#+\-.<>|~&=!:])")
"""What may mean something in Markdown."""


class MarkdownFormat:
    """CommonMark with tables and strikethrough, and a front matter that stays."""

    def __init__(self) -> None:
        """Raises MissingLibraryError."""
        try:
            from markdown_it import MarkdownIt
            from markdown_it.rules_inline import image, link
        except ModuleNotFoundError:
            raise MissingLibraryError("Markdown", "markdown-it-py") from None
        self._markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        # Escapes and references stay apart, as the source has them.
        self._markdown.disable("text_join")
        _note_end(self._markdown, "link", link)
        _note_end(self._markdown, "image", image)

    def places(self, source: str) -> Iterator[Place]:
        """The texts of a document. One that can't be found where its line says stays as it is."""
        lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", source)
        starts = list(accumulate(map(len, lines), initial=0))
        front = _FRONT_MATTER.match(source)
        # Blank lines in its place, so that the lines after it keep their numbers.
        body = source if front is None else re.sub(r"[^\r\n]", "", front[0]) + source[front.end() :]
        row, cursor = -1, 0
        is_cell = False
        for token in self._markdown.parse(body):
            if token.type == "html_block" and token.map is not None and token.level == 0:
                start, end = (starts[number] for number in token.map)
                yield from _shifted(hypertext.places(source[start:end]), start)
            elif token.type == "inline" and token.map is not None and token.children:
                first = token.map[0]
                cursor = cursor if is_cell and first == row else 0
                row = first
                columns = _columns(token.content, lines[first:], cursor if is_cell else None)
                cursor = len(lines[first]) if columns is None else columns[0] + len(token.content)
                if columns is not None:
                    content_starts = [
                        start + column for start, column in zip(starts[first:], columns, strict=False)
                    ]
                    yield from self._texts(source, token, content_starts, is_cell=is_cell)
            is_cell = token.type in ("td_open", "th_open")

    def _texts(
        self, source: str, token: "Token", line_starts: list[int], *, is_cell: bool
    ) -> Iterator[Place]:
        """`line_starts` is where in the source each line of the token's content begins."""
        content = token.content
        pieces = _Pieces(content)
        if not pieces.read(token.children or []) or content[pieces.position :].strip():
            return

        def in_source(position: int) -> int:
            begin = content.rfind("\n", 0, position) + 1
            return line_starts[content.count("\n", 0, begin)] + position - begin

        found = list(runs(content, pieces.pieces))
        for run, following in zip_longest(found, found[1:]):
            place = Place(
                start=in_source(run.start),
                end=in_source(run.end),
                text=collapse(run.text),
                write=partial(self._written, is_cell=is_cell),
            )
            for label in pieces.labels:
                is_within = label.start <= run.start and run.end <= label.end
                if is_within and (following is None or following.start >= label.end):
                    end = in_source(label.end + len(label.brackets))
                    place = _named(
                        place, content[run.end : label.end], label, source[place.start : place.end], end
                    )
            yield place

    def _written(self, translation: str, *, is_cell: bool) -> str:
        """A text that means nothing but itself: where it would, its punctuation is escaped."""
        text = " ".join(translation.split("\n")).strip(" ")
        tokens = self._markdown.parse(text)
        children = tokens[1].children if len(tokens) == 3 and tokens[0].type == "paragraph_open" else None
        if children is None or [child.content for child in children if child.type == "text"] != [text]:
            text = _PUNCTUATION.sub(r"\\\1", text)
        elif is_cell:
            text = text.replace("|", r"\|")
        return text


@dataclass(frozen=True, kw_only=True)
class _Label:
    """The text of a link that is the name of its target, too: `[text]`, `[text][]`."""

    start: int
    end: int
    name: str
    brackets: str
    """What is behind the text, without the last bracket."""


def _named(place: Place, rest: str, label: _Label, original: str, end: int) -> Place:
    """The place of a label's last text, which says the target's name behind it: the text will be another."""
    name = f"{rest}][{label.name}"
    return replace(
        place,
        end=end,
        write=lambda translation: place.write(translation) + name,
        original=original + name,
    )


class _Pieces:
    """The pieces of a paragraph's content, found by following its tokens."""

    def __init__(self, content: str) -> None:
        self._content = content
        self.position = 0
        self.pieces: list[Piece] = []
        self.labels: list[_Label] = []
        self._starts: list[int] = []

    def read(self, tokens: list["Token"]) -> bool:
        """Whether the content is what the tokens say, as far as they go."""
        rest = iter(tokens)
        return all(self._read(token, rest) for token in rest)

    def _read(self, token: "Token", rest: Iterator["Token"]) -> bool:
        match token.type:
            case "text":
                return self._text(token.content)
            case "text_special":
                return self._take(re.escape(token.markup), decode=lambda raw, text=token.content: text)  # type: ignore[misc]
            case "softbreak":
                return self._take(r"[ \t]*\n[ \t]*", decode=str)
            case "hardbreak":
                return self._take(r"(?: {2,}|\\)\n[ \t]*")
            case "code_inline":
                return self._take(rf"{token.markup}(?!`).*?(?<!`){token.markup}(?!`)")
            case "html_inline":
                return self._take(re.escape(token.content))
            case "link_open" if token.markup == "autolink":
                for following in rest:
                    if following.type == "link_close":
                        break
                return self._take("<[^<>]*>")
            case "link_open":
                return self._open(r"\[")
            case "link_close":
                return self._close(token.meta["end"])
            case "image":
                is_read = self._open(r"!\[") and self.read(token.children or [])
                return is_read and self._close(token.meta["end"])
            case _:
                return bool(token.markup) and self._take(re.escape(token.markup))

    def _text(self, text: str) -> bool:
        if not self._content.startswith(text, self.position):
            return False
        end = self.position + len(text)
        for mark in _UNSPOKEN.finditer(text):
            start = end - len(text) + mark.start()
            self._add(start, str)
            self._add(start + len(mark[0]), None)
        self._add(end, str)
        return True

    def _take(self, pattern: str, decode: Callable[[str], str] | None = None) -> bool:
        """What matches here; markup, unless it has a text."""
        match = re.compile(pattern, re.DOTALL).match(self._content, self.position)
        if match is None:
            return False
        self._add(match.end(), decode)
        return True

    def _open(self, pattern: str) -> bool:
        is_there = self._take(pattern)
        self._starts.append(self.position)
        return is_there

    def _close(self, end: int) -> bool:
        start = self._starts.pop()
        brackets = self._content[self.position : end]
        if brackets in ("]", "][]"):
            name = " ".join(self._content[start : self.position].split())
            self.labels.append(_Label(start=start, end=self.position, name=name, brackets=brackets[:-1]))
        self._add(end, None)
        return True

    def _add(self, end: int, decode: Callable[[str], str] | None) -> None:
        kind: Kind = "markup" if decode is None else "text"
        self.pieces.append(Piece(start=self.position, end=end, kind=kind, decode=decode or str))
        self.position = end


def _columns(content: str, lines: list[str], cursor: int | None) -> list[int] | None:
    """Where in its line of the source each line of a content begins; None where one is not there.

    The content of a cell is sought from `cursor`; all other ends where its line ends, but for a heading that
    is closed by hashes.
    """
    columns = []
    for part, raw in zip(content.split("\n"), lines, strict=False):
        line, sought = raw.rstrip(), part.rstrip()
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


def _shifted(places: Iterator[Place], start: int) -> Iterator[Place]:
    for place in places:
        yield replace(place, start=place.start + start, end=place.end + start)

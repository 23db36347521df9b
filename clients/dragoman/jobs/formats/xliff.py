"""XLIFF 1.x and 2.x: units without a target get one, which has all markup that their source has.

The names are those of the standards: docs.oasis-open.org/xliff/v1.2 and xliff-core/v2.1.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.jobs.errors import JobError
from dragoman.jobs.formats.document import Segment
from dragoman.jobs.formats.tags.markup import Kind, Piece, Run, runs
from dragoman.jobs.formats.tags.tagged import Notations, Tagged, encode_with
from dragoman.jobs.formats.tags.xml_events import Event, escape, events

_UNITS = ("trans-unit", "segment")
_NATIVE = ("bpt", "ept", "ph", "it")
"""Elements of XLIFF 1.x within a text whose content is code."""
_OPENING = ("bpt", "bx", "sc")
_CLOSING = ("ept", "ex", "ec")
"""Elements that stand for the tags of an element, one for each."""
_NEWLINE = re.compile(r"(\r?\n)")
_WORDS = ("ph", "x")
"""Elements that stand for something in a sentence, a placeholder or a picture."""
_UNTRANSLATED_STATES = ("new", "needs-translation")


@dataclass(kw_only=True)
class _Element:
    """An element within a unit: its tags and what is between them."""

    start: Event
    inner: list[Event] = field(default_factory=list)
    end: Event | None = None


@dataclass(kw_only=True)
class _Unit:
    """A `trans-unit` or a `segment`."""

    depth: int
    """Of its children."""
    children: dict[str, _Element] = field(default_factory=dict)


def segments(source: str, *, join: bool = False) -> Iterator[Segment]:
    """The texts of units that have no translation. Their line breaks are spaces where they are to be joined.

    Raises JobError for what is no XLIFF.
    """
    found = events(source)
    root = next(event for event in found if event.kind == "start")
    version = root.attribute("version") or ""
    if root.name != "xliff" or not version.startswith(("1.", "2.")):
        raise JobError(f"no XLIFF 1 or 2 but <{root.name}>, version {version or 'unknown'}")
    # Whether the texts of each element that is open are for translation.
    wishes = [True]
    unit: _Unit | None = None
    child: _Element | None = None
    for event in found:
        if event.kind == "start":
            wish = event.attribute("translate")
            wishes.append(wishes[-1] if wish is None else wish == "yes")
            if event.name in _UNITS:
                unit = _Unit(depth=len(wishes))
            elif unit is not None and len(wishes) == unit.depth + 1 and event.name not in unit.children:
                child = unit.children[event.name] = _Element(start=event)
                continue
        elif event.kind == "end":
            is_translated = wishes.pop()
            if child is not None and unit is not None and len(wishes) == unit.depth:
                child.end = event
                child = None
            elif unit is not None and len(wishes) == unit.depth - 1:
                if is_translated:
                    yield from _segments(source, unit, join)
                unit = None
        if child is not None:
            child.inner.append(event)


def _segments(source: str, unit: _Unit, join: bool) -> Iterator[Segment]:
    original, target = unit.children.get("source"), unit.children.get("target")
    if original is None or original.end is None or (target is not None and not _is_open(source, target)):
        return
    found = list(runs(source, _pieces(source, original.inner, join)))
    position = original.inner[0].start if original.inner else 0
    start, end, before, after = _target(source, unit, original)
    for number, run in enumerate(found):
        is_last = number == len(found) - 1
        tagged = Tagged(source, run, _in_cdata if _is_cdata(original.inner, run) else encode_with(escape))
        yield Segment(
            start=start if number == 0 else end,
            end=end,
            text=tagged.html,
            shown=run.text,
            write=tagged.write,
            original=source[run.start : run.end],
            before=(before if number == 0 else "") + source[position : run.start],
            after=source[run.end : original.end.start] + after if is_last else "",
        )
        position = run.end


def _is_open(source: str, target: _Element) -> bool:
    """Whether a target waits for its translation."""
    is_empty = (
        not any(event.kind == "start" for event in target.inner)
        and not "".join(
            source[event.start : event.end] for event in target.inner if event.kind in ("text", "cdata")
        ).strip()
    )
    return is_empty or target.start.attribute("state") in _UNTRANSLATED_STATES


def _target(source: str, unit: _Unit, original: _Element) -> tuple[int, int, str, str]:
    """The range that the target's content takes, and what comes before and behind it in any case."""
    tag = source[original.start.start : original.start.end]
    prefix = tag[1 : tag.index("source")]
    target = unit.children.get("target")
    if target is not None and target.end is not None:
        opening = source[target.start.start : target.start.end]
        if opening.endswith("/>"):
            closing = f"</{prefix}target>"
            return target.start.start, target.start.end, opening[:-2].rstrip() + ">", closing
        return target.start.end, target.end.start, "", ""
    last = unit.children.get("seg-source", original).end
    assert last is not None
    indent = source[len(source[: original.start.start].rstrip()) : original.start.start]
    space = ' xml:space="preserve"' if original.start.attribute("xml:space") == "preserve" else ""
    return last.end, last.end, f"{indent}<{prefix}target{space}>", f"</{prefix}target>"


def _pieces(source: str, inner: Sequence[Event], join: bool) -> Iterator[Piece]:
    """The pieces of a source. What is code, or protected, is none of its text, whatever it holds."""
    position = 0
    while position < len(inner):
        event = inner[position]
        last = position
        if event.kind in ("text", "cdata"):
            yield from _text_pieces(source, event, join)
        elif event.kind != "start":
            kind: Kind = "close" if event.kind == "end" else "markup"
            yield Piece(start=event.start, end=event.end, kind=kind, name=event.name)
        elif _is_code(event):
            last = _end(inner, position)
            yield _code(event, inner[last].end)
        else:
            yield Piece(start=event.start, end=event.end, kind="open", name=event.name)
        position = last + 1


def _text_pieces(source: str, event: Event, join: bool) -> Iterator[Piece]:
    decode = html.unescape if event.kind == "text" else str
    start = event.start
    for number, part in enumerate(_NEWLINE.split(source[start : event.end])):
        end = start + len(part)
        if number % 2:
            kind: Kind = "text" if join else "break"
            yield Piece(start=start, end=end, kind=kind, decode=lambda raw: " " if join else "\n")
        elif part:
            yield Piece(start=start, end=end, kind="text", decode=decode)
        start = end


def _is_code(event: Event) -> bool:
    is_protected = event.attribute("mtype") == "protected" or event.attribute("translate") == "no"
    return is_protected or event.name in (*_NATIVE, *_OPENING, *_CLOSING, *_WORDS)


def _code(event: Event, end: int) -> Piece:
    """An element that is not translated, by what it stands for."""
    # Which opening one a closing one is of: of 1.x by number or by itself, of 2.x by name.
    name = next((found for key in ("rid", "startRef", "id") if (found := event.attribute(key))), "")
    kind: Kind = "word"
    if event.name in _OPENING:
        kind = "open"
    elif event.name in _CLOSING:
        kind = "close"
    elif event.name == "it":
        kind = "empty"
    return Piece(start=event.start, end=end, kind=kind, name=f"#{name}")


def _end(inner: Sequence[Event], position: int) -> int:
    """Where the element ends that starts there."""
    depth = 0
    for index in range(position, len(inner)):
        depth += {"start": 1, "end": -1}.get(inner[index].kind, 0)
        if depth == 0:
            return index
    raise AssertionError("an element of a well-formed document ends")


def _in_cdata(translation: str, notations: Notations) -> str:
    return translation.replace("]]>", "]]]]><![CDATA[>")


def _is_cdata(inner: Sequence[Event], run: Run) -> bool:
    return any(event.kind == "cdata" and event.start <= run.start < event.end for event in inner)

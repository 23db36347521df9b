"""XLIFF 1.x and 2.x: units without a target get one, which has all markup that their source has.

The names are those of the standards: docs.oasis-open.org/xliff/v1.2 and xliff-core/v2.1.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.jobs.errors import JobError
from dragoman.jobs.formats.document import Place
from dragoman.jobs.formats.markup import Piece, Run, runs
from dragoman.jobs.formats.xml_events import Event, escape, events

_UNITS = ("trans-unit", "segment")
_NATIVE = ("bpt", "ept", "ph", "it")
"""Of 1.x: elements within a text whose content is code."""
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


def places(source: str) -> Iterator[Place]:
    """The texts of units that have no translation. Raises JobError for what is no XLIFF."""
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
                    yield from _places(source, unit)
                unit = None
        if child is not None:
            child.inner.append(event)


def _places(source: str, unit: _Unit) -> Iterator[Place]:
    original, target = unit.children.get("source"), unit.children.get("target")
    if original is None or original.end is None or (target is not None and not _is_open(source, target)):
        return
    found = list(runs(source, _pieces(original.inner)))
    position = original.inner[0].start if original.inner else 0
    start, end, before, after = _target(source, unit, original)
    for number, run in enumerate(found):
        is_last = number == len(found) - 1
        yield Place(
            start=start if number == 0 else end,
            end=end,
            text=run.text,
            write=_in_cdata if _is_cdata(original.inner, run) else escape,
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


def _pieces(inner: Sequence[Event]) -> Iterator[Piece]:
    """The pieces of a source. What is code, or protected, is markup, its text included."""
    num_protected = 0
    depths: list[bool] = []
    for event in inner:
        if event.kind == "start":
            is_protected = (
                event.name in _NATIVE
                or event.attribute("mtype") == "protected"
                or event.attribute("translate") == "no"
            )
            depths.append(is_protected)
            num_protected += is_protected
        is_text = event.kind in ("text", "cdata") and not num_protected
        yield Piece(
            start=event.start,
            end=event.end,
            kind="text" if is_text else "markup",
            decode=_decode if event.kind == "text" else str,
        )
        if event.kind == "end":
            num_protected -= depths.pop()


def _decode(raw: str) -> str:
    return html.unescape(raw).replace("\r\n", "\n")


def _in_cdata(translation: str) -> str:
    return translation.replace("]]>", "]]]]><![CDATA[>")


def _is_cdata(inner: Sequence[Event], run: Run) -> bool:
    return any(event.kind == "cdata" and event.start <= run.start < event.end for event in inner)

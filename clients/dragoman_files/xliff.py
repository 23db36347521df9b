"""XLIFF 1.x and 2.x, and Qt's .ts, whose messages are such units: those without a target get one, which has
all markup that their source has.

The names are those of the standards: docs.oasis-open.org/xliff/v1.2 and xliff-core/v2.1.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, FileError, Reading
from dragoman_files.tags import Kind, Piece, Run, encode_with, runs
from dragoman_files.texts import primary_language
from dragoman_files.xml_texts import Event, encode_within, escape, events, text_pieces

_UNITS = {"trans-unit": "target", "segment": "target", "message": "translation"}
"""Elements of one text each, and what its translation is called in them."""
_CODES: dict[Kind, tuple[str, ...]] = {
    "open": ("bpt", "bx", "sc"),
    "close": ("ept", "ex", "ec"),
    "word": ("ph", "x"),
    "empty": ("it",),
}
"""Elements within a text that are code, by what they stand for: the tags of an element, something in a
sentence, as a placeholder or a picture, or a tag alone."""
_UNTRANSLATED_STATES = ("new", "needs-translation")


@dataclass(kw_only=True)
class _Element:
    """An element within a unit: its tags and what is between them."""

    start: Event
    inner: list[Event] = field(default_factory=list)
    end: Event | None = None


@dataclass(kw_only=True)
class _Unit:
    """An element of one text."""

    depth: int
    """The depth of its children."""
    target: str
    children: dict[str, _Element] = field(default_factory=dict)


def segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of units that have no translation. Their line breaks are spaces where they are to be joined.

    Raises FileError for what is no XLIFF.
    """
    join = bool(reading.options.join_lines)
    # Whether the texts of each element that is open are for translation.
    wishes = [True]
    unit: _Unit | None = None
    child: _Element | None = None
    for event in _checked(events(source, reading.check)):
        if event.kind == "start":
            wish = event.attribute("translate")
            wishes.append(wishes[-1] if wish is None else wish == "yes")
            if event.name in _UNITS:
                unit = _Unit(depth=len(wishes), target=_UNITS[event.name])
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
                    yield from _segments(source, unit, reading, join)
                unit = None
        if child is not None:
            reading.take(ITEM_BYTES)
            child.inner.append(event)


def _checked(found: Iterator[Event]) -> Iterator[Event]:
    """The events of what is XLIFF; raises FileError for anything else."""
    has_root = False
    for event in found:
        if event.kind == "start" and not has_root:
            has_root = True
            version = event.attribute("version") or ""
            if event.name not in ("xliff", "TS") or not version.startswith(("1.", "2.")):
                found_instead = f"<{event.name}>, version {version or 'unknown'}"
                raise FileError(f"no XLIFF 1 or 2, nor Qt's TS, but {found_instead}")
        yield event


def prepare(source: str, reading: Reading) -> str:
    """The document with its target language. Raises FileError for one in other languages."""
    parts, position = [], 0
    for event in _checked(events(source, reading.check)):
        is_2 = event.name == "xliff" and (event.attribute("version") or "").startswith("2.")
        is_of_qt = event.name == "TS"
        if event.kind != "start" or not (event.name == "file" or is_2 or is_of_qt):
            continue
        names = ("srcLang", "trgLang") if is_2 else ("source-language", "target-language")
        names = ("sourcelanguage", "language") if is_of_qt else names
        for name, wanted in zip(names, (reading.source_language, reading.target_language), strict=True):
            stated = event.attribute(name)
            if stated and wanted and primary_language(stated) != primary_language(wanted):
                option, field = ("--from", "source") if name == names[0] else ("--to", "target")
                said = f"says {wanted!r}: say {{}} {stated[:40]}, or change the file"
                raise FileError(
                    f"its {name} is {stated[:40]!r}, and ",
                    f"{option} {said.format(option)}",
                    elsewhere=f"{field} {said.format(field)}",
                )
        if reading.target_language and not event.attribute(names[1]):
            attribute = rf"""\s{names[1]}\s*=\s*("[^"]*"|'[^']*')"""
            tag = re.sub(attribute, "", source[event.start : event.end])
            end = len(tag) - (2 if tag.endswith("/>") else 1)
            language = escape(reading.target_language).replace('"', "&quot;")
            language = language.replace("-", "_") if is_of_qt else language
            parts += [source[position : event.start], tag[:end], f' {names[1]}="{language}"', tag[end:]]
            position = event.end
        if is_2 or is_of_qt:
            break
    return "".join(parts) + source[position:]


def _segments(source: str, unit: _Unit, reading: Reading, join: bool) -> Iterator[Segment]:
    """The texts of one unit; of one that is segmented (XLIFF 1.2, `seg-source`) those of its segments."""
    original, target = unit.children.get("source"), unit.children.get(unit.target)
    parted = unit.children.get("seg-source")
    wanted = {} if parted is None else _ranges(parted)
    if wanted:
        original = parted
    if original is None or original.end is None:
        return
    if target is not None and any(event.name == "numerusform" for event in target.inner):
        pieces = _pieces(source, original.inner, join)
        yield from _plural(source, target, list(runs(source, pieces, reading, encode_with(escape))))
        return
    kept: deque[tuple[int, int, str]] = deque()
    if target is not None and not _is_open(source, target):
        done = {mid: source[start:end] for mid, (start, end) in _ranges(target).items()}
        kept.extend((*wanted[mid], done[mid]) for mid in wanted if done.get(mid, "").strip())
        if not done or len(kept) == len(wanted):
            return
    inner = list(_outside(original.inner, [(start, end) for start, end, _ in kept]))
    found = list(runs(source, _pieces(source, inner, join), reading, encode_within()))
    position = original.inner[0].start if original.inner else 0
    start, end, before, tag, after = _target(source, unit, original)

    def copied(begin: int, stop: int) -> str:
        """What stands there, with the segments that are translated."""
        parts = []
        while kept and kept[0][1] <= stop:
            first, last, text = kept.popleft()
            parts += [source[begin:first], text]
            begin = last
        return "".join(parts) + source[begin:stop]

    for number, run in enumerate(found):
        is_first, is_last = number == 0, number == len(found) - 1
        lead = copied(position, run.start)
        yield Segment(
            start=start if is_first else end,
            end=end,
            text=run.html,
            readable=run.text,
            write=partial(_written, run, (_translated(tag) if is_first else "") + lead, ""),
            original=(tag if is_first else "") + lead + run.raw(run),
            before=before if is_first else "",
            after=copied(run.end, original.end.start) + after if is_last else "",
        )
        position = run.end


def _written(run: Run, before: str, after: str, translation: str) -> str:
    return f"{before}{run.write(translation)}{after}"


def _plural(source: str, target: _Element, found: Sequence[Run]) -> Iterator[Segment]:
    """The plural forms of a message of Qt's, where it has none yet."""
    forms = [event for event in target.inner if event.name == "numerusform"]
    is_empty = all(opened.end == closed.start for opened, closed in zip(forms[::2], forms[1::2], strict=True))
    if not is_empty or len(found) != 1:
        return
    [run] = found
    start, lead = target.start.start, _translated(source[target.start.start : target.start.end])
    position = target.start.end
    for opened, closed in zip(forms[::2], forms[1::2], strict=True):
        before = f"{lead}{source[position : opened.start]}<numerusform>"
        yield Segment(
            start=start,
            end=closed.end,
            text=run.html,
            readable=run.text,
            write=partial(_written, run, before, "</numerusform>"),
            original=source[start : closed.end],
        )
        start, lead, position = closed.end, "", closed.end


def _is_segment(event: Event) -> bool:
    return event.name == "mrk" and event.attribute("mtype") == "seg"


def _ranges(element: _Element) -> dict[str, tuple[int, int]]:
    """Where the content of each segment is, by its number."""
    ranges = {}
    opened: list[Event] = []
    for event in element.inner:
        if event.kind == "start":
            opened.append(event)
        elif event.kind == "end" and _is_segment(start := opened.pop()):
            ranges[start.attribute("mid") or ""] = (start.end, event.start)
    return ranges


def _outside(inner: Sequence[Event], ranges: Sequence[tuple[int, int]]) -> Iterator[Event]:
    """The events that are in none of these ranges, which are in order."""
    rest = deque(ranges)
    for event in inner:
        while rest and event.start >= rest[0][1]:
            rest.popleft()
        if not rest or event.start < rest[0][0]:
            yield event


def _is_open(source: str, target: _Element) -> bool:
    """Whether a target waits for its translation."""
    texts = (event for event in target.inner if event.kind in ("text", "cdata"))
    has_text = any(source[event.start : event.end].strip() for event in texts)
    is_empty = not has_text and not any(event.kind == "start" for event in target.inner)
    return is_empty or target.start.attribute("state") in _UNTRANSLATED_STATES


def _translated(tag: str) -> str:
    """The tag of a target that is translated now."""
    tag = re.sub(r"""\stype\s*=\s*["']unfinished["']""", "", tag) if "<translation" in tag else tag
    return re.sub(
        rf"""(\sstate\s*=\s*["'])(?:{"|".join(_UNTRANSLATED_STATES)})(?=["'])""", r"\1translated", tag
    )


def _target(source: str, unit: _Unit, original: _Element) -> tuple[int, int, str, str, str]:
    """The range that the target takes up to its end tag, what comes before it, its start tag, and what comes
    behind its content."""
    tag = source[original.start.start : original.start.end]
    prefix = tag[1 : tag.index(original.start.name)]
    target = unit.children.get(unit.target)
    if target is not None and target.end is not None:
        opening = source[target.start.start : target.start.end]
        if opening.endswith("/>"):
            tag = opening[:-2].rstrip() + ">"
            return target.start.start, target.start.end, "", tag, f"</{prefix}{unit.target}>"
        return target.start.start, target.end.start, "", opening, ""
    last = unit.children.get("seg-source", original).end
    assert last is not None
    begin = original.start.start
    while begin > 0 and source[begin - 1].isspace():
        begin -= 1
    indent = source[begin : original.start.start]
    space = ' xml:space="preserve"' if original.start.attribute("xml:space") == "preserve" else ""
    return last.end, last.end, indent, f"<{prefix}{unit.target}{space}>", f"</{prefix}{unit.target}>"


def _pieces(source: str, inner: Sequence[Event], join: bool) -> Iterator[Piece]:
    """The pieces of a source. What is code, or protected, is none of its text, whatever it holds."""
    position = 0
    while position < len(inner):
        event = inner[position]
        last = position
        if event.kind in ("text", "cdata"):
            yield from text_pieces(source, event, join=join)
        elif event.kind != "start":
            kind: Kind = "close" if event.kind == "end" else "markup"
            yield Piece(start=event.start, end=event.end, kind=kind, name=event.name)
        elif _is_code(event):
            last = _end(inner, position)
            yield _code(event, inner[last].end)
        elif _is_segment(event):
            yield Piece(start=event.start, end=event.end, kind="markup")
        else:
            yield Piece(start=event.start, end=event.end, kind="open", name=event.name)
        position = last + 1


def _is_code(event: Event) -> bool:
    is_protected = event.attribute("mtype") == "protected" or event.attribute("translate") == "no"
    return is_protected or any(event.name in names for names in _CODES.values())


def _code(event: Event, end: int) -> Piece:
    """An element that is not translated, by what it stands for."""
    # Which opening one a closing one is of: of 1.x by number or by itself, of 2.x by name.
    name = next((found for key in ("rid", "startRef", "id") if (found := event.attribute(key))), "")
    kind: Kind = next((kind for kind, names in _CODES.items() if event.name in names), "word")
    return Piece(start=event.start, end=end, kind=kind, name=f"#{name}")


def _end(inner: Sequence[Event], position: int) -> int:
    """Where the element ends that starts there."""
    depth = 0
    for index in range(position, len(inner)):
        depth += {"start": 1, "end": -1}.get(inner[index].kind, 0)
        if depth == 0:
            return index
    raise AssertionError("an element of a well-formed document ends")

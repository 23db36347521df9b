"""The formats of files, by their names, and what the suffix of a file's name says of it.

A format's library is imported when a file of it is opened.
"""

import functools
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePath
from typing import Any

from dragoman_files import catalogue, hypertext, markdown, resources, strings, subtitles, xliff, xml_texts
from dragoman_files.document import Segment, document_format
from dragoman_files.format import FileError, Format, FormatName, FormatOptions, Reading
from dragoman_files.lines import TextLines, json_lines, lines_format
from dragoman_files.packages import PACKAGED, package_format
from dragoman_files.resources import without_accelerators
from dragoman_files.tables import table_format
from dragoman_files.texts import read_table

_Segments = Callable[[str, Reading], Iterable[Segment]]


def _of_menus(segments: _Segments, *, is_html: bool) -> _Segments:
    """The texts of a format, without accelerators while they are translated."""
    return lambda source, reading: without_accelerators(segments(source, reading), is_html=is_html)


_plain, _tagged = document_format, partial(document_format, text_format="html")
_xml = partial(_tagged, declared=xml_texts.DECLARED, has_references=True)
_messages = partial(_xml, segments=_of_menus(xliff.segments, is_html=True), prepare=xliff.prepare)

_FORMATS: dict[FormatName, tuple[str, Callable[[FormatName, FormatOptions], Format]]] = {
    "text": ("", lambda name, options: lines_format(name, TextLines(), options)),
    "jsonl": (".jsonl .ndjson .jsonlines", json_lines),
    "json": (".json", partial(_plain, segments=strings.json_segments)),
    "arb": (".arb", partial(_plain, segments=strings.bundle_segments, prepare=strings.prepare_bundle)),
    "yaml": (".yaml .yml", partial(_plain, segments=strings.yaml_segments)),
    "ftl": (".ftl", partial(_plain, segments=resources.fluent_segments)),
    "strings": (".strings", partial(_plain, segments=strings.apple_segments)),
    "resx": (".resx .resw", partial(_xml, segments=_of_menus(resources.RESX.segments, is_html=True))),
    "android": (".strings.xml", partial(_xml, segments=resources.android_segments)),
    "ts": (".ts", _messages),
    "csv": (".csv", table_format),
    "tsv": (".tsv", table_format),
    "srt": (".srt", partial(_tagged, segments=subtitles.srt_segments)),
    "vtt": (".vtt", partial(_tagged, segments=subtitles.vtt_segments)),
    "html": (
        ".html .htm .xhtml",
        partial(_xml, segments=hypertext.segments, prepare=hypertext.prepare, declared=hypertext.DECLARED),
    ),
    "markdown": (".md .markdown", partial(_tagged, segments=markdown.segments)),
    "po": (
        ".po .pot",
        partial(
            _plain,
            segments=_of_menus(catalogue.segments, is_html=False),
            prepare=catalogue.prepare,
            declared=catalogue.DECLARED,
        ),
    ),
    "xliff": (".xliff .xlf", _messages),
    **{name: (f".{name}", package_format) for name in PACKAGED},
}
"""The suffixes of each format, and what opens one."""
_BY_SUFFIX = {suffix: name for name, (suffixes, _) in _FORMATS.items() for suffix in suffixes.split()}

_LANGUAGE_AND_REGION = re.compile(r"\.[a-z]{2,3}[-_][a-z0-9_-]+|\.\d*")


@functools.cache
def _names() -> dict[str, Any]:
    return read_table("names.toml")


_APART = 'write its texts into a file of their own, one a line, or into JSON lines, each with a "text"'


def _kind(suffix: str) -> str | None:
    """What a file is, by its suffix, that lines make no sense of."""
    refused = _names()["refused"].items()
    return next((kind for kind, listed in refused if suffix[1:] in listed["suffixes"].split()), None)


def format_names() -> list[FormatName]:
    return list(_FORMATS)


def known_suffixes() -> list[str]:
    """The suffixes of the formats, apart from text."""
    return list(_BY_SUFFIX)


def is_compressed(path: PurePath) -> bool:
    return path.suffix.lower() == ".gz"


def input_format(path: PurePath, name: FormatName | None) -> FormatName:
    """The format given; without one that of the file's suffix, leaving out `.gz`: text for one of text.

    Raises FileError for any other suffix: translating line by line would break such a file.
    """
    suffix = _suffix(path)
    is_text = not suffix or suffix[1:] in _names()["text"].split() or _LANGUAGE_AND_REGION.fullmatch(suffix)
    if name is None and suffix not in _BY_SUFFIX and not is_text:
        kind = _kind(suffix)
        advice = _names()["refused"][kind].get("advice", _APART) if kind else _APART
        known = f"is by its name {kind}, of a format that is not read"
        raise FileError(
            f"{path} {known if kind else f'ends in {suffix[:40]!r}, of which no format is known'}, and "
            f"translating it line by line {'would' if kind else 'might'} break it: {advice}",
            ". `--format text` takes every line for a text all the same",
        )
    return _format_of(path, name)


def output_format(path: PurePath, name: FormatName | None) -> FormatName:
    """The format of a file that is written, by its name. Raises FileError for a suffix that says what it
    will not be."""
    if name is None and (kind := _kind(_suffix(path))) is not None:
        raise FileError(
            f"{path} is by its name {kind}, of a format that is not written: name it as what it will be, "
            f"such as {path.with_suffix('.txt').name}",
            ". `--format text` writes lines of text under any name",
        )
    return _format_of(path, name)


def _format_of(path: PurePath, name: FormatName | None) -> FormatName:
    format_name = name or _BY_SUFFIX.get(_suffix(path), "text")
    if format_name in PACKAGED and is_compressed(path):
        raise FileError(f"{path}: a .{format_name} is compressed as it is; name it without .gz")
    return format_name


def _suffix(path: PurePath) -> str:
    name = (path.stem if is_compressed(path) else path.name).lower()
    # Android calls its files so, and many other kinds end in .xml.
    return ".strings.xml" if name.endswith("strings.xml") else PurePath(name).suffix


def open_format(name: FormatName, options: FormatOptions) -> Format:
    """The format of this name.

    Raises FileError for a name that is none, and for options that it has no use for or lacks.
    """
    if name not in _FORMATS:
        raise FileError(f"there is no format {name[:80]!r}; there are {', '.join(_FORMATS)}")
    if options.columns and name not in ("csv", "tsv"):
        raise _misplaced("--column", "columns", f"of tables (csv, tsv), and this is {name}")
    if options.keys and name not in ("jsonl", "json", "yaml"):
        raise _misplaced("--key", "keys", f"of JSON (json, jsonl) and YAML, and this is {name}")
    if options.encoding is not None and name in PACKAGED:
        raise _misplaced("--encoding", "encoding", f"of text, and a .{name} says itself what it is in")
    return _FORMATS[name][1](name, options.of(name))


def _misplaced(option: str, field: str, scope: str) -> FileError:
    return FileError("", f"{option} is {scope}", elsewhere=f"{field} is {scope}")

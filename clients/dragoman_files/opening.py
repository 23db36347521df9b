"""The formats of files, by their names, and what the suffix of a file's name says of it.

A format's library is imported when a file of it is opened.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePath

from dragoman_files import (
    catalogue,
    fluent_strings,
    hypertext,
    json_strings,
    markdown,
    resources,
    subtitles,
    xliff,
    xml_events,
    yaml_strings,
)
from dragoman_files.accelerators import without_accelerators
from dragoman_files.document import Segment, document_format
from dragoman_files.format import FileError, Format, FormatName, FormatOptions, Reading
from dragoman_files.lines import TextLines, json_lines, lines_format
from dragoman_files.packages import PACKAGED, package_format
from dragoman_files.tables import table_format

_Segments = Callable[[str, Reading], Iterable[Segment]]


def _of_menus(segments: _Segments, *, is_html: bool) -> _Segments:
    """The texts of a format, without accelerators while they are translated."""
    return lambda source, reading: without_accelerators(segments(source, reading), is_html=is_html)


_xml = partial(
    document_format, declared=xml_events.declared_encoding, has_references=True, text_format="html"
)

_FORMATS: dict[FormatName, tuple[str, Callable[[FormatName, FormatOptions], Format]]] = {
    "text": ("", lambda name, options: lines_format(name, TextLines(), options)),
    "jsonl": (".jsonl .ndjson .jsonlines", json_lines),
    "json": (".json", partial(document_format, segments=json_strings.segments)),
    "arb": (
        ".arb",
        partial(document_format, segments=json_strings.bundle_segments, prepare=json_strings.prepare_bundle),
    ),
    "yaml": (".yaml .yml", partial(document_format, segments=yaml_strings.segments)),
    "ftl": (".ftl", partial(document_format, segments=fluent_strings.segments)),
    "strings": (".strings", partial(document_format, segments=resources.apple_segments)),
    "resx": (".resx .resw", partial(_xml, segments=_of_menus(resources.resx_segments, is_html=True))),
    "android": (".strings.xml", partial(_xml, segments=resources.android_segments)),
    "ts": (".ts", partial(_xml, segments=_of_menus(xliff.segments, is_html=True), prepare=xliff.prepare)),
    "csv": (".csv", table_format),
    "tsv": (".tsv", table_format),
    "srt": (".srt", partial(document_format, segments=subtitles.srt_segments, text_format="html")),
    "vtt": (".vtt", partial(document_format, segments=subtitles.vtt_segments, text_format="html")),
    "html": (
        ".html .htm .xhtml",
        partial(
            document_format,
            segments=hypertext.segments,
            prepare=hypertext.prepare,
            declared=hypertext.declared_encoding,
            has_references=True,
            text_format="html",
        ),
    ),
    "markdown": (
        ".md .markdown",
        partial(document_format, segments=markdown.segments, text_format="html"),
    ),
    "po": (
        ".po .pot",
        partial(
            document_format,
            segments=_of_menus(catalogue.segments, is_html=False),
            prepare=catalogue.prepare,
            declared=catalogue.declared_encoding,
        ),
    ),
    "xliff": (
        ".xliff .xlf",
        partial(_xml, segments=_of_menus(xliff.segments, is_html=True), prepare=xliff.prepare),
    ),
    **{name: (f".{name}", package_format) for name in PACKAGED},
}
"""The suffixes of each format, and what opens one."""
_BY_SUFFIX = {suffix: name for name, (suffixes, _) in _FORMATS.items() for suffix in suffixes.split()}

_LANGUAGES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de "
    "dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id "
    "ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu "
    "lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu "
    "rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr "
    "tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "
)
"""ISO 639-1, as of corpora, without ts, which is a format of Qt."""
_TEXT = frozenset(
    f".{name}" for name in f"{_LANGUAGES} txt text lines src trg tgt ref hyp tok bpe out".split()
)
"""Suffixes of text, a line each; so are names without one, and languages with a region."""
_LANGUAGE_AND_REGION = re.compile(r"\.[a-z]{2,3}[-_][a-z0-9_-]+|\.\d*")

_REFUSED = {
    "a document": "doc docm dot dotx ott rtf pdf mobi azw3 fb2 ppt pptm xls xlsm ots",
    "an archive": "zip tar tgz tbz2 txz 7z rar bz2 xz zst lz4 jar",
    "subtitles": "ass ssa sbv ttml",
    "markup": "xml mdx rst adoc asciidoc tex",
    "a catalogue of messages": "tmx tbx stringsdict xcstrings properties",
    "structured data": "toml ini json5",
}
"""Suffixes of what lines make no sense of, by what it is. None is a language's code of two letters."""
_KINDS = {f".{suffix}": kind for kind, suffixes in _REFUSED.items() for suffix in suffixes.split()}

_APART = 'write its texts into a file of their own, one a line, or into JSON lines, each with a "text"'
_ADVICE = {
    "a document": "save it as .docx or .odt, or as plain text in UTF-8, a paragraph a line",
    "an archive": "unpack it; of compressed files only .gz is read",
    "subtitles": "save them as .srt or .vtt",
    "a catalogue of messages": "convert it to .po or .xliff",
    "structured data": "convert it to .json",
}
"""The first thing to do for each kind; any other kind is advised `_APART`."""


def format_names() -> list[FormatName]:
    """The names of all formats."""
    return list(_FORMATS)


def known_suffixes() -> list[str]:
    """The suffixes of the formats, apart from text."""
    return list(_BY_SUFFIX)


def is_compressed(path: PurePath) -> bool:
    """Whether the file is compressed by gzip."""
    return path.suffix.lower() == ".gz"


def input_format(path: PurePath, name: FormatName | None) -> FormatName:
    """The format given; without one that of the file's suffix, leaving out `.gz`: text for one of text.

    Raises FileError for any other suffix: translating line by line would break such a file.
    """
    suffix = _suffix(path)
    if name is None and suffix not in _BY_SUFFIX and not _is_of_text(suffix):
        kind = _KINDS.get(suffix)
        known = f"is by its name {kind}, of a format that is not read"
        raise FileError(
            f"{path} {known if kind else f'ends in {suffix[:40]!r}, of which no format is known'}, and "
            f"translating it line by line {'would' if kind else 'might'} break it: "
            f"{_ADVICE.get(kind or '', _APART)}",
            ". `--format text` takes every line for a text all the same",
        )
    return _format_of(path, name)


def _is_of_text(suffix: str) -> bool:
    return not suffix or suffix in _TEXT or _LANGUAGE_AND_REGION.fullmatch(suffix) is not None


def output_format(path: PurePath, name: FormatName | None) -> FormatName:
    """The format of a file that is written, by its name. Raises FileError for a suffix that says what it
    will not be."""
    if name is None and (kind := _KINDS.get(_suffix(path))) is not None:
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

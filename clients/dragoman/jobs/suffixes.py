"""The format and compression that a file's name states. Knows nothing of what is in it."""

from pathlib import PurePath

from dragoman.jobs.errors import JobError
from dragoman.jobs.format import FormatName

_FORMATS: dict[str, FormatName] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".srt": "srt",
    ".vtt": "vtt",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".po": "po",
    ".pot": "po",
    ".xliff": "xliff",
    ".xlf": "xliff",
    ".docx": "docx",
}
"""Suffixes of the formats, apart from text, which may have any other."""

_REFUSED = {
    "a document": "doc docm dot dotx odt ott rtf pdf epub mobi azw3 fb2 ppt pptx odp xls xlsx xlsm ods",
    "an archive": "zip tar tgz tbz2 txz 7z rar bz2 xz zst lz4 jar",
    "subtitles": "ass ssa sbv ttml",
    "markup": "xml mdx rst adoc asciidoc tex",
    "a catalogue of messages": ("tmx tbx strings stringsdict xcstrings resx resw ftl properties arb"),
    "structured data": "yaml yml toml ini json5",
}
"""Suffixes of what lines make no sense of, by what it is. None is a language's code of two letters."""
_KINDS = {f".{suffix}": kind for kind, suffixes in _REFUSED.items() for suffix in suffixes.split()}

_APART = 'write its texts into a file of their own, one a line, or into JSON lines, each with a "text"'
_ADVICE = {
    "a document": "save it as .docx, or as plain text in UTF-8, a paragraph a line",
    "an archive": "unpack it; of compressed files only `.gz` is read",
    "subtitles": "save them as .srt or .vtt",
    "a catalogue of messages": "convert it to .po or .xliff",
    "structured data": "convert it to .json",
}
"""The first thing to do for each kind; any other kind is advised `_APART`."""


def known_suffixes() -> list[str]:
    """The suffixes of the formats, apart from text, which may have any other."""
    return list(_FORMATS)


def is_compressed(path: PurePath) -> bool:
    """Whether the file is compressed by gzip."""
    return path.suffix.lower() == ".gz"


def input_format(path: PurePath, name: FormatName | None) -> FormatName:
    """The format given; without one that of the file's suffix, leaving out `.gz`: text where it is unknown.

    Raises JobError for a suffix of files that translating line by line would break.
    """
    if name is None and (kind := _KINDS.get(_suffix(path))) is not None:
        raise JobError(
            f"{path} is by its name {kind}, of a format that is not read, and translating it line by line "
            f"would break it: {_ADVICE.get(kind, _APART)}. `--format text` takes every line for a text "
            "all the same"
        )
    return _format_of(path, name)


def output_format(path: PurePath, name: FormatName | None) -> FormatName:
    """The format of a file that is written, by its name. Raises JobError for a suffix that says what it
    will not be."""
    if name is None and (kind := _KINDS.get(_suffix(path))) is not None:
        raise JobError(
            f"{path} is by its name {kind}, of a format that is not written: name it as what it will be, "
            f"such as {path.with_suffix('.txt').name}. `--format text` writes lines of text under any name"
        )
    return _format_of(path, name)


def _format_of(path: PurePath, name: FormatName | None) -> FormatName:
    format_name = name or _FORMATS.get(_suffix(path), "text")
    if format_name == "docx" and is_compressed(path):
        raise JobError(f"{path}: a .docx is compressed as it is; name it without .gz")
    return format_name


def _suffix(path: PurePath) -> str:
    return (PurePath(path.stem) if is_compressed(path) else path).suffix.lower()

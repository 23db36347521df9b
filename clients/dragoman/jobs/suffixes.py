"""What a file's name says of its content. Knows nothing of what is in it."""

from pathlib import PurePath

from dragoman.jobs.errors import JobError
from dragoman.jobs.format import FORMATS, Format, FormatName

_FORMATS: dict[str, FormatName] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".jsonlines": "jsonl"}
"""Suffixes of what is read line by line, apart from text, which may have any other."""

_REFUSED = {
    "a document": "doc docx docm dot dotx odt ott rtf pdf epub mobi azw3 fb2 ppt pptx odp xls xlsx xlsm ods",
    "an archive": "zip tar tgz tbz2 txz 7z rar bz2 xz zst lz4 jar",
    "subtitles": "srt vtt ass ssa sbv ttml",
    "markup": "html htm xhtml xml md markdown mdx rst adoc asciidoc tex",
    "a catalogue of messages": (
        "po pot xliff xlf tmx tbx strings stringsdict xcstrings resx resw ftl properties arb"
    ),
    "a table": "csv tsv",
    "structured data": "yaml yml toml ini json5",
    "one JSON document": "json",
}
"""Suffixes of what lines make no sense of, by what it is. None is a language's code of two letters."""
_KINDS = {f".{suffix}": kind for kind, suffixes in _REFUSED.items() for suffix in suffixes.split()}

_APART = 'write its texts into a file of their own, one a line, or into JSON lines, each with a "text"'
_ADVICE = {
    "a document": "save it as plain text in UTF-8, a paragraph a line",
    "an archive": "unpack it; of compressed files only `.gz` is read",
    "one JSON document": f"{_APART}; if it holds JSON lines, `--format jsonl` says so",
}
"""What to do first; `_APART` with all that stand not here."""


def is_compressed(path: PurePath) -> bool:
    """Whether the file is compressed by gzip."""
    return path.suffix.lower() == ".gz"


def input_format(path: PurePath, name: FormatName | None) -> Format:
    """The format of this name; without one by the file's suffix, leaving out `.gz`: text where it is unknown.

    Raises JobError for a suffix of files that translating line by line would break.
    """
    if name is None and (kind := _KINDS.get(_suffix(path))) is not None:
        raise JobError(
            f"{path} is by its name {kind}, which translating line by line would break: "
            f"{_ADVICE.get(kind, _APART)}. `--format text` takes every line for a text all the same"
        )
    return _format_of(path, name)


def output_format(path: PurePath, name: FormatName | None) -> Format:
    """The same of a file that is written. Raises JobError for a suffix that says what it will not be."""
    if name is None and (kind := _KINDS.get(_suffix(path))) is not None:
        raise JobError(
            f"{path} is by its name {kind}, and what is written are lines of text or JSON: name it so, such "
            f"as {path.with_suffix('.txt').name}. `--format text` writes lines of text under any name"
        )
    return _format_of(path, name)


def _format_of(path: PurePath, name: FormatName | None) -> Format:
    return FORMATS[name or _FORMATS.get(_suffix(path), "text")]()


def _suffix(path: PurePath) -> str:
    return (PurePath(path.stem) if is_compressed(path) else path).suffix.lower()

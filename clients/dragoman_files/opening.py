"""The formats of files: each knows where the texts of a file stand, and how one is written there.

A format's library is imported when a file of it is opened.
"""

from functools import partial

from dragoman_files import catalogue, hypertext, json_strings, subtitles, xliff
from dragoman_files.catalogue import CatalogueFormat
from dragoman_files.document import DocumentFormat
from dragoman_files.errors import FileError
from dragoman_files.format import Format, FormatName, FormatOptions
from dragoman_files.lines import LinesFormat, TextLines, json_lines
from dragoman_files.markdown import MarkdownFormat
from dragoman_files.tables import TableFormat
from dragoman_files.tags import xml_events
from dragoman_files.word import WordFormat

__all__ = ["open_format"]


def open_format(name: FormatName, options: FormatOptions) -> Format:
    """The format of this name.

    Raises FileError for options that it has no use for or lacks.
    """
    if options.columns and name not in ("csv", "tsv"):
        raise FileError(f"--column is of tables (csv, tsv), and this is {name}")
    if options.keys and name not in ("jsonl", "json"):
        raise FileError(f"--key is of JSON (json, jsonl), and this is {name}")
    if options.encoding is not None and name == "docx":
        raise FileError("--encoding is of text, and a .docx says itself what it is in")
    return _open(name, options.of(name))


def _open(name: FormatName, options: FormatOptions) -> Format:
    match name:
        case "text":
            return LinesFormat("text", TextLines(), options)
        case "jsonl":
            return json_lines(options)
        case "csv" | "tsv":
            return TableFormat(name, options)
        case "json":
            return DocumentFormat(name, options, partial(json_strings.segments, keys=options.keys or None))
        case "srt":
            return DocumentFormat(name, options, subtitles.srt_segments)
        case "vtt":
            return DocumentFormat(name, options, subtitles.vtt_segments)
        case "html":
            return DocumentFormat(
                name,
                options,
                hypertext.segments,
                declared=hypertext.declared_encoding,
                has_references=True,
                text_format="html",
            )
        case "markdown":
            return DocumentFormat(name, options, MarkdownFormat().segments, text_format="html")
        case "po":
            segments = CatalogueFormat().segments
            return DocumentFormat(
                name, options, segments, prepare=catalogue.prepare, declared=catalogue.declared_encoding
            )
        case "xliff":
            return DocumentFormat(
                name,
                options,
                partial(xliff.segments, join=bool(options.join_lines)),
                prepare=xliff.prepare,
                declared=xml_events.declared_encoding,
                has_references=True,
                text_format="html",
            )
        case "docx":
            return WordFormat(options)

"""CSV and TSV: the cells of some columns, row by row, and everything else of a row as it was."""

import csv
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dragoman_files.content import Codec
from dragoman_files.format import FileError, Format, FormatName, FormatOptions, Input, Unit
from dragoman_files.lines import codec_of_lines, raw_lines, transcoded
from dragoman_files.texts import has_letters, join_lines

_DELIMITERS = ",;\t|"
"""Delimiters of CSV, in the order in which they are tried."""
_QUOTED = re.compile(r'"(?:[^"]|"")*+"')
_BREAKS = re.compile(r"[\t\r\n]+")
MAX_BETWEEN_CHARACTERS = 1 << 20
"""Rows without a text are held up to here, and then written without one."""

Write = Callable[[str | None], str]


class _Row(NamedTuple):
    """A row: its number and that of its first line, all of it with its line ending, and its cells."""

    number: int
    line: int
    raw: str
    cells: Sequence[str]


def table_format(name: FormatName, options: FormatOptions) -> Format:
    """A table whose cells of some columns are translated where they stand.

    Raises FileError where no column is named.
    """
    if not options.columns:
        each = "for each column to translate: its name in the first row, or its number from 1"
        raise FileError("a table needs ", f"--column, once {each}", elsewhere=f"columns, one {each}")
    return Format(name=name, noun="cells", units=_Table(name, options).units, checks_encoding=False)


class _Table:
    """The reader of tables in one of the two formats."""

    def __init__(self, name: FormatName, options: FormatOptions) -> None:
        self.name = name
        self._options = options

    def units(self, source: Input) -> Iterator[Unit]:
        """The cells. A row with more or fewer than the first has no text.

        Raises FileError for columns that are not there, and for quotation marks that do not match.
        """
        codec = codec_of_lines(source, self._options.encoding)
        if not source.rewound().stream.read(1):
            return iter(())
        delimiter, columns, has_header = self._columns(source, codec)
        # Once to its end before anything is written.
        width = 0
        for row in self._rows(source, codec, delimiter):
            width = width or len(row.cells)
        if max(columns) >= width:
            raise FileError(f"{source.name} has {width} columns, and there is no number {max(columns) + 1}")
        rows = self._rows(source, codec, delimiter)
        return (transcoded(unit, codec) for unit in self._cells(rows, source, delimiter, columns, has_header))

    def _columns(self, source: Input, codec: Codec | None) -> tuple[str, list[int], bool]:
        """The delimiter, the places of the columns from 0 in order, and whether the first row names them."""
        wanted = self._options.columns
        first = next(raw_lines(source.rewound(), codec)).decode(errors="replace").removeprefix("\ufeff")
        if all(name.isdecimal() and name != "0" and len(name) < 10 for name in wanted):
            delimiter = "\t" if self.name == "tsv" else max(_DELIMITERS, key=first.count)
            return delimiter, sorted({int(name) - 1 for name in wanted}), False
        for delimiter in "\t" if self.name == "tsv" else _DELIMITERS:
            try:
                header = next(self._rows(source, codec, delimiter)).cells
            except FileError:
                # Quotation marks make no sense with another delimiter than the file's.
                continue
            if all(name in header for name in wanted):
                return delimiter, sorted({header.index(name) for name in wanted}), True
        raise FileError(
            f"{source.name} has no column {', '.join(name for name in wanted if name not in first)!r}: its "
            f"first line is {first.strip()[:200]!r}"
        )

    def _rows(self, source: Input, codec: Codec | None, delimiter: str) -> Iterator[_Row]:
        """All rows but blank ones, which go with the row after them."""
        taken: list[str] = []

        def lines() -> Iterator[str]:
            for number, raw in enumerate(raw_lines(source.rewound(), codec), start=1):
                try:
                    line = raw.decode()
                except UnicodeDecodeError as error:
                    raise FileError(
                        f"{source.name} is not in UTF-8: byte {error.start} of line {number} is "
                        f"0x{raw[error.start]:02x}",
                        "; `--encoding` says which encoding it is in",
                        elsewhere="; save it as text in UTF-8",
                    ) from None
                taken.append(line)
                yield line.removeprefix("\ufeff") if number == 1 else line

        reader = csv.reader(
            lines(),
            delimiter=delimiter,
            strict=True,
            quoting=csv.QUOTE_NONE if self.name == "tsv" else csv.QUOTE_MINIMAL,
        )
        number, line = 0, 1
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise FileError(
                    f"{source.name} is no table from line {line} on: {error}. Is a quotation mark not "
                    "closed, or not doubled within a cell?"
                ) from None
            if cells is None:
                break
            if not cells:
                continue
            number += 1
            yield _Row(number, line, "".join(taken), cells)
            taken.clear()
            line = reader.line_num + 1
        if taken:
            yield _Row(number + 1, line, "".join(taken), ())

    def _cells(
        self, rows: Iterator[_Row], source: Input, delimiter: str, columns: list[int], has_header: bool
    ) -> Iterator[Unit]:
        """A unit for each cell with a letter. What stands before it goes with it."""
        number = width = num_held = 0
        # What stands between the last text and the next.
        between: list[str] = []

        def unit(row: _Row, text: str, write: Write, error: str | None = None) -> Unit:
            nonlocal number, num_held
            number += 1
            before = "".join(between)
            between.clear()
            num_held = 0
            return Unit(
                number=number,
                position=source.position(),
                text=join_lines(text) if self._options.join_lines else text,
                raw=row.raw,
                error=error,
                location={"line": row.line, "number": number},
                write=lambda translation, details: (before + write(translation)).encode(),
            )

        for row in rows:
            width = width or len(row.cells)
            if row.cells and len(row.cells) != width:
                error = f"the row has {len(row.cells)} cells, and the first one {width}"
                yield unit(row, "", lambda translation, raw=row.raw: raw, error)  # type: ignore[misc]
                continue
            end = 0
            if row.cells and not (has_header and row.number == 1):
                is_quoted = self.name == "csv"
                spans = list(_spans(row.raw, delimiter, is_quoted=is_quoted))
                assert len(spans) == len(row.cells), row
                for start, stop in (spans[column] for column in columns):
                    cell = row.raw[start:stop]
                    if has_letters(text := _unquoted(cell)):
                        between.append(row.raw[end:start])
                        end = stop
                        yield unit(row, text, functools.partial(_written, cell, delimiter, is_quoted))
            between.append(row.raw[end:])
            num_held += len(between[-1])
            if num_held > MAX_BETWEEN_CHARACTERS:
                yield unit(row, "", lambda translation: "")
        if any(between):
            yield unit(_Row(0, 0, "", ()), "", lambda translation: "")


def _written(cell: str, delimiter: str, is_quoted_format: bool, translation: str | None) -> str:
    """A cell in the place of another."""
    if translation is None:
        return cell
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    if not is_quoted_format:
        # A tab or a line break would be a cell or a row too many.
        translation = _BREAKS.sub(" ", translation)
    elif any(character in translation for character in f'{delimiter}"\r\n'):
        is_quoted = True
    return '"' + translation.replace('"', '""') + '"' if is_quoted else translation


def _unquoted(cell: str) -> str:
    """The content of a cell; TSV has quotation marks, too, as some programs write them."""
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if is_quoted else cell


def _spans(raw: str, delimiter: str, *, is_quoted: bool) -> Iterator[tuple[int, int]]:
    """Where each cell of a row stands, its quotation marks included; the row is sound by the csv module."""
    start = len(raw) - len(raw.lstrip("\ufeff\r\n"))
    end = len(raw.rstrip("\r\n"))
    while True:
        quoted = _QUOTED.match(raw, start) if is_quoted else None
        stop = quoted.end() if quoted is not None else raw.find(delimiter, start, end)
        stop = end if stop < 0 else stop
        yield start, stop
        if stop >= end:
            return
        start = stop + 1

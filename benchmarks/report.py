"""Results as a table for the eye, as JSON for a program and as Markdown for the docs. Measures nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

Row = Mapping[str, object]

# Wide enough for every table: nobody reads a file in 80 columns.
_FILE_WIDTH = 180


@dataclass(frozen=True, kw_only=True)
class Column:
    """How one field of the rows is shown."""

    key: str
    header: str
    format: str = ""
    """As `format()` takes it; what is missing is shown as a dash."""

    def show(self, row: Row) -> str:
        value = row.get(self.key)
        if value is None:
            return "–"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return str(value) if isinstance(value, str) else format(value, self.format)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under a title."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""
    """How to read it."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a command found out."""

    command: str
    """How it was called."""
    results: Mapping[str, object]
    """What goes into the JSON, the machine among it."""
    tables: Sequence[Table]

    def publish(self, console: Console, *, json_path: Path | None, markdown_path: Path | None) -> None:
        """Prints the tables and writes the files that are asked for."""
        if not console.is_terminal:
            console = Console(file=console.file, width=_FILE_WIDTH, highlight=False)
        for table in self.tables:
            console.print()
            console.print(_as_rich(table))
            if table.note:
                console.print(table.note)
        if json_path is not None:
            content = {"command": self.command, **self.results}
            json_path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        if markdown_path is not None:
            markdown_path.write_text(self.as_markdown(), encoding="utf-8")

    def as_markdown(self) -> str:
        """The tables, after a line that says how and on what they were measured."""
        parts = [f"`{self.command}`", _machine_line(self.results.get("machine"))]
        for table in self.tables:
            parts += [f"**{table.title}**", _as_markdown(table), table.note]
        return "\n\n".join(part for part in parts if part) + "\n"


def _as_rich(table: Table) -> RichTable:
    shown = RichTable(title=table.title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for column in table.columns:
        shown.add_column(column.header, justify="right" if column.format else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*(column.show(row) for column in table.columns))
    return shown


def _as_markdown(table: Table) -> str:
    lines = [
        [column.header for column in table.columns],
        ["---:" if column.format else "---" for column in table.columns],
        *([column.show(row) for column in table.columns] for row in table.rows),
    ]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _machine_line(machine: object) -> str:
    if not isinstance(machine, Mapping):
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['processor']} ({', '.join(machine['flags']) or 'none of the flags asked for'}), "
        f"{machine['cores']} cores, load {machine['load_average']} at the start; "
        f"Python {machine['python']}, {versions}; {machine['date']}."
    )

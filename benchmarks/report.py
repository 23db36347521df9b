"""Results as a table for the eye, as JSON for a program and as Markdown for the docs. Measures nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

Row = Mapping[str, Any]
FILE_WIDTH = 180
"""Columns of a table that no terminal shows."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under a title."""

    name: str
    """What the rows are called in the JSON, where they stand with all their fields."""
    title: str
    columns: Sequence[tuple[str, str] | tuple[str, str, str]]
    """Each a field of the rows, its heading and, of a number, its format."""
    rows: Sequence[Row]
    note: str = ""
    """How to read it."""

    def cells(self) -> list[list[str]]:
        """The rows as they are shown."""
        return [[_show(row.get(column[0]), *column[2:]) for column in self.columns] for row in self.rows]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a scenario found out."""

    command: str
    """How it was called."""
    machine: Mapping[str, Any]
    facts: Mapping[str, object]
    tables: Sequence[Table]

    def publish(self, console: Console, *, json_path: Path | None, markdown_path: Path | None) -> None:
        """Prints the tables and writes the files that are asked for."""
        if not console.is_terminal:
            console = Console(file=console.file, width=FILE_WIDTH, highlight=False)
        for table in self.tables:
            shown = RichTable(title=table.title, title_justify="left", box=None, pad_edge=False)
            for column in table.columns:
                shown.add_column(column[1], justify="right" if column[2:] else "left", overflow="fold")
            for cells in table.cells():
                shown.add_row(*cells)
            console.print("", shown, table.note)
        if json_path is not None:
            rows = {table.name: table.rows for table in self.tables}
            content = {"command": self.command, "machine": self.machine, **self.facts, **rows}
            json_path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        if markdown_path is not None:
            markdown_path.write_text(self.as_markdown(), encoding="utf-8")

    def as_markdown(self) -> str:
        """The tables, after a line that says how and on what they were measured."""
        machine = self.machine
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        gpu = f"{machine['gpu']}, " if machine["gpu"] else ""
        state = f"load {machine['load_average']} at the start; Python {machine['python']}, {versions}; "
        state += f"{machine['date']}."
        parts = [
            f"`{self.command}`",
            f"{machine['processor']} ({', '.join(machine['flags'])}), {machine['cores']} cores, {gpu}{state}",
        ]
        for table in self.tables:
            lines = [[column[1] for column in table.columns]]
            lines += [["---:" if column[2:] else "---" for column in table.columns], *table.cells()]
            cells = [" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines]
            parts += [f"**{table.title}**", "\n".join(f"| {line} |" for line in cells), table.note]
        return "\n\n".join(part for part in parts if part) + "\n"


def _show(value: object, format_: str = "") -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else format(value, format_)

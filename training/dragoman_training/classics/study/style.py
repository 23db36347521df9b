"""How all plots look, and how they are written: to the same bytes for the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
"""Okabe and Ito (2008): told apart by most people whose colours are others."""
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")
LINES = ("-", "--", "-.", ":")
SHADES = "Greys"
"""Of heat maps: one colour, darker where there is more, in print too."""

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "lines.linewidth": 1.4,
    "lines.markersize": 5.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "dragoman",
}


@dataclass(frozen=True)
class LineStyle:
    """How a model's line looks: no two alike in all three, nor in grey."""

    colour: str
    marker: str
    line: str


def line_style(number: int) -> LineStyle:
    """That of the model with that number."""
    return LineStyle(
        COLOURS[number % len(COLOURS)],
        MARKERS[number % len(MARKERS)],
        LINES[(number + number // len(MARKERS)) % len(LINES)],
    )


@contextmanager
def drawing() -> Iterator[None]:
    """The settings of every plot, whatever those of the machine are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def write_figure(figure: Figure, path: Path) -> None:
    """Writes SVG or PNG, by the name, with no date nor version in it."""
    nothing = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata=nothing)

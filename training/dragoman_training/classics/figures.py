"""How all figures look, and how they are written: to the same bytes for the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
"""Okabe and Ito (2008): distinct to most people with another colour vision."""
SHADES = "Greys"
"""The colours of heat maps: one, darker where there is more, in print too."""

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


@contextmanager
def drawn(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure to be drawn on, in one style whatever the machine's, which is then written as SVG or PNG."""
    nothing = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, metadata=nothing)

"""Draws panels from what Prometheus says of them. Measures nothing."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, PercentFormatter

from benchmarks.dashboard.panels import Panel
from benchmarks.dashboard.prometheus import Prometheus

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")
"""Okabe and Ito (2008): told apart by most people whose colours are others."""
_STAGES = ("text", "queue", "encode", "decode", "request")
_LINES = ("-", "--", ":", "-.")
_INCHES = (0.62, 0.3)
"""Width of one of the 24 columns, height of one of their rows."""
_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.0,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
}


def draw(
    panels: Sequence[Panel],
    prometheus: Prometheus,
    *,
    begin: float,
    end: float,
    step_seconds: float,
    marks: Iterable[float],
    caption: str,
    path: Path,
) -> None:
    """Writes a picture of the panels as they were from one moment to another; `marks` are moments, too."""
    lines = _stack(panels)
    height = max(top + panel.place[3] for panel, top in lines) + 1.2
    marks = list(marks)
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(24 * _INCHES[0], height * _INCHES[1]), facecolor="white")
        row = None
        for panel, top in lines:
            x, _, width, tall = panel.place
            if panel.row != row:
                row = panel.row
                figure.text(0.012, 1 - (top - 0.55) / height, row, fontsize=12, weight="bold", va="center")
            left, lower = (x + 1.25) / 24, 1 - (top + tall - 0.95) / height
            axes = figure.add_axes((left, lower, (width - 1.9) / 24, (tall - 2.0) / height))
            axes.set_title(panel.title)
            _DRAWN[panel.kind](axes, panel, prometheus, begin, end, step_seconds)
            if panel.kind != "table":
                axes.set_xlim(begin, end)
                axes.set_xticks([begin + 30 * number for number in range(int(end - begin) // 30 + 1)])
                axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: _clock(at - begin)))
                axes.tick_params(axis="x", labelsize=6)
                for mark in marks:
                    axes.axvline(mark, color="#7A3FB0", linestyle="--", linewidth=0.9)
        figure.text(0.012, 0.35 / height, caption, fontsize=7, color="#444444", va="center")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100, metadata={"Software": None})


def _stack(panels: Sequence[Panel]) -> list[tuple[Panel, float]]:
    """Each panel with its upper edge: what lies between chosen rows is left out, and each has a heading."""
    placed: list[tuple[Panel, float]] = []
    top, row, first = 0.0, None, 0
    for panel in panels:
        if panel.row != row:
            top = max((y + each.place[3] for each, y in placed), default=0.0) + 1.4
            row, first = panel.row, panel.place[1]
        placed.append((panel, top + panel.place[1] - first))
    return placed


def _draw_lines(
    axes: Axes, panel: Panel, prometheus: Prometheus, begin: float, end: float, step_seconds: float
) -> None:
    found = [
        (target.name(series.labels), series)
        for target in panel.targets
        for series in prometheus.query_range(target.expression, begin, end, step_seconds)
        # A line at 0 all the time tells nothing, and there may be many.
        if any(value and math.isfinite(value) for value in series.values)
    ]
    if panel.is_stacked and found:
        times = sorted({at for _, series in found for at in series.times})
        rows = [dict(zip(series.times, series.values, strict=True)) for _, series in found]
        heights = np.nan_to_num([[row.get(at, 0.0) for at in times] for row in rows])
        axes.stackplot(times, heights, labels=[name for name, _ in found], colors=COLOURS, alpha=0.75)
    right = axes.twinx() if any(name in panel.on_the_right for name, _ in found) else axes
    for number, (name, series) in enumerate(found):
        if not panel.is_stacked:
            line = _LINES[number // len(COLOURS) % len(_LINES)]
            (right if name in panel.on_the_right else axes).plot(
                series.times,
                series.values,
                line,
                color=COLOURS[number % len(COLOURS)],
                label=name,
            )
    if panel.is_logarithmic:
        axes.set_yscale("log")
    else:
        for each in {axes, right}:
            each.set_ylim(0, None if found else 1)
    _label(axes, panel.unit)
    if found:
        handles, names = axes.get_legend_handles_labels()
        if right is not axes:
            more_handles, more_names = right.get_legend_handles_labels()
            right.grid(visible=False)
            right.spines["right"].set_visible(True)
            handles, names = handles + more_handles, [*names, *(f"{name} (right)" for name in more_names)]
        axes.legend(
            handles,
            names,
            loc="upper left",
            fontsize=5.8,
            framealpha=0.75,
            ncols=1 + (len(found) > 6),
            handlelength=1.4,
        )
    else:
        axes.text(0.5, 0.5, "0", transform=axes.transAxes, ha="center", va="center", color="#888888")


def _draw_heatmap(
    axes: Axes, panel: Panel, prometheus: Prometheus, begin: float, end: float, step_seconds: float
) -> None:
    [target] = panel.targets
    found = prometheus.query_range(target.expression, begin, end, step_seconds)
    buckets = sorted((float(series.labels["le"]), series) for series in found)
    times = sorted({at for _, series in buckets for at in series.times})
    counts = np.array(
        [
            [dict(zip(series.times, series.values, strict=True)).get(at, 0.0) for at in times]
            for _, series in buckets
        ]
    )
    counts = np.diff(counts, axis=0, prepend=0.0)
    counts = np.where(counts > 0, counts, np.nan)
    edges = np.arange(len(buckets) + 1)
    moments = [*times, times[-1] + step_seconds]
    axes.pcolormesh(moments, edges, counts, cmap="Blues", vmin=0)
    axes.set_yticks(edges[1:-1:2], [f"{bound:g}" for bound, _ in buckets[:-1:2]])
    axes.grid(visible=False)


def _draw_table(
    axes: Axes, panel: Panel, prometheus: Prometheus, begin: float, end: float, step_seconds: float
) -> None:
    columns = []
    for target in panel.targets:
        found = prometheus.query_range(target.expression, end, end, step_seconds)
        columns.append({(s.labels["stage"], s.labels["priority"]): s.values[-1] for s in found})
    seconds = EngFormatter("s", places=1)
    keys = list(dict.fromkeys(key for column in columns for key in column))
    cells = [
        [*key, *(seconds(column[key]) if key in column else "" for column in columns)]
        for key in sorted(keys, key=lambda key: (key[1] == "bulk", _STAGES.index(key[0])))
    ]
    axes.axis("off")
    table = axes.table(
        cells,
        colLabels=["stage", "priority", *(target.legend for target in panel.targets)],
        loc="upper center",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7.5)
    table.scale(1, 1.15)
    for cell in table.get_celld().values():
        cell.set_edgecolor("#DDDDDD")


_DRAWN = {"timeseries": _draw_lines, "heatmap": _draw_heatmap, "table": _draw_table}


def _label(axes: Axes, unit: str) -> None:
    formatters = {
        "percentunit": PercentFormatter(1.0),
        "s": EngFormatter("s"),
        "bytes": FuncFormatter(lambda value, _: f"{value / 2**20:.0f} MiB"),
    }
    if unit in formatters:
        axes.yaxis.set_major_formatter(formatters[unit])
    if unit == "reqps":
        axes.set_ylabel("requests/s")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

"""The study's figures: BLEU by length, heat maps, local-p's windows, training curves.

Shapes: U target pieces, T source pieces.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from dragoman_training.classics.study.buckets import Bucket
from dragoman_training.classics.study.findings import Centres, Example, Findings
from dragoman_training.classics.study.style import SHADES, drawing, line_style, write_figure

CELL_INCHES = 0.2
LABEL_INCHES = 0.95
MAX_COLUMNS = 3


def plot_lengths(findings: Sequence[Findings], buckets: Sequence[Bucket], path: Path) -> None:
    """BLEU of each bucket, one line per model; joined sentences stand behind a dotted line."""
    with drawing():
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.add_subplot()
        places = list(range(len(buckets)))
        for number, finding in enumerate(findings):
            bleu = [finding.cased.score(bucket.numbers).bleu for bucket in buckets]
            _line(axes, places, bleu, number, finding.label)
        labels = [bucket.label.replace(", ", "\n") for bucket in buckets]
        counts = [f"({len(bucket.numbers)})" for bucket in buckets]
        axes.set_xticks(places, [f"{label}\n{count}" for label, count in zip(labels, counts, strict=True)])
        if buckets[-1].joined:
            axes.axvline(len(buckets) - 1.5, color="#7F7F7F", linestyle=":", linewidth=1)
        axes.set_xlabel("words of the source (sentences)")
        axes.set_ylabel("BLEU")
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside right upper", frameon=False)
        write_figure(figure, path)


def _line(axes: Axes, across: Sequence[float], up: Sequence[float], number: int, label: str | None) -> None:
    """The line of the model with that number; one without a label is not in the legend."""
    style = line_style(number)
    axes.plot(across, up, color=style.colour, marker=style.marker, linestyle=style.line, label=label)


def plot_training(findings: Sequence[Findings], path: Path) -> None:
    """BLEU and perplexity of every validation, by minutes and by steps."""
    with drawing():
        figure = Figure(figsize=(8.5, 6.0), layout="constrained")
        panels = figure.subplots(2, 2, sharex="col", sharey="row", squeeze=False)
        for number, finding in enumerate(findings):
            validations = finding.progress["validations"]
            for row, measure in enumerate(("bleu", "perplexity")):
                values = [validation[measure] for validation in validations]
                minutes = [validation["seconds"] / 60 for validation in validations]
                steps = [validation["step"] for validation in validations]
                _line(panels[row][0], minutes, values, number, finding.label if row == 0 else None)
                _line(panels[row][1], steps, values, number, None)
        panels[0][0].set_ylabel("validation BLEU")
        panels[1][0].set_ylabel("validation perplexity")
        panels[1][0].set_yscale("log")
        panels[1][0].yaxis.set_major_formatter(LogFormatter())
        panels[1][0].yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.6)))
        panels[1][0].set_xlabel("minutes")
        panels[1][1].set_xlabel("steps")
        figure.legend(loc="outside right upper", frameon=False)
        write_figure(figure, path)


def plot_heat_maps(labelled: Sequence[tuple[str, Example]], path: Path) -> None:
    """One sentence in several models: rows are target pieces, columns source pieces."""
    columns = min(MAX_COLUMNS, len(labelled))
    rows = math.ceil(len(labelled) / columns)
    widest = max(len(example.source_pieces) for _, example in labelled)
    tallest = max(len(example.target_pieces) for _, example in labelled)
    size = (
        columns * (widest * CELL_INCHES + LABEL_INCHES),
        rows * (tallest * CELL_INCHES + LABEL_INCHES + 0.45),
    )
    with drawing():
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, (label, example) in zip(panels, labelled, strict=False):
            _heat_map(axes, label, example)
        for axes in panels[len(labelled) :]:
            axes.set_visible(False)
        write_figure(figure, path)


def _heat_map(axes: Axes, label: str, example: Example) -> None:
    attention = example.attention
    axes.grid(visible=False)
    axes.imshow(
        attention.weights_UT, cmap=SHADES, vmin=0.0, vmax=1.0, interpolation="nearest", aspect="equal"
    )
    axes.set_xticks(range(len(example.source_pieces)), example.source_pieces, rotation=90, parse_math=False)
    axes.set_yticks(range(len(example.target_pieces)), example.target_pieces, parse_math=False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False, labelsize=7)
    axes.set_title(label, fontsize=9)
    if attention.centre_U is not None:
        # Centres count from 1 and may lie before the first position, columns from 0.
        across = attention.centre_U - 1
        axes.plot(across, range(len(across)), "x", color="#D55E00", markersize=4, clip_on=False)
        axes.set_xlim(min(-0.5, float(across.min()) - 0.2), len(example.source_pieces) - 0.5)


def plot_centres(labelled: Sequence[tuple[str, Centres]], path: Path) -> None:
    """Local-p's predicted centres against where the target stands and where the witness looks most."""
    with drawing():
        figure = Figure(figsize=(7.5, 3.6 * len(labelled)), layout="constrained")
        panels = figure.subplots(len(labelled), 2, squeeze=False)
        for (left, right), (label, centres) in zip(panels, labelled, strict=True):
            longest = float(max(centres.target_position.max(), centres.source_length.max()))
            edges = np.arange(longest + 1)
            shown = [(left, centres.target_position, centres.predicted, "position of the target piece")]
            if centres.witness is None:
                right.set_visible(False)
            else:
                name = f"source position that {centres.witness.label} looks at most"
                at = centres.at_words
                shown.append((right, centres.witness.most_looked_at[at], centres.predicted[at], name))
            for axes, across, up, name in shown:
                axes.hist2d(
                    across,
                    up,
                    bins=(np.append(edges, longest + 1) - 0.5, edges),
                    cmap=SHADES,
                    norm="log",
                    rasterized=True,
                )
                axes.plot([1, longest], [1, longest], linestyle=":", color="#0072B2", linewidth=1)
                axes.set_xlabel(name)
            left.set_ylabel("predicted centre")
            left.set_title(label, fontsize=9, loc="left")
        write_figure(figure, path)

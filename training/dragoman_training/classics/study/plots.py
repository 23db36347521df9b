"""Figures, the same bytes for the same numbers: BLEU by length, heat maps, windows, training curves.

Shapes: U target pieces, T source pieces.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from dragoman_training.classics.figures import COLOURS, SHADES, drawn
from dragoman_training.classics.study.examination import Centres, Example, Findings
from dragoman_training.classics.study.inputs import Bucket, StudySet
from dragoman_training.classics.study.page import FigureLinks

MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")
LINES = ("-", "--", "-.", ":")
CELL_INCHES = 0.2
LABEL_INCHES = 0.95
MAX_COLUMNS = 3


def draw_figures(
    findings: Sequence[Findings], test_set: StudySet, buckets: Sequence[Bucket], page: Path
) -> FigureLinks:
    """All figures of a page, in the folder `figures` beside it, as PAGE-NAME.svg and .png."""

    def link(name: str) -> str:
        return f"figures/{page.stem}-{name}"

    def place(name: str) -> Path:
        return page.parent / link(name)

    plot_lengths(findings, buckets, place("lengths.svg"))
    plot_training(findings, place("training.svg"))
    attentive = [finding for finding in findings if finding.examples]
    heat_maps = [f"sentence-{number + 1}.png" for number in test_set.examples if attentive]
    for rank, name in enumerate(heat_maps):
        plot_heat_maps([(finding.label, finding.examples[rank]) for finding in attentive], place(name))
    predicted = [(finding.label, finding.centres) for finding in findings if finding.centres is not None]
    if predicted:
        plot_centres(predicted, place("local-p.png"))
    return FigureLinks(
        lengths=link("lengths.svg"),
        training=link("training.svg"),
        heat_maps=tuple(map(link, heat_maps)),
        centres=link("local-p.png") if predicted else None,
    )


def plot_lengths(findings: Sequence[Findings], buckets: Sequence[Bucket], path: Path) -> None:
    """BLEU of each bucket, one line per model; joined sentences stand behind a dotted line."""
    with drawn(path, (7.5, 4.2)) as figure:
        axes = figure.add_subplot()
        places = list(range(len(buckets)))
        for number, finding in enumerate(findings):
            bleu = [finding.cased.bleu(bucket.numbers) for bucket in buckets]
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


def _line(axes: Axes, across: Sequence[float], up: Sequence[float], number: int, label: str | None) -> None:
    """The line of the model with that number: no two alike in colour, marker and dashes together.

    One without a label is not in the legend.
    """
    marker, line = MARKERS[number % len(MARKERS)], LINES[(number + number // len(MARKERS)) % len(LINES)]
    axes.plot(across, up, color=COLOURS[number % len(COLOURS)], marker=marker, linestyle=line, label=label)


def plot_training(findings: Sequence[Findings], path: Path) -> None:
    """BLEU and perplexity of every validation, by minutes and by steps."""
    with drawn(path, (8.5, 6.0)) as figure:
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
    with drawn(path, size) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, (label, example) in zip(panels, labelled, strict=False):
            _heat_map(axes, label, example)
        for axes in panels[len(labelled) :]:
            axes.set_visible(False)


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
    with drawn(path, (7.5, 3.6 * len(labelled))) as figure:
        panels = figure.subplots(len(labelled), 2, squeeze=False)
        for (left, right), (label, centres) in zip(panels, labelled, strict=True):
            longest = float(max(centres.target_position.max(), centres.source_length.max()))
            edges = np.arange(longest + 1)
            panel = [(left, centres.target_position, centres.predicted, "position of the target piece")]
            if centres.witness is None:
                right.set_visible(False)
            else:
                name = f"source position that {centres.witness} looks at most"
                panel.append((right, *centres.at_words(centres.predicted), name))
            bins = np.append(edges, longest + 1) - 0.5, edges
            for axes, across, up, name in panel:
                axes.hist2d(across, up, bins=bins, cmap=SHADES, norm="log", rasterized=True)
                axes.plot([1, longest], [1, longest], linestyle=":", color="#0072B2", linewidth=1)
                axes.set_xlabel(name)
            left.set_ylabel("predicted centre")
            left.set_title(label, fontsize=9, loc="left")

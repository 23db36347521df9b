"""The page of a study, in Markdown with its pictures. Every number comes from the findings.

The same findings give the same bytes. Shapes: U target pieces, T source pieces.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from dragoman_training.classics.figures import COLOURS, SHADES, drawn
from dragoman_training.classics.study import Bucket, Centres, Example, Findings, StudySet
from dragoman_training.markdown import code, table
from dragoman_training.run.validation import show_perplexity

MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*")
LINES = ("-", "--", "-.", ":")
CELL_INCHES = 0.2
LABEL_INCHES = 0.95
MAX_COLUMNS = 3
SETTING = """\
Translated by each model in PyTorch. BLEU is sacreBLEU's; joined sentences are consecutive ones with commas \
between them."""
PICTURES = """\
In the pictures rows are target pieces, columns source pieces, black is a weight of 1; a cross is where \
local-p put the middle of its window."""
CENTRES = """\
The middle of its window (Luong et al. 2015, equation 9), for every target piece but ends. Darker is more \
pieces, on a logarithmic scale. The dotted line is where both positions are the same, as local-m would take \
them."""


def write_page(
    path: Path, findings: Sequence[Findings], test_set: StudySet, buckets: Sequence[Bucket]
) -> None:
    """The page at `path`, and its figures in the folder `figures` beside it, as PAGE-NAME.svg and .png."""

    def place(name: str) -> Path:
        return path.parent / "figures" / f"{path.stem}-{name}"

    def link(what: str, name: str) -> str:
        return f"![{what}](figures/{place(name).name})"

    scores = {one.label: [one.bleu(test_set, bucket.numbers) for bucket in buckets] for one in findings}
    plot_lengths(scores, buckets, place("lengths.svg"))
    sections = [
        "# What attention does",
        f"{len(test_set.own):,} sentences, {findings[0].recipe.data.direction}. {SETTING}",
        link("BLEU by words of the source, a line a model", "lengths.svg"),
        _scores(findings, test_set, buckets, scores),
        "## Where they look",
    ]
    attentive = [finding for finding in findings if finding.sharpness is not None]
    if attentive:
        rows = [[code(one.label), *(f"{n:.2f}" for n in one.sharpness)] for one in attentive if one.sharpness]
        header = ["model", "largest weight", "entropy in bits", "on the sentence's end", "all weights"]
        sections += [
            "Means over all target pieces of the test set, along each model's own translations.",
            *(f"{code(finding.label)}: {finding.head.reason}." for finding in attentive if finding.head),
            table(header, rows),
            PICTURES,
        ]
    for rank, number in enumerate(test_set.examples):
        said = (f"- {code(finding.label)}: {code(finding.translations[number])}" for finding in findings)
        sections += [
            f"### Sentence {number + 1}",
            f"Source: {code(test_set.sources[number])}  \nReference: {code(test_set.references[number])}",
            "\n".join(said),
        ]
        if attentive:
            name = f"sentence-{number + 1}.png"
            plot_heat_maps([(finding.label, finding.examples[rank]) for finding in attentive], place(name))
            sections.append(link(f"Attention of each model in sentence {number + 1}", name))
    predicted = [(finding.label, finding.centres) for finding in findings if finding.centres is not None]
    if predicted:
        plot_centres(predicted, place("local-p.png"))
        centres = link("Predicted centre by target position", "local-p.png")
        sections += ["## What local-p predicts", CENTRES, centres]
    plot_training(findings, place("training.svg"))
    curves = link("Validation BLEU and perplexity by minutes and by steps", "training.svg")
    sections += ["## Training curves", curves, _training(findings)]
    path.write_text("\n\n".join(sections) + "\n", encoding="utf-8")


def _scores(
    findings: Sequence[Findings],
    test_set: StudySet,
    buckets: Sequence[Bucket],
    scores: dict[str, list[float]],
) -> str:
    header = ["model", "family", "parameters", "BLEU", *(f"{bucket.label} words" for bucket in buckets)]
    sets = [test_set.own, *(bucket.numbers for bucket in buckets)]
    rows = [["*sentences*", "", "", *(f"*{len(own)}*" for own in sets)]]
    for finding in findings:
        cells = [finding.bleu(test_set, test_set.own), *scores[finding.label]]
        family, size = finding.recipe.model.family, f"{finding.num_parameters:,}"
        rows.append([code(finding.label), family, size, *(f"{bleu:.1f}" for bleu in cells)])
    return table(header, rows, words=2)


def _training(findings: Sequence[Findings]) -> str:
    rows = []
    for finding in findings:
        progress, validations = finding.progress, finding.progress["validations"]
        best = max(validations, key=lambda validation: validation["bleu"], default=None)
        quality = [f"{best['bleu']:.1f}", show_perplexity(best["perplexity"])] if best else ["none", "none"]
        minutes = f"{progress['seconds'] / 60:.0f}"
        rows.append([code(finding.label), f"{len(validations)}", f"{progress['step']:,}", minutes, *quality])
    is_same = len({finding.target_vocabulary for finding in findings}) == 1
    comparable = "" if is_same else "\n\nPerplexities of different vocabularies are not comparable."
    header = ["model", "validations", "steps", "minutes", "best BLEU", "its perplexity"]
    return table(header, rows) + comparable


def plot_lengths(scores: dict[str, list[float]], buckets: Sequence[Bucket], path: Path) -> None:
    """BLEU of each bucket, one line per model; joined sentences stand behind a dotted line."""
    with drawn(path, (7.5, 4.2)) as figure:
        axes = figure.add_subplot()
        places = list(range(len(buckets)))
        for number, (label, bleu) in enumerate(scores.items()):
            _line(axes, places, bleu, number, label)
        labels = [bucket.label.replace(", ", "\n") for bucket in buckets]
        counts = [f"({len(bucket.numbers)})" for bucket in buckets]
        axes.set_xticks(places, [f"{label}\n{count}" for label, count in zip(labels, counts, strict=True)])
        if buckets[-1].label.endswith("joined"):
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
    width, height = widest * CELL_INCHES + LABEL_INCHES, tallest * CELL_INCHES + LABEL_INCHES + 0.45
    size = columns * width, rows * height
    with drawn(path, size) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, (label, example) in zip(panels, labelled, strict=False):
            _heat_map(axes, label, example)
        for axes in panels[len(labelled) :]:
            axes.set_visible(False)


def _heat_map(axes: Axes, label: str, example: Example) -> None:
    attention = example.attention
    axes.grid(visible=False)
    axes.imshow(attention.weights_UT, cmap=SHADES, vmin=0.0, vmax=1.0, interpolation="nearest")
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
    """Local-p's predicted centres against where the target stands, a panel a model."""
    with drawn(path, (4.0 * len(labelled), 3.6)) as figure:
        panels = figure.subplots(1, len(labelled), squeeze=False)[0]
        for axes, (label, centres) in zip(panels, labelled, strict=True):
            longest = float(max(centres.target_position.max(), centres.source_length.max()))
            edges = np.arange(longest + 1)
            bins = np.append(edges, longest + 1) - 0.5, edges
            place, predicted = centres.target_position, centres.predicted
            axes.hist2d(place, predicted, bins=bins, cmap=SHADES, norm="log", rasterized=True)
            axes.plot([1, longest], [1, longest], linestyle=":", color="#0072B2", linewidth=1)
            axes.set_xlabel("position of the target piece")
            axes.set_ylabel("predicted centre")
            axes.set_title(label, fontsize=9, loc="left")

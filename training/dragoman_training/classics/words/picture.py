"""Words as points of a plane: the words asked for and their neighbours, a panel for each space.

Needs matplotlib, which comes with the extra `plot`.

Shapes: W words shown, D width.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dragoman_training.classics.study.style import COLOURS, drawing, write_figure
from dragoman_training.classics.words.answer import Answer

PANEL_INCHES = 4.2


def draw_words(answers: Sequence[Answer], path: Path) -> None:
    """Writes SVG or PNG, by the name. The same answers give the same bytes."""
    with drawing():
        figure = Figure(figsize=(PANEL_INCHES * len(answers), PANEL_INCHES), layout="constrained")
        for axes, answer in zip(figure.subplots(1, len(answers), squeeze=False)[0], answers, strict=True):
            _panel(axes, answer)
        write_figure(figure, path)


def _panel(axes: Axes, answer: Answer) -> None:
    rows = [*answer.plus, *answer.minus, *(one.row for one in answer.neighbours)]
    unit_WD = answer.space.unit(rows)
    centred_WD = unit_WD - unit_WD.mean(axis=0)
    # The two directions in which the words shown differ most.
    directions_DD = np.linalg.svd(centred_WD, full_matrices=False)[2]
    place_W2 = centred_WD @ directions_DD[:2].T
    num_asked = len(answer.plus) + len(answer.minus)
    for number, (row, (across, up)) in enumerate(zip(rows, place_W2.tolist(), strict=True)):
        colour = COLOURS[0] if number < num_asked else COLOURS[7]
        axes.plot(across, up, marker="o", color=colour)
        axes.annotate(
            answer.space.words[row],
            (across, up),
            (4, 4),
            textcoords="offset points",
            color=colour,
            parse_math=False,
        )
    if (len(answer.plus), len(answer.minus)) == (2, 1) and answer.neighbours:
        # As one is to the word taken away, so is the answer to the other.
        for start, end in ((2, 1), (0, 3)):
            arrow = {"arrowstyle": "->", "color": COLOURS[1]}
            axes.annotate("", place_W2[end].tolist(), place_W2[start].tolist(), arrowprops=arrow)
    axes.set_title(answer.space.title, parse_math=False)
    axes.margins(0.2)
    axes.set_xticks([])
    axes.set_yticks([])

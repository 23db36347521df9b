"""Draws the word alignments of a hypothesis to a file.

Needs matplotlib, which the bare install does not bring: it is imported when a picture is asked for.
"""

import warnings
from pathlib import Path

import click

from dragoman.cli.failure import not_installed
from dragoman.cli.pictures.alignment_picture import word_spans
from dragoman.translation import Hypothesis

FORMATS = (".png", ".svg", ".pdf")
MAX_WORDS = 300
"""Words a side that a picture may have; more could not be read, nor held in memory."""

_CELL_INCHES = 0.22
_MARGIN_INCHES = 1.3


def check_heat_map(path: Path) -> None:
    """Raises ClickException where a picture can't be written: before anything is translated."""
    if path.suffix.lower() not in FORMATS:
        raise click.ClickException(f"--heatmap is {path}, but its name must end in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise click.ClickException(f"--heatmap is {path}, but there is no folder {path.parent}")
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise not_installed("`--heatmap`", error.name or "matplotlib", "plot") from error


def write_heat_map(source: str, hypothesis: Hypothesis, path: Path) -> bool:
    """Writes a picture with a column a source word and a row a target word, black where all attention falls.

    The same hypothesis gives the same bytes. Returns whether the font has every character.
    Raises ValueError for more than `MAX_WORDS` words, OSError.
    """
    import matplotlib
    from matplotlib.figure import Figure

    links = hypothesis.alignments
    across = word_spans(source, {(link.source_start, link.source_end) for link in links})
    down = word_spans(hypothesis.text, {(link.target_start, link.target_end) for link in links})
    if not across or not down:
        raise ValueError(f"{path} can't be drawn: the text or its translation has no word")
    if max(len(across), len(down)) > MAX_WORDS:
        raise ValueError(
            f"{path} would have {len(across)} by {len(down)} words, but a picture holds {MAX_WORDS} a side: "
            "give fewer sentences at once"
        )
    weights = [[0.0] * len(across) for _ in down]
    for link in links:
        row = down.index((link.target_start, link.target_end))
        weights[row][across.index((link.source_start, link.source_end))] = link.weight
    size = (len(across) * _CELL_INCHES + _MARGIN_INCHES, len(down) * _CELL_INCHES + _MARGIN_INCHES)
    with matplotlib.rc_context(), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "dragoman", "font.size": 9.0})
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(weights, cmap="Greys", vmin=0.0, vmax=1.0, interpolation="nearest", aspect="equal")
        words = [source[start:end] for start, end in across]
        axes.set_xticks(range(len(words)), words, rotation=90, parse_math=False)
        words = [hypothesis.text[start:end] for start, end in down]
        axes.set_yticks(range(len(words)), words, parse_math=False)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        figure.savefig(path, dpi=110, metadata=_no_date(path))
    return not any("missing from" in str(warning.message) for warning in caught)


def _no_date(path: Path) -> dict[str, None]:
    """The metadata that each format leaves out, so that the file is the same every day."""
    match path.suffix.lower():
        case ".png":
            return {"Software": None}
        case ".svg":
            return {"Date": None, "Creator": None}
        case _:
            return {"CreationDate": None, "Creator": None, "Producer": None}

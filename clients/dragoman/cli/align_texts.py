"""`dragoman align-texts`: which words of a translation come from which words of a text, as a picture.

Source words stand across, as a staircase, target words down; the darker a cell, the more of the
target word's attention falls on the source word. Without room for all columns, one line a target word takes
its place.

              Guten
              │  Morgen
              │  │  .
    Good      ██ ░░
    morning   ░░ ██
    .               ██
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from dragoman.cli.group import TextCommand
from dragoman.cli.options import open_client, server_option, timeout_option
from dragoman.translation import Alignment

Span = tuple[int, int]

_RUN = re.compile(r"\S+")


def words(text: str) -> Iterator[Span]:
    """Ranges of the words, and of the punctuation before and after each, in order."""
    for run in _RUN.finditer(text):
        start, end = run.span()
        # Letters, numbers, and marks on them.
        of_words = [place for place in range(start, end) if unicodedata.category(text[place])[0] in "LNM"]
        first, last = (of_words[0], of_words[-1] + 1) if of_words else (end, end)
        yield from (span for span in ((start, first), (first, last), (last, end)) if span[0] < span[1])


ATTENTION = "of a word's attention"
BELIEF = "believed in"
"""What a weight is a share of."""

_LEVELS = (0.75, 0.5, 0.25, 0.0)
_CELLS = ("██", "▓▓", "▒▒", "░░")
_ASCII_CELLS = ("##", "++", "--", "..")
_STYLES = ("bold green", "green", "yellow", "dim")
_COLUMN = 3


Links = Sequence[Alignment]


def alignment_picture(
    source: str, translation: str, links: Links, *, width: int, ascii_only: bool, weights: str = ATTENTION
) -> Text:
    """The picture, no wider than `width` cells where the words themselves allow."""
    across = word_spans(source, {(link.source_start, link.source_end) for link in links})
    down = word_spans(translation, {(link.target_start, link.target_end) for link in links})
    margin = max((cell_len(translation[start:end]) for start, end in down), default=0) + 2
    widths = (max(cell_len(source[start:end]), 2) for start, end in across)
    ends = [margin + column * _COLUMN + wide for column, wide in enumerate(widths)]
    if max(ends, default=0) > width:
        return _list(source, translation, links)
    picture = Text(no_wrap=True)
    stem = "|" if ascii_only else "│"
    for column, (start, end) in enumerate(across):
        picture.append(" " * margin + f"{stem:<{_COLUMN}}" * column, style="dim")
        picture.append(source[start:end] + "\n", style="cyan")
    weight_of = {_link_spans(link): link.weight for link in links}
    cells = _ASCII_CELLS if ascii_only else _CELLS
    for target in down:
        word = translation[target[0] : target[1]]
        picture.append(word, style="bold")
        picture.append(" " * (margin - cell_len(word)))
        for origin in across:
            level = _level(weight_of.get((origin, target)))
            if level is None:
                picture.append(" " * _COLUMN)
            else:
                picture.append(f"{cells[level]:<{_COLUMN}}", style=_STYLES[level])
        picture.rstrip()
        picture.append("\n")
    picture.append(_legend(cells, weights), style="dim")
    return picture


def word_spans(text: str, linked: Iterable[Span]) -> list[Span]:
    """The linked words of a text and, between them, what stands there without a link."""
    spans: list[Span] = []
    end = 0
    for span in [*sorted(linked), (len(text), len(text))]:
        spans += [(end + first, end + last) for first, last in words(text[end : span[0]])]
        if span[0] < span[1]:
            spans.append(span)
        end = span[1]
    return spans


def _list(source: str, translation: str, links: Links) -> Text:
    lines = Text()
    for link in sorted(links, key=lambda link: (link.target_start, -link.weight)):
        lines.append(source[link.source_start : link.source_end], style="cyan")
        lines.append(" -> ")
        lines.append(translation[link.target_start : link.target_end], style="bold")
        lines.append(f" ({link.weight:.2f})\n", style="dim")
    lines.rstrip()
    return lines


def _link_spans(link: Alignment) -> tuple[Span, Span]:
    return (link.source_start, link.source_end), (link.target_start, link.target_end)


def _level(weight: float | None) -> int | None:
    if weight is None:
        return None
    return next((level for level, least in enumerate(_LEVELS) if weight >= least), None)


def _legend(cells: tuple[str, ...], weights: str) -> str:
    shades = [f"{cell} {least:.0%}+" for cell, least in zip(cells[:-1], _LEVELS, strict=False)]
    return "  ".join([*shades, f"{cells[-1]} less", weights])


@click.command(cls=TextCommand)
@server_option
@click.option("--from", "source", metavar="LANG", help='Language of the text, such as "de".')
@click.option("--to", "target", metavar="LANG", help="Language of the translation.")
@click.option("--model", metavar="NAME[/VERSION]", help="Model to use. Default: the server chooses.")
@click.option(
    "--server-aligner",
    metavar="NAME",
    help="A saved aligner of the server, which links the words in place of a model; no language is needed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with every link.")
@timeout_option("Most time that it may take.")
@click.argument("text", metavar="TEXT")
@click.argument("translation", metavar="TRANSLATION")
def align_texts(
    *,
    server: str,
    source: str | None,
    target: str | None,
    model: str | None,
    server_aligner: str | None,
    as_json: bool,
    timeout_seconds: float,
    text: str,
    translation: str,
) -> None:
    """Draw which words of a TRANSLATION, whoever made it, come from which words of a TEXT.

    A model of the server is made to say the translation, and what it looks at meanwhile are the links. An
    aligner that the server has saved, by `dragoman align train`, makes fewer errors.

    \b
      dragoman align-texts --from de --to en "Das ist mein Haus." "This is my house."
      dragoman align-texts --server-aligner de-en "Das ist mein Haus." "This is my house."
    """
    if server_aligner is None and (source is None or target is None):
        of_model = "--from and --to for a model of the server"
        raise click.UsageError(f"give {of_model}, or --server-aligner for an aligner of it")
    with open_client(server, timeout_seconds=timeout_seconds) as client:
        (aligned,) = client.align(
            [(text, translation)], source=source, target=target, model=model, aligner=server_aligner
        )
    if as_json:
        click.echo(json.dumps({"source": text, "target": translation, **asdict(aligned)}, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    picture = alignment_picture(
        text,
        translation,
        aligned.alignments,
        width=console.width,
        ascii_only=console.options.ascii_only,
        weights=ATTENTION if server_aligner is None else BELIEF,
    )
    console.print(picture)

"""`dragoman translate`: texts from the command line or from standard input."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from itertools import chain
from typing import BinaryIO

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dragoman.cli.align_texts import alignment_picture
from dragoman.cli.group import TextCommand
from dragoman.cli.options import open_client, server_option, settings_options, several, timeout_option
from dragoman.client import Client
from dragoman.errors import DragomanError
from dragoman.jobs.units import Failure, Units, failure_of
from dragoman.portions import AUTO, language_of_all
from dragoman.settings import ProtectedText, Settings
from dragoman.translation import StreamResult, Translation, WarningKind
from dragoman_files.content import STANDARD_INPUT, check_is_text
from dragoman_files.format import Unit
from dragoman_files.lines import TextLines, paragraphs, single_lines

_INDENT = 5
"""Columns before a picture: those of the rank above it."""
_SCORE_COLUMNS = 15
"""Columns before a translation: those of its rank and score."""
_QUOTED_CHARACTERS = 60
_WARNINGS = {
    WarningKind.UNKNOWN_TOKENS: "can't be read by the model, and stays as it is",
    WarningKind.SPAN_PUT_BACK: "was kept by translating around it: word order may be wrong",
    WarningKind.SPAN_MISSING: "had to be kept, and is missing",
    WarningKind.NUMBER_PUT_BACK: "was changed by the model, and put back",
    WarningKind.NUMBER_MISSING: "is a number that the translation lacks",
    WarningKind.REPETITION: "has a translation that repeats itself",
    WarningKind.OUTPUT_LIMIT: "has a translation that was cut at its limit",
    WarningKind.LENGTH: "has a translation that is far longer",
    WarningKind.UNTRANSLATED: "was left as it is",
    WarningKind.FOREIGN_SCRIPT: "is not in the source language's script",
    WarningKind.OMISSION: "has a translation that is likely to lack a part",
    WarningKind.BRACKETS: "has brackets or quotes that do not match those of its translation",
    WarningKind.NAME_MISSING: "is a name that the translation lacks",
    WarningKind.NUMBER_AMBIGUOUS: "is a number that may be a thousand times as much",
    WarningKind.FORBIDDEN_TERM: "has a translation with a forbidden word",
    WarningKind.UNKNOWN: "has a warning that this client does not know",
}
"""What a reader should check, behind the part of the text that it is about."""


def _read_ranges(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> list[tuple[int, int]]:
    ranges = []
    for value in values:
        start, _, end = value.partition(":")
        if not (start.isdecimal() and end.isdecimal()):
            raise click.BadParameter(f"{value!r} is no START:END, such as 5:9")
        ranges.append((int(start), int(end)))
    return ranges


@click.command(cls=TextCommand)
@server_option
@settings_options
@click.option(
    "--n-best",
    "num_hypotheses",
    type=int,
    metavar="N",
    help="Show the N best translations of each, with scores; at most the beam.",
)
@several(
    "--keep-range",
    "protected_ranges",
    metavar="START:END",
    callback=_read_ranges,
    help="Code points of the one TEXT that stay as they are, from the first, counted from 0, to one past the "
    "last. Repeatable.",
)
@click.option("--prefix", "target_prefix", metavar="TEXT", help="What the translation must begin with.")
@click.option("--alignments", is_flag=True, help="Draw which words come from which, the darker the surer.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON object a line for each text: every hypothesis, score and count.",
)
@click.option(
    "--join-lines",
    is_flag=True,
    help="Of standard input, take the lines up to a blank one for one text, a paragraph.",
)
@timeout_option("Most time that all TEXT together may take; standard input has no limit.")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
def translate(
    *,
    server: str,
    settings: Settings,
    protected_ranges: list[tuple[int, int]],
    as_json: bool,
    join_lines: bool,
    timeout_seconds: float,
    texts: tuple[str, ...],
) -> None:
    """Translate texts, or the lines of standard input.

    Prints a translation for each TEXT. Without TEXT, or for "-", reads standard input, a text a line, and
    prints each translation as it is ready, in order. Before a space or a digit a dash is of a TEXT; what
    follows `--` is text whatever it looks like. What a reader should check in a translation, such as a
    number that is missing, is told on standard error, a line each; with --json it is in the objects.

    With --from auto each TEXT's language is detected; that of standard input by its first line with a letter.

    \b
      dragoman translate --from de --to en "Guten Morgen. Wie geht es dir?"
      dragoman translate --from de --to en --n-best 3 --alignments "Guten Morgen."
      dragoman translate --from de --to en --keep-range 5:9 "Herr Grün mag Grün."
      dragoman translate --from de --to en < letter.de > letter.en

    Exit code 3: some lines of standard input failed. Each left an empty line, or with --json an object with
    its "source", a "text" of null, the "status" and a "message".
    """
    printer = _Printer(settings, as_json=as_json)
    if protected_ranges:
        if len(texts) != 1 or texts == ("-",):
            raise click.UsageError(f"--keep-range is of one TEXT, and there are {len(texts)}")
        texts = (ProtectedText(texts[0], protected_ranges),)
    if not texts or texts == ("-",):
        with open_client(server) as client:
            if not _translate_lines(client, settings, printer, join_lines=join_lines):
                raise click.exceptions.Exit(3)
        return
    if join_lines:
        raise click.UsageError("--join-lines is of standard input; a TEXT is one text whatever it holds")
    with open_client(server, timeout_seconds=timeout_seconds) as client:
        translations = client.translate(texts, **asdict(settings))
    for number, (text, translation) in enumerate(zip(texts, translations, strict=True), start=1):
        printer.show(number, text, translation)


def _translate_lines(client: Client, settings: Settings, printer: "_Printer", *, join_lines: bool) -> bool:
    """Translates standard input as it comes. Returns whether every line has a translation."""
    if sys.stdin is None:
        raise click.UsageError("standard input is closed: give texts as arguments, or lines to read")
    # A stream fails at once where no server listens; this call waits a moment for one that starts.
    client.models()
    if sys.stdin.isatty():
        click.echo("Type a text a line; Ctrl-D ends.", err=True)
    complete = True
    lines = _input_units(join_lines=join_lines)
    if settings.source == AUTO:
        lines, source = _detected(client, lines, settings.target)
        settings = replace(settings, source=source)
    for result in _results(client, settings, lines):
        line = result.id
        if result.translation is not None and line.error is None:
            printer.show(line.number, line.text, result.translation)
        else:
            complete = False
            printer.show_failure(line.number, failure_of(line, result.error))
    return complete


def _detected(client: Client, lines: Iterator[Unit], target: str) -> tuple[Iterator[Unit], str]:
    """The lines, and the language of the first with a letter."""
    read = []
    for line in lines:
        read.append(line)
        if any(map(str.isalpha, line.text)):
            break
    (found,) = client.detect([read[-1].text if read else ""], target=target)
    return chain(read, lines), language_of_all(found)


def _results(client: Client, settings: Settings, read: Iterator[Unit]) -> Iterator[StreamResult[Unit]]:
    """The results of all lines, in order, over as many streams as the pauses between lines make."""
    units = Units(read)
    share = units.share()
    lines = share.stream()
    while True:
        texts = ((line, line.text) for line in lines)
        stream = client.translate_stream(texts, **asdict(settings), in_order=True)
        try:
            with closing(stream):
                for result in stream:
                    share.done(result.id)
                    yield result
            break
        except DragomanError as error:
            # The server's end of a stream that was idle.
            if error.status != "ABORTED":
                raise
        # The next stream waits for a line, so that it is not idle itself.
        waiting = share.stream()
        first = next(waiting, None)
        if first is None:
            break
        lines = chain([first], waiting)
    units.check_read()


def _input_units(*, join_lines: bool) -> Iterator[Unit]:
    """The lines of standard input, or its paragraphs."""
    position = 0

    def lines() -> Iterator[bytes]:
        nonlocal position
        for number, raw in enumerate(_standard_input(), start=1):
            if number == 1:
                check_is_text(raw, STANDARD_INPUT)
            position += len(raw)
            yield raw

    if join_lines:
        return paragraphs(lines(), lambda: position)
    return single_lines(lines(), lambda: position, TextLines())


class _Printer:
    """Shows translations the way the options ask."""

    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        self._as_json = as_json
        self._alignments = settings.alignments
        self._in_full = settings.alignments or settings.num_hypotheses is not None
        self._console = Console(highlight=False, soft_wrap=True)

    def show(self, number: int, text: str, translation: Translation) -> None:
        """Prints one text's translation; what was cut off it is reported on standard error."""
        if translation.truncated:
            click.echo(f"text {number}: a sentence was too long for the model, its end was dropped", err=True)
        if translation.limited:
            click.echo(f"text {number}: the translation ended at the limit of output tokens", err=True)
        if self._as_json:
            click.echo(json.dumps({"source": text, **asdict(translation)}, ensure_ascii=False))
            return
        for warning in translation.warnings:
            part = text[warning.start : warning.end]
            if len(part) > _QUOTED_CHARACTERS:
                part = part[: _QUOTED_CHARACTERS - 1] + "…"
            click.echo(f"text {number}: {part!r} {_WARNINGS[warning.kind]}", err=True)
        if self._in_full:
            self._show_in_full(text, translation)
        else:
            click.echo(translation.text)

    def show_failure(self, number: int, failure: Failure) -> None:
        """Keeps the place of a line that failed, and says on standard error why."""
        click.echo(f"line {number}: {failure.message}", err=True)
        if self._as_json:
            failed = {"source": failure.text, "text": None, "status": failure.status}
            click.echo(json.dumps({**failed, "message": failure.message}, ensure_ascii=False))
        else:
            click.echo()

    def _show_in_full(self, text: str, translation: Translation) -> None:
        console = self._console
        console.print(Text(text, style="cyan"))
        if not translation.hypotheses and translation.text:
            console.print(Text.assemble(" " * _SCORE_COLUMNS, (translation.text, "bold")))
        for rank, hypothesis in enumerate(translation.hypotheses, start=1):
            score = (f"{rank:>3}  ", ""), (f"{hypothesis.score:8.4f}  ", "dim")
            console.print(Text.assemble(*score, (hypothesis.text, "bold" if rank == 1 else "")))
            if self._alignments:
                width, ascii_only = console.width - _INDENT, console.options.ascii_only
                shown, links = hypothesis.text, hypothesis.alignments
                picture = alignment_picture(text, shown, links, width=width, ascii_only=ascii_only)
                console.print(Padding(picture, (0, 0, 1, _INDENT), expand=False))


def _standard_input() -> BinaryIO:
    """The bytes of `sys.stdin`, through a buffer of its own where it is a file.

    A thread may still wait in a read when Ctrl-C ends the process: Python aborts if it holds Python's buffer.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:
        return sys.stdin.buffer

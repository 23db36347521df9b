"""`dragoman translate-file`: a whole file, text by text, resumable."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from dragoman.cli.failure import message_of
from dragoman.cli.options import Seconds, open_client, server_option, settings_options, several
from dragoman.connection.channel import PING_SECONDS
from dragoman.errors import DragomanError
from dragoman.jobs import FileJob
from dragoman.settings import Settings
from dragoman_files.format import FormatName, FormatOptions
from dragoman_files.opening import format_names


class _File(click.Path):
    """A file by its name; `-`, which is standard input or output elsewhere, is none."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "-":
            what = "`dragoman translate` reads standard input and writes to output"
            self.fail(f"- is no file; {what}.", param, ctx)
        return super().convert(value, param, ctx)


@click.command(name="translate-file", context_settings={"show_default": True})
@server_option
@settings_options
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["lines", *format_names()]),
    callback=lambda context, parameter, name: "text" if name == "lines" else name,
    help="What INPUT and OUTPUT hold, whatever the files are called; `lines` is `text`. Default: as their "
    "names say, below.",
)
@several(
    "--key",
    "keys",
    metavar="NAME",
    help='Of JSON lines, the key of the text. Default: "text". Of JSON and YAML, a key whose strings are '
    "translated, with all that is below it; may be given several times. Default: all strings.",
)
@several(
    "--column",
    "columns",
    metavar="NAME",
    help="Of a table, a column to translate: its name in the first row, which then stays, or its number from "
    "1. May be given several times.",
)
@click.option(
    "--encoding",
    metavar="NAME",
    help="What INPUT is in and OUTPUT will be in, such as utf-16 or windows-1252. Default: UTF-8, or what "
    "the file says itself.",
)
@click.option(
    "--join-lines/--no-join-lines",
    default=None,
    help="Take line breaks within a text for spaces; a text file is then translated by paragraphs. HTML and "
    "Markdown always are. Default: of subtitles.",
)
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT where it exists.")
@click.option(
    "--restart", is_flag=True, help="Begin anew; drops what an earlier run of the same OUTPUT has done."
)
@click.option(
    "--streams",
    type=click.IntRange(min=1, max=256),
    default=1,
    metavar="N",
    help="Streams that translate at once, spread over all servers of --server: one for each server, or more.",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=256,
    metavar="LINES",
    help="Lines sent and not yet answered, at most, of each stream.",
)
@click.option(
    "--patience",
    "patience_seconds",
    type=Seconds(min=0),
    default=300.0,
    metavar="SECONDS",
    help="How long to try again where the server is away or overloaded, before giving up.",
)
@click.option(
    "--ping",
    "ping_seconds",
    type=Seconds(min=0),
    default=PING_SECONDS,
    metavar="SECONDS",
    help="How long a server may be silent before it is asked whether it is there; it counts as gone where it "
    "does not answer. 0: never.",
)
@click.argument("input_path", metavar="INPUT", type=_File(exists=True, dir_okay=False, path_type=Path))
@click.argument("output_path", metavar="OUTPUT", type=_File(dir_okay=False, path_type=Path))
def translate_file(
    *,
    server: str,
    settings: Settings,
    format_name: FormatName | None,
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    encoding: str | None,
    join_lines: bool | None,
    overwrite: bool,
    restart: bool,
    streams: int,
    window: int,
    patience_seconds: float,
    ping_seconds: float,
    input_path: Path,
    output_path: Path,
) -> None:
    """Translate INPUT into OUTPUT, text by text.

    The names say what the files hold, in any case: JSON lines (.jsonl, .ndjson), JSON (.json), tables (.csv,
    .tsv), subtitles (.srt, .vtt), HTML (.html), Markdown (.md), catalogues of messages (.po, .xliff, Qt's
    .ts, .resx, strings.xml, .strings, .arb, .yaml), documents (.docx, .odt), slides (.pptx, .odp), sheets
    (.xlsx, .ods), books
    (.epub). Text in UTF-8, one a line, ends in .txt, in a language such as .de, or in nothing. `.gz` after
    any that is no zip is read and written compressed. Any other name, and what is not what its name says, is
    refused before anything is written.

    What is no text for people stays as it is: structure, timings, styles, code, entries that are translated.
    JSON lines have a "text" and come back with a "translation". docs/guide/files.md tells it of each format.

    OUTPUT appears when it is complete; until then the work lies beside it, in OUTPUT.partial. A run that was
    stopped, however suddenly, goes on when the same command is called again, with the model that it began
    with. A text that fails is recorded in OUTPUT.errors.jsonl; its line is left empty, in JSON lines with a
    "translation" of null; in all other formats it stays untranslated.

    A line of JSON that has a "translation" already fails and stays as it is, so that no earlier one is lost.

    A translation lacks its end where a sentence was too long and truncated, or where the limit of output
    tokens was reached. Such texts are counted at the end, and in JSON lines have a "translation_truncated" of
    true. Of a calibrated model the average confidence is told at the end, with the texts that have the
    least; JSON lines have a "translation_confidence".

    \b
      dragoman translate-file --from de --to en corpus.de corpus.en
      dragoman translate-file --from de --to en reviews.jsonl.gz reviews.en.jsonl.gz
      dragoman translate-file --from de --to en --column Titel books.csv books.en.csv
      dragoman translate-file --from de --to en film.de.srt film.en.srt
      dragoman translate-file --from en --to de messages.pot de.po
      dragoman translate-file --from de --to en --server a:50051,b:50051 --streams 2 corpus.de corpus.en

    Exit code 3: OUTPUT is complete, and some texts failed.
    """
    options = FormatOptions(keys=keys, columns=columns, encoding=encoding, join_lines=join_lines)
    job = FileJob(
        input_path,
        output_path,
        settings,
        format_name=format_name,
        options=options,
        streams=streams,
        window=window,
        patience_seconds=patience_seconds,
    )
    with (
        open_client(server, ping_seconds=ping_seconds or None) as client,
        _ProgressBar(input_path, job.noun) as bar,
    ):
        try:
            with _sigterm_as_interrupt():
                summary = job.run(client, bar, overwrite=overwrite, restart=restart)
        except KeyboardInterrupt as stop:
            if bar.saved:
                bar.say(f"Interrupted after {bar.saved} {job.noun}. The same command goes on from there.")
            else:
                bar.say(f"Interrupted before the first {job.noun.removesuffix('s')} was done.")
            raise click.exceptions.Exit(143 if isinstance(stop, _Terminated) else 130) from None
        except (DragomanError, OSError):
            if bar.saved:
                bar.say(f"Stopped after {bar.saved} {job.noun}. The same command goes on from there.")
            raise
    if summary.failed:
        message = f"{summary.lines} {job.noun}, of which {summary.failed} failed: see {summary.errors}"
        click.echo(message, err=True)
    else:
        noun = job.noun.removesuffix("s") if summary.lines == 1 else job.noun
        click.echo(f"{summary.lines} {noun}", err=True)
    if summary.truncated:
        message = f"of {summary.truncated} a sentence was too long for the model, and its end was dropped"
        click.echo(message, err=True)
    if summary.limited:
        click.echo(f"of {summary.limited} the translation ended at the limit of output tokens", err=True)
    if summary.confidence is not None:
        doubtful = ", ".join(f"{number} ({confidence:.2f})" for number, confidence in summary.doubtful)
        message = f"confidence {summary.confidence:.2f} on average; least sure of {job.noun} {doubtful}"
        click.echo(message, err=True)
    if summary.failed:
        raise click.exceptions.Exit(3)


class _Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Lets SIGTERM, by which systemd and Kubernetes end a job, end it as Ctrl-C does."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _ProgressBar:
    """Shows on a terminal how far a job is; elsewhere it is silent but for what a person must know."""

    def __init__(self, source: Path, noun: str) -> None:
        self._noun = noun
        self.saved = 0
        """Units that no run does again."""
        self._lines = 0
        self._failed = 0
        self._first = 0
        self._started_at = time.monotonic()
        self._size = source.stat().st_size
        self._task: TaskID | None = None
        console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            refresh_per_second=4,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def say(self, message: str) -> None:
        # The terminal wraps it, and nothing else: a log has lines as long as they are.
        self._progress.console.print(Text(message), soft_wrap=True)

    def on_start(self, *, resumed: int, failed: int) -> None:
        self._lines = self._first = self.saved = resumed
        self._failed = failed
        if resumed:
            self.say(f"Going on after {resumed} {self._noun}.")

    def on_line(self, *, failed: bool, position: int) -> None:
        self._lines += 1
        self._failed += failed
        if self._task is None:
            # From where the job goes on, so that the time left rests on this run's speed alone.
            self._task = self._progress.add_task("", total=self._size, completed=position)
        rate = (self._lines - self._first) / (time.monotonic() - self._started_at)
        failed_too = f"  {self._failed} failed" if self._failed else ""
        description = f"{self._lines} {self._noun}  {rate:.0f}/s{failed_too}"
        self._progress.update(self._task, completed=position, description=description)

    def on_save(self, *, lines: int) -> None:
        self.saved = lines

    def on_wait(self, error: DragomanError, seconds: float) -> None:
        self.say(f"{message_of(error)}\nTrying again in {seconds:g} s; Ctrl-C stops, and nothing is lost.")

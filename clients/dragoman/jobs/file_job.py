"""Translates a file line by line, so that no end of the process, however sudden, loses or doubles a line.

What is on disk while a job runs, beside OUTPUT:

    OUTPUT.partial              the lines so far, not compressed
    OUTPUT.errors.jsonl.partial the record of failed lines so far
    OUTPUT.progress.json        the last checkpoint: lines done, and how long both files were then

A checkpoint is written after both files are safe on disk. A job that goes on cuts both back to the last
checkpoint, skips the lines that it counts, and translates from there.
"""

import json
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from dragoman.client import Client
from dragoman.errors import (
    CallCancelledError,
    DragomanError,
    ModelNotFoundError,
    OverloadedError,
    UnavailableError,
    is_over_transport,
)
from dragoman.jobs.backlog import Backlog
from dragoman.jobs.content import check_is_text, check_is_utf8, check_looks_like_lines
from dragoman.jobs.errors import JobError
from dragoman.jobs.format import FormatName
from dragoman.jobs.journal import Checkpoint, Journal
from dragoman.jobs.lines import Line
from dragoman.jobs.output import SUFFIXES, Output, sibling
from dragoman.jobs.source import Source
from dragoman.jobs.suffixes import input_format, output_format
from dragoman.messages import TEXTS_PER_MESSAGE
from dragoman.settings import Settings
from dragoman.translation import StreamResult

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0


class Observer(Protocol):
    """Is told how a job fares."""

    def on_start(self, *, resumed: int, failed: int) -> None:
        """The job begins, or goes on after so many lines, of which so many failed."""

    def on_line(self, *, failed: bool, position: int) -> None:
        """A line is done; `position` bytes of the input file have been read up to its end."""

    def on_save(self, *, lines: int) -> None:
        """So many lines are safe on disk, whatever happens now."""

    def on_wait(self, error: DragomanError, seconds: float) -> None:
        """The server cannot take work now; the job tries again after some seconds."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a job that is complete did."""

    lines: int
    """Lines of the input, and of the output."""
    failed: int
    """Lines that have no translation."""
    truncated: int
    """Lines with a sentence whose end was dropped, because it was too long for the model."""
    limited: int
    """Lines whose translation ended at the limit of output tokens."""
    errors: Path | None
    """The record of these, where there are any."""


class FileJob:
    """The translation of one file into another."""

    def __init__(
        self,
        source: Path,
        output: Path,
        settings: Settings,
        *,
        format_name: FormatName | None = None,
        window: int = 256,
        patience_seconds: float = 300.0,
        checkpoint_seconds: float = 0.5,
    ) -> None:
        """A name that ends in `.jsonl` or `.ndjson` means JSON lines, `.gz` after it compressed, both in any
        case; one of a format that lines would break is refused; any other means text. `format_name` says what
        both files hold, whatever they are called.

        `window` is the number of lines under way. The job gives up on a server that fails it for
        `patience_seconds`, counted from the first failure after a result. At most the work of
        `checkpoint_seconds` is done twice.
        Raises JobError where both files cannot be meant.
        """
        if source.exists() and not source.is_file():
            raise JobError(
                f"{source} is no plain file, and a job reads its input more than once; save it as one, or "
                "give it to `dragoman translate` on standard input"
            )
        if not output.absolute().parent.is_dir():
            raise JobError(f"there is no folder {output.parent} for {output}")
        if source.resolve() == output.resolve():
            raise JobError(f"{output} is the input itself")
        if source.resolve() in [sibling(output, suffix).resolve() for suffix in SUFFIXES]:
            raise JobError(f"{source} is what the job keeps beside {output}; name one of them otherwise")
        self._format = input_format(source, format_name)
        if self._format.name != output_format(output, format_name).name:
            raise JobError(
                f"{source} and {output} differ in format: by their names one holds JSON lines (`.jsonl`, "
                "`.ndjson`), the other text; `--format` says what both hold"
            )
        self._source = source
        self._output = output
        self._settings = settings
        self._is_format_given = format_name is not None
        self._window = window
        self._patience_seconds = patience_seconds
        self._checkpoint_seconds = checkpoint_seconds

    def run(
        self, client: Client, observer: Observer, *, overwrite: bool = False, restart: bool = False
    ) -> Summary:
        """Begins the job, or goes on with it, until the output stands under its name.

        `overwrite` replaces an output that is there; `restart` drops what an earlier run has done.
        Raises JobError, also where the model that translated the lines so far is gone or the input changes
        meanwhile, OSError for files, and DragomanError where the server refuses the whole job or stays away.
        After any of them, and after KeyboardInterrupt, calling again goes on; a job that has done no line
        leaves nothing behind.
        """
        with Source(self._source, self._format) as source:
            self._check_content(source.head())
            checkpoint = self._run(source, client, observer, overwrite=overwrite, restart=restart)
        errors = sibling(self._output, ".errors.jsonl") if checkpoint.failed else None
        return Summary(
            lines=checkpoint.lines,
            failed=checkpoint.failed,
            truncated=checkpoint.truncated,
            limited=checkpoint.limited,
            errors=errors,
        )

    def _check_content(self, head: bytes) -> None:
        """Raises JobError for what is no text, or hardly lines of the format where nobody said that it is."""
        check_is_text(head, str(self._source))
        if not self._is_format_given:
            check_is_utf8(head, str(self._source))
            if self._format.name == "text":
                check_looks_like_lines(head, str(self._source))

    def _run(
        self, source: Source, client: Client, observer: Observer, *, overwrite: bool, restart: bool
    ) -> Checkpoint:
        job = {
            "input": source.fingerprint,
            "output": self._output.name,
            "format": self._format.name,
            "settings": asdict(self._settings),
        }
        if restart and self._output.exists() and not overwrite:
            # Before what an earlier run has done is dropped.
            raise JobError(_exists(self._output))
        journal = Journal(sibling(self._output, ".progress.json"), job)
        with Output(self._output) as output:
            if restart:
                journal.remove()
            checkpoint = journal.load()
            if checkpoint is None or not checkpoint.complete:
                if self._output.exists() and not overwrite:
                    if checkpoint is None:
                        output.discard()
                    raise JobError(_exists(self._output))
                checkpoint = checkpoint or Checkpoint()
                try:
                    checkpoint = self._translate(source, client, observer, output, journal, checkpoint)
                except BaseException:
                    saved = journal.load()
                    if saved is None or not saved.holds_work:
                        # Before anyone else may write the output.
                        journal.remove()
                        output.discard()
                    raise
            output.publish(checkpoint)
        journal.remove()
        return checkpoint

    def _translate(
        self,
        source: Source,
        client: Client,
        observer: Observer,
        output: Output,
        journal: Journal,
        checkpoint: Checkpoint,
    ) -> Checkpoint:

        def save() -> None:
            # Before it counts what may be of another file.
            source.check()
            output.sync()
            journal.save(checkpoint)
            observer.on_save(lines=checkpoint.lines)

        output.cut(checkpoint)
        save()
        observer.on_start(resumed=checkpoint.lines, failed=checkpoint.failed)
        saved_at = time.monotonic()
        results = self._results(source, client, observer, checkpoint)
        try:
            for result in results:
                line, translation = result.id, result.translation
                written, error = self._render(result)
                output.write(written, error)
                # One assignment: whatever interrupts this loop finds a checkpoint of whole lines.
                checkpoint = replace(
                    checkpoint,
                    lines=line.number,
                    failed=checkpoint.failed + bool(error),
                    truncated=checkpoint.truncated + (translation is not None and translation.truncated),
                    limited=checkpoint.limited + (translation is not None and translation.limited),
                    output_bytes=checkpoint.output_bytes + len(written),
                    errors_bytes=checkpoint.errors_bytes + len(error),
                    model=checkpoint.model or _model_of(result),
                )
                observer.on_line(failed=bool(error), position=line.position)
                if time.monotonic() - saved_at >= self._checkpoint_seconds:
                    save()
                    saved_at = time.monotonic()
            checkpoint = replace(checkpoint, complete=True)
        finally:
            results.close()
            save()
        return checkpoint

    def _results(
        self, source: Source, client: Client, observer: Observer, checkpoint: Checkpoint
    ) -> Generator[StreamResult[Line], None, None]:
        """The results of all lines that are not done, in order, over as many streams as it takes.

        All streams ask for the model of the first result, whatever the server would choose meanwhile.
        """
        lines = source.lines()
        for _ in range(checkpoint.lines):
            next(lines, None)
        backlog = Backlog(lines)
        model = checkpoint.model
        texts_per_message, window = TEXTS_PER_MESSAGE, self._window
        wait_seconds = FIRST_WAIT_SECONDS
        away_since: float | None = None
        while True:
            stream = client.translate_stream(
                ((line, line.text) for line in backlog.stream()),
                **asdict(replace(self._settings, model=model or self._settings.model)),
                in_order=True,
                window=window,
                texts_per_message=texts_per_message,
            )
            try:
                with closing(stream):
                    for result in stream:
                        if isinstance(result.error, UnavailableError | OverloadedError):
                            raise result.error
                        wait_seconds, away_since = FIRST_WAIT_SECONDS, None
                        model = model or _model_of(result)
                        backlog.done(result.id)
                        yield result
                return
            except ModelNotFoundError as error:
                if model is None:
                    raise
                raise JobError(
                    f"the server no longer has {model}, which translated the lines so far: {error}; call "
                    "again once it has, or begin anew with --restart, and --model for a certain one"
                ) from error
            except DragomanError as error:
                if is_over_transport(error):
                    # The server ends the stream without a word of which message it was: they get smaller,
                    # then come alone, until it is known.
                    if texts_per_message > 1:
                        texts_per_message = 1
                    elif window > 1:
                        window = 1
                    else:
                        line = backlog.first
                        backlog.done(line)
                        yield StreamResult(id=line, translation=None, error=error)
                        texts_per_message, window = TEXTS_PER_MESSAGE, self._window
                    continue
                if not _is_transient(error):
                    raise
                failed_at = time.monotonic()
                away_since = failed_at if away_since is None else away_since
                if failed_at - away_since >= self._patience_seconds:
                    raise
                if isinstance(error, OverloadedError | UnavailableError):
                    wait_seconds = max(wait_seconds, error.retry_after_seconds or 0.0)
                observer.on_wait(error, wait_seconds)
                time.sleep(wait_seconds)
                wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)

    def _render(self, result: StreamResult[Line]) -> tuple[bytes, bytes]:
        """The output's line with its ending, and the record of what failed, empty where nothing did."""
        line, translation = result.id, result.translation
        if translation is not None and line.error is None:
            truncated = translation.truncated or translation.limited
            return self._format.write(line.content, translation.text, truncated=truncated) + line.ending, b""
        record = {"line": line.number, **asdict(line.failure(result.error))}
        error = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        return self._format.write(line.content, None, truncated=False) + line.ending, error


def _model_of(result: StreamResult[Line]) -> str | None:
    """As NAME/VERSION; None of a line that failed."""
    return str(result.translation.model) if result.translation is not None else None


def _is_transient(error: DragomanError) -> bool:
    """Whether another stream may succeed.

    CANCELLED can only be the server's doing; ABORTED means the stream was idle, as when the job was
    suspended.
    """
    gone = isinstance(error, UnavailableError | OverloadedError | CallCancelledError)
    return gone or error.status == "ABORTED"


def _exists(output: Path) -> str:
    return f"{output} exists; replace it with --overwrite"

"""Translates a file text by text, so that no end of the process, however sudden, loses or doubles one.

What is on disk while a job runs, next to OUTPUT:

    OUTPUT.partial              the output so far, not packed
    OUTPUT.errors.jsonl.partial the record of failed units so far
    OUTPUT.progress.json        the last checkpoint: units done, and how long both files were then

A unit is a line, or a text of a document. A checkpoint is written after both files are safe on disk. A job
that goes on cuts both back to the last checkpoint, skips the units that it counts, and translates from there.
"""

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from dragoman.client import Client
from dragoman.errors import DragomanError
from dragoman.jobs.files import SUFFIXES, Output, Source, sibling
from dragoman.jobs.journal import Checkpoint, Journal
from dragoman.jobs.streams import Streams, model_of
from dragoman.jobs.units import JobError, failure_of, of_the_job
from dragoman.portions import AUTO, language_of_all
from dragoman.settings import MAX_DETECTION_CHARACTERS, Settings
from dragoman.translation import StreamResult, Translation
from dragoman_files.content import check_is_text, check_is_utf8, check_looks_like_lines
from dragoman_files.format import Details, FormatName, FormatOptions, Unit, UnitError
from dragoman_files.opening import input_format, open_format, output_format

NUM_DOUBTFUL = 10
_CONFIDENCE_DIGITS = 4


class Observer(Protocol):
    def on_start(self, *, resumed: int, failed: int) -> None:
        """The job begins, or goes on after so many units, of which so many failed."""

    def on_line(self, *, failed: bool, position: int) -> None:
        """A unit is done; `position` bytes of the input file have been read up to its end."""

    def on_save(self, *, lines: int) -> None:
        """So many units are safe on disk, whatever happens now."""

    def on_wait(self, error: DragomanError, seconds: float) -> None:
        """The server cannot take work now; the job tries again after some seconds."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    lines: int
    """Lines of the input, and of the output; units, where they are no lines."""
    failed: int
    """Units that have no translation."""
    truncated: int
    """Units with a sentence whose end was dropped, because it was too long for the model."""
    limited: int
    """Units whose translation ended at the limit of output tokens."""
    confidence: float | None
    """The mean confidence of the units' translations, where there is any."""
    doubtful: Sequence[tuple[int, float]]
    """Numbers of the units with the least, lowest first, each with its confidence; at most NUM_DOUBTFUL."""
    errors: Path | None
    """The record of failed units, where there are any."""


class FileJob:
    """The translation of one file into another."""

    @of_the_job()
    def __init__(
        self,
        source: Path,
        output: Path,
        settings: Settings,
        *,
        format_name: FormatName | None = None,
        options: FormatOptions | None = None,
        streams: int = 1,
        window: int = 256,
        patience_seconds: float = 300.0,
        checkpoint_seconds: float = 0.5,
    ) -> None:
        """The names' suffixes, in any case, say what both files hold, text where they are unknown; `.gz`
        after one says compressed. A format that is not read is refused. `format_name` says what both files
        hold, whatever they are called, `options` what of it is translated.

        `streams` is how many translate at once, each over a connection of its own, spread over the client's
        servers; `window` is the number of units under way of each. The job gives up on servers that all fail
        it for `patience_seconds`, counted from the first failure after a result. At most the work of
        `checkpoint_seconds` is done twice.
        Raises JobError where both files cannot be meant, and where the format's library is not installed.
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
        name = input_format(source, format_name)
        if name != (output_name := output_format(output, format_name)):
            raise JobError(
                f"{source} and {output} differ in format: by their names one holds {name}, the other "
                f"{output_name}; `--format` says what both hold"
            )
        self._options = (options or FormatOptions()).of(name)
        self._format = open_format(name, self._options)
        self._source = source
        self._output = output
        text_format = self._format.text_format or settings.text_format
        self._settings = replace(settings, text_format=text_format)
        self._is_format_given = format_name is not None
        self._num_streams = streams
        self._window = window
        self._patience_seconds = patience_seconds
        self._checkpoint_seconds = checkpoint_seconds

    @property
    def noun(self) -> str:
        """The plural noun for the units: lines, texts."""
        return self._format.noun

    @of_the_job()
    def run(
        self, client: Client, observer: Observer, *, overwrite: bool = False, restart: bool = False
    ) -> Summary:
        """Begins the job, or goes on with it, until the output stands under its name.

        `overwrite` replaces an output that is there; `restart` drops what an earlier run has done.
        Raises JobError, also where the input is no file of its format, the model that translated the units so
        far is gone, or the input changes meanwhile; OSError for files; and DragomanError where the server
        refuses the whole job or stays away. After any of them, and after KeyboardInterrupt, calling again
        goes on; a job that has done nothing leaves nothing behind.
        """
        with Source(self._source, self._format, self._settings) as source:
            self._check_content(source)
            if self._settings.source == AUTO:
                language = self._detect(source, client)
                self._settings = replace(self._settings, source=language)
            units = source.units()
            checkpoint = self._run(source, units, client, observer, overwrite=overwrite, restart=restart)
        return Summary(
            lines=checkpoint.lines,
            failed=checkpoint.failed,
            truncated=checkpoint.truncated,
            limited=checkpoint.limited,
            confidence=checkpoint.confidence / checkpoint.rated if checkpoint.rated else None,
            doubtful=[(int(number), confidence) for confidence, number in checkpoint.doubtful],
            errors=sibling(self._output, ".errors.jsonl") if checkpoint.failed else None,
        )

    def _detect(self, source: Source, client: Client) -> str:
        """The language of the input's beginning. Raises InvalidRequestError."""
        beginning = ""
        for unit in source.units():
            beginning += unit.text + " "
            if len(beginning) >= MAX_DETECTION_CHARACTERS:
                break
        (found,) = client.detect([beginning], target=self._settings.target)
        return language_of_all(found)

    def _check_content(self, source: Source) -> None:
        """Raises JobError for what is no text, or hardly lines of the format where nobody said that it is."""
        if self._format.package is not None:
            return
        head, name = source.head(), str(self._source)
        check_is_text(head, name, self._options.encoding)
        if not self._is_format_given and self._options.encoding is None:
            if not self._format.checks_encoding:
                check_is_utf8(head, name)
            if self._format.name == "text":
                check_looks_like_lines(head, name)

    def _run(
        self,
        source: Source,
        units: Iterator[Unit],
        client: Client,
        observer: Observer,
        *,
        overwrite: bool,
        restart: bool,
    ) -> Checkpoint:
        job = {
            "input": source.fingerprint,
            "output": self._output.name,
            "format": self._format.name,
            "settings": asdict(self._settings),
            # None where it is not given, as in journals from before there was one.
            **{option: value or None for option, value in asdict(self._options).items()},
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
                # Those that are done. All of them have to be there.
                if sum(1 for _ in itertools.islice(units, checkpoint.lines)) < checkpoint.lines:
                    raise journal.damaged()
                try:
                    checkpoint = self._translate(source, units, client, observer, output, journal, checkpoint)
                except BaseException:
                    saved = journal.load()
                    if saved is None or not saved.holds_work:
                        # Before anyone else may write the output.
                        journal.remove()
                        output.discard()
                    raise
            elif sum(1 for _ in units) != checkpoint.lines:
                raise journal.damaged()
            output.publish(checkpoint, source.container(self._output))
        journal.remove()
        return checkpoint

    def _translate(
        self,
        source: Source,
        units: Iterator[Unit],
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
        streams = Streams(
            settings=self._settings,
            number=self._num_streams,
            window=self._window,
            patience_seconds=self._patience_seconds,
            noun=self.noun,
        )
        first, model = checkpoint.lines + 1, checkpoint.model
        results = streams.results(units, client, observer.on_wait, first=first, model=model)
        try:
            for result in results:
                unit, translation = result.id, result.translation
                model = model_of(result)
                if None not in (model, checkpoint.model) and model != checkpoint.model:
                    raise JobError(
                        f"the server answered from {model}, and {checkpoint.model} has translated the "
                        f"{self.noun} so far: call again to go on with that, or begin anew with --restart"
                    )
                written, error = self._render(result)
                output.write(written, error)
                # One assignment: whatever interrupts this loop finds a checkpoint of whole units.
                checkpoint = replace(
                    checkpoint,
                    lines=unit.number,
                    failed=checkpoint.failed + bool(error),
                    truncated=checkpoint.truncated + (translation is not None and translation.truncated),
                    limited=checkpoint.limited + (translation is not None and translation.limited),
                    **_rated(checkpoint, result),
                    output_bytes=checkpoint.output_bytes + len(written),
                    errors_bytes=checkpoint.errors_bytes + len(error),
                    model=checkpoint.model or model,
                )
                observer.on_line(failed=bool(error), position=unit.position)
                if time.monotonic() - saved_at >= self._checkpoint_seconds:
                    save()
                    saved_at = time.monotonic()
            checkpoint = replace(checkpoint, complete=True)
        finally:
            results.close()
            save()
        return checkpoint

    def _render(self, result: StreamResult[Unit]) -> tuple[bytes, bytes]:
        """The unit's part of the output, and the record of what failed, empty where nothing did."""
        unit, translation = result.id, result.translation
        reason: Exception | None = result.error
        if translation is not None and unit.error is None:
            try:
                return unit.write(translation.text, _details(translation)), b""
            except UnitError as error:
                reason = error
        record = {**unit.location, **asdict(failure_of(unit, reason))}
        return unit.write(None, {}), json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _details(translation: Translation) -> Details:
    details: dict[str, bool | float] = {}
    if translation.truncated or translation.limited:
        details["truncated"] = True
    if translation.confidence is not None:
        details["confidence"] = round(translation.confidence, _CONFIDENCE_DIGITS)
    return details


def _rated(checkpoint: Checkpoint, result: StreamResult[Unit]) -> dict[str, Any]:
    """The checkpoint's fields of confidence behind one more result."""
    if result.translation is None or (confidence := result.translation.confidence) is None:
        return {}
    rated = [round(confidence, _CONFIDENCE_DIGITS), result.id.number]
    return {
        "rated": checkpoint.rated + 1,
        "confidence": checkpoint.confidence + confidence,
        "doubtful": sorted([*checkpoint.doubtful, rated], key=tuple)[:NUM_DOUBTFUL],
    }


def _exists(output: Path) -> str:
    return f"{output} exists; replace it with --overwrite"

"""A whole corpus translated by Ray, part by part; what is done lies beside the output until all of it is.

Machines share the folders of corpus, output and bundle. Through this process go the parts' numbers alone.
"""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from dragoman.jobs.errors import JobError
from dragoman.jobs.journal import changes, sync_folder
from dragoman.jobs.output import sibling
from dragoman.ray.dataset import needs, pool
from dragoman.ray.engine import Engine, EngineOptions
from dragoman.ray.joining import join
from dragoman.ray.part_file import Corpus, check_column, translate_part
from dragoman.ray.parts import Kind, Part, cut, fingerprint, kind_of

PART_TEXTS = 2000
"""Lines or rows of a part: many times what an engine decodes at once, and lost at most when an actor is."""
MAX_BLOCKS = 10_000
"""Most pieces of work that Ray is given: of a very large corpus each is several parts."""


class Observer(Protocol):
    """Observes a job while it runs."""

    def on_start(self, *, parts: int, done: int) -> None:
        """So many parts there are, of which an earlier run has done some."""

    def on_part(self) -> None:
        """Another is done."""


@dataclass(frozen=True, kw_only=True)
class CorpusSummary:
    """The summary of a translated corpus."""

    texts: int
    """Lines or rows of the corpus."""
    failed: int
    """Texts that have no translation."""
    errors: Path | None
    """The record of these, where there are any."""


class CorpusJob:
    """The translation of one file into another by a cluster."""

    def __init__(
        self,
        source: Path,
        output: Path,
        *,
        bundle: Path,
        options: EngineOptions | None = None,
        kind: Kind | None = None,
        column: str = "text",
        part_texts: int = PART_TEXTS,
        actors: int | None = None,
    ) -> None:
        """Raises JobError where both files cannot be meant."""
        source, output = source.absolute(), output.absolute()
        if not output.parent.is_dir():
            raise JobError(f"there is no folder {output.parent} for {output}")
        if source.resolve() == output.resolve():
            raise JobError(f"{output} is the input itself")
        self._kind = kind_of(source, kind)
        if self._kind != (other := kind_of(output, kind)):
            raise JobError(
                f"{source} holds {self._kind} by its name, and {output} {other}; --format says which"
            )
        if self._kind == "parquet":
            check_column(source, column)
        self._source, self._output = source, output
        self._bundle = bundle.absolute()
        self._options = options or EngineOptions()
        self._part_texts = part_texts
        self._actors = actors
        self._corpus = Corpus(source=source, kind=self._kind, column=column, folder=sibling(output, ".parts"))

    def run(self, observer: Observer, *, overwrite: bool = False, restart: bool = False) -> CorpusSummary:
        """Begins the job, or goes on with it, until the output stands under its name. Ray must be there.

        Raises JobError, OSError, and ray.exceptions.RayError where actors fail for good. After any of them,
        and after KeyboardInterrupt, calling again goes on.
        """
        if self._output.exists() and not overwrite:
            raise JobError(f"{self._output} exists; replace it with --overwrite")
        folder = self._corpus.folder
        folder.mkdir(exist_ok=True)
        before = fingerprint(self._source)
        with _locked(folder) as lock:
            if restart:
                for path in folder.iterdir():
                    if path != lock:
                        path.unlink()
            self._check_job(folder / "job.json", before)
            parts = cut(self._source, self._kind, part_texts=self._part_texts)
            existing = {path.name for path in folder.iterdir()}
            missing = [part for part in parts if self._corpus.written(part).name not in existing]
            observer.on_start(parts=len(parts), done=len(parts) - len(missing))
            if missing:
                for _ in self._translated(missing):
                    observer.on_part()
            if fingerprint(self._source) != before:
                raise JobError(f"{self._source} was changed meanwhile; begin anew with --restart")
            failed = join(self._corpus, parts, self._output)
            shutil.rmtree(folder)
        sync_folder(self._output.parent)
        return CorpusSummary(
            texts=self._num_texts(parts),
            failed=failed,
            errors=sibling(self._output, ".errors.jsonl") if failed else None,
        )

    def _num_texts(self, parts: Sequence[Part]) -> int:
        if not parts:
            return 0
        last = parts[-1]
        if self._kind == "parquet":
            return last.end
        with self._source.open("rb") as file:
            file.seek(last.start)
            content = file.read(last.end - last.start)
        return last.first - 1 + content.count(b"\n") + (not content.endswith(b"\n"))

    def _check_job(self, path: Path, source: str) -> None:
        """Raises JobError where another job's parts lie there."""
        manifest = (self._bundle / "manifest.json").read_bytes()
        job: dict[str, Any] = {
            "input": source,
            "bundle": hashlib.sha256(manifest).hexdigest(),
            "column": self._corpus.column,
            "part_texts": self._part_texts,
            "options": asdict(self._options),
        }
        if path.exists():
            if changed := list(changes(json.loads(path.read_bytes()), job)):
                raise JobError(
                    f"{path.parent} belongs to another job: {', '.join(changed)}; call it as before to go "
                    "on, or with --restart to begin anew"
                )
            return
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(job, indent=1))
        fresh.replace(path)

    def _translated(self, parts: Sequence[Part]) -> Iterator[None]:
        """Once for each part that is done, in no order."""
        import ray.data

        dataset = ray.data.from_items(
            [asdict(part) for part in parts], override_num_blocks=min(len(parts), MAX_BLOCKS)
        ).map_batches(
            _Parts,
            fn_constructor_kwargs={
                "bundle": str(self._bundle),
                "options": self._options,
                "corpus": self._corpus,
            },
            batch_size=1,
            compute=pool(self._options, self._actors),
            **needs(self._options),
        )
        for batch in dataset.iter_batches(batch_size=1):
            yield from [None] * len(batch["number"])


class _Parts:
    """Runs in an actor."""

    def __init__(self, *, bundle: str, options: EngineOptions, corpus: Corpus) -> None:
        self._engine = Engine(bundle, options)
        self._corpus = corpus

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        part = Part(**{name: int(column[0]) for name, column in batch.items()})
        # What a lost actor had done already is not done again.
        if not self._corpus.written(part).exists():
            translate_part(self._corpus, part, self._engine)
        return {"number": batch["number"]}


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """The file that says so. Raises JobError where another process has the folder."""
    path = folder / "lock"
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobError(f"another process is writing {folder}") from None
        yield path

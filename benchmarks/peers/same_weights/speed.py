"""The engine beside CTranslate2 on the same weights: same sources, as many tokens, each at its best."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus
from benchmarks.engines import open_decoder, running_engine
from benchmarks.measuring import interleave, ratio, summarize
from benchmarks.peers.same_weights.marian_models import MarianModels, install, make_models
from benchmarks.peers.toolkits import fastest_instructions
from benchmarks.peers.worker import Decoded, Worker, running_worker
from benchmarks.progress import Progress
from dragoman_server.engine import SearchOptions, Sentence
from dragoman_server.engine.pool.pool import EnginePool

OURS, PEER = "engine", "ctranslate2"
ALONE, FILE = "a sentence alone", "a file"
BEAMS = (4, 1)
BATCHES = (8, 16, 32)
"""Sentences in a batch of CTranslate2's: of these, and what gives each worker one, the fastest counts."""
NUM_ALONE = 8
"""Sentences that are translated one after the other."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What both systems do."""

    sentences: Sequence[Sequence[int]]
    """Token ids, each with its end."""
    steps: int
    """Tokens of every translation."""
    input: str
    """ALONE or FILE."""
    beam: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A size's models, and what they translate."""

    name: str
    models: MarianModels
    python: Path
    """Of CTranslate2's environment."""
    texts: Sequence[str]
    sentences: Sequence[Sequence[int]]
    """The texts' token ids, each with its end."""
    steps: int
    """Tokens of every translation: as many as a source has on average."""


def prepare(
    name: str, corpus: Corpus, text: Path, folder: Path, *, threads: int, exports: bool, shortlist: bool
) -> Prepared:
    """Makes what is missing. Raises PeerMissingError."""
    python = install()
    models = make_models(python, name, text, folder, threads=threads, exports=exports, shortlist=shortlist)
    end = models.bundle.manifest.source_ids.eos
    sentences = [[*ids, end] for ids in models.bundle.source_tokenizer.encode_ids(corpus.sources)]
    return Prepared(
        name=name,
        models=models,
        python=python,
        texts=corpus.sources,
        sentences=sentences,
        steps=max(1, round(sum(map(len, sentences)) / len(sentences))),
    )


def measure_speed(prepared: Prepared, *, threads: int, repeats: int) -> list[dict[str, object]]:
    """Rows of one size's figures. Raises PeerMissingError."""
    progress = Progress(2 * len(BEAMS) * repeats * 2)
    models, sentences = prepared.models, prepared.sentences
    given = {
        "model": str(models.converted),
        "sentences": [[models.pieces[id_] for id_ in ids] for ids in sentences],
        "steps": prepared.steps,
        "shortlist": models.shortlist,
    }
    rows: list[dict[str, object]] = []
    script = Path(__file__).with_name("marian_worker.py")
    with running_worker(prepared.python, script, given, fastest_instructions()) as (worker, _):
        for beam in BEAMS:
            with _engine(models, beam, threads) as engine:
                for source in (FILE, ALONE):
                    chosen = sentences if source == FILE else sentences[:NUM_ALONE]
                    task = Task(
                        sentences=chosen, steps=prepared.steps, input=source, beam=beam, threads=threads
                    )
                    row = _measure(task, engine, worker, repeats, progress)
                    rows.append({"size": prepared.name, "shortlist": models.shortlist, **row})
    return rows


def _measure(
    task: Task, engine: EnginePool, worker: Worker, repeats: int, progress: Progress
) -> dict[str, object]:
    """A row: speed of both in turns, CTranslate2 in that of its settings which is fastest."""
    translate = partial(_translate, engine, task)
    translate()
    setting = min(settings_of_peer(task), key=lambda each: worker.decode(each).seconds)
    cases: dict[str, Callable[[], Decoded]] = {OURS: translate, PEER: partial(worker.decode, setting)}

    def on_done(repeat: int, system: str, done: Decoded) -> None:
        what = f"{task.input}, beam {task.beam}, threads {task.threads}"
        progress.advance(f"{what}: {system}: {done.tokens / done.seconds:,.0f} target tokens/s")

    runs = interleave(cases, repeats, on_done)
    ours, theirs = (summarize([each.tokens / each.seconds for each in runs[name]]) for name in (OURS, PEER))
    quotient = ratio(ours.values, theirs.values)
    assert len({each.tokens for results in runs.values() for each in results}) == 1, "not as many tokens"
    return {
        "input": task.input,
        "beam": task.beam,
        "threads": task.threads,
        "engine": ours.median,
        "ctranslate2": theirs.median,
        "setting": f"{setting['workers']} x {setting['threads_per_worker']}, {setting['batch']}",
        "tokens": runs[OURS][0].tokens,
        "engine_ms": 1000 * task.steps / ours.median if task.input == ALONE else None,
        "ctranslate2_ms": 1000 * task.steps / theirs.median if task.input == ALONE else None,
        "ratio": quotient.median,
        "spread": quotient.spread,
    }


def settings_of_peer(task: Task) -> Iterator[dict[str, Any]]:
    """Ways for CTranslate2 to use the task's threads."""
    shares = {(task.threads, 1), (1, task.threads)} if task.input == FILE else {(1, task.threads)}
    for workers, threads_per_worker in sorted(shares, reverse=True):
        # Of few sentences the workers would have unequal numbers of batches.
        even = math.ceil(len(task.sentences) / workers)
        for batch in sorted({*BATCHES, even}) if task.input == FILE else BATCHES[:1]:
            yield {
                "sentences": len(task.sentences),
                "alone": task.input == ALONE,
                "beam": task.beam,
                "workers": workers,
                "threads_per_worker": threads_per_worker,
                "batch": batch,
            }


@contextmanager
def _engine(models: MarianModels, beam: int, threads: int) -> Iterator[EnginePool]:
    decoder = open_decoder(models.bundle, precision="int8", shortlist=models.shortlist)
    with running_engine(decoder, beam_size=beam, threads=threads) as engine:
        yield engine


def _translate(engine: EnginePool, task: Task) -> Decoded:
    options = SearchOptions(
        beam_size=task.beam, num_hypotheses=1, length_penalty=1.0, max_output_tokens=task.steps
    )
    sentences = [Sentence(source=tuple(ids), options=options) for ids in task.sentences]
    calls = [[sentence] for sentence in sentences] if task.input == ALONE else [sentences]
    started = time.perf_counter()
    results = [future.result() for call in calls for future in engine.submit(call)]
    seconds = time.perf_counter() - started
    return Decoded(seconds=seconds, tokens=sum(len(each.hypotheses[0].tokens) for each in results))

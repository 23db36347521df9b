"""The engine on a GPU: batches that stay on the device beside batches that regroup on the host."""

import math
import shutil
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from dragoman_bundle import Bundle, open_bundle

from benchmarks.corpus import read_corpus
from benchmarks.engines import translation_options
from benchmarks.harness import BEAM, BUNDLE, INPUT, REPEATS, THREADS, Found, option, scenario, several
from benchmarks.measuring import MeasurementError, in_turns, ratio, summarize
from benchmarks.report import Row, Table
from dragoman_server.engine import Batch, Engine, EngineLimits, Sentence, StepInput, StepOutput
from dragoman_server.engine.decoder import IntArray
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.offline.system import MAX_QUEUE
from dragoman_server.text.stages import prepare

BATCHES = {"device": True, "host": False}
"""Whether sentences join and leave on the device."""
CASE_COLUMNS = (("precision", "precision"), ("batch", "batch"), ("sentences", "sentences", "d"))


@dataclass(frozen=True)
class Case:
    """One way of running the engine."""

    precision: str
    batch: str
    """One of BATCHES."""
    sentences: int
    """Places in the batch."""

    def __str__(self) -> str:
        return f"{self.precision}, batch {self.batch}, {self.sentences} sentences"


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """All sentences, once."""

    seconds: float
    step_ms: float
    """Median of the steps of a full batch, or of all where none was."""
    regroup_ms: float
    encode_ms: float
    tokens: list[tuple[int, ...]]
    """The best hypothesis of each sentence."""


class ClockedDecoder:
    """A decoder that notes how long everything takes. Implements `Decoder`."""

    def __init__(self, decoder: OnnxDecoder) -> None:
        self._decoder = decoder
        self.encodings: list[float] = []
        self.regroupings: list[float] = []
        self.steps: list[tuple[int, float]] = []
        """Sentences and seconds."""
        self.source_vocabulary = decoder.source_vocabulary
        self.target_vocabulary = decoder.target_vocabulary
        self.bos, self.eos = decoder.bos, decoder.eos

    def encode(self, sources: Sequence[Sequence[int]], beam_size: int) -> Any:
        """As `Decoder.encode`."""
        started = time.perf_counter()
        encoded = self._decoder.encode(sources, beam_size)
        self.encodings.append(time.perf_counter() - started)
        return encoded

    def open_batch(self, beam_size: int) -> "ClockedBatch":
        """As `Decoder.open_batch`."""
        return ClockedBatch(self._decoder.open_batch(beam_size), self)

    def release_memory(self) -> None:
        """Does nothing, so that no run takes longer than the others."""


class ClockedBatch:
    """A batch of a clocked decoder. Implements `Batch`."""

    def __init__(self, batch: Batch[Any], clock: ClockedDecoder) -> None:
        self._batch = batch
        self._clock = clock

    def regroup(self, origin_S: IntArray, joined: Sequence[Any], source_positions: int) -> None:
        """As `Batch.regroup`."""
        started = time.perf_counter()
        self._batch.regroup(origin_S, joined, source_positions)
        self._clock.regroupings.append(time.perf_counter() - started)

    def step(self, rows: StepInput) -> StepOutput:
        """As `Batch.step`."""
        started = time.perf_counter()
        output = self._batch.step(rows)
        self._clock.steps.append((len(rows.token_SK), time.perf_counter() - started))
        return output


@scenario(
    BUNDLE,
    option(
        "--device",
        "cuda",
        "Where the graphs run; the CPU only shows that it works.",
        type=click.Choice(["cuda", "cpu"]),
    ),
    several(
        "--precisions",
        ("fp16", "fp32"),
        "Which graphs; what is absent is left out.",
        ("fp16", "fp32", "int8"),
    ),
    several("--sentences", (1, 8, 64, 256), "Places in the batch."),
    BEAM,
    option("--shortlist/--no-shortlist", True, "Decode with a shortlist."),
    INPUT,
    option("--limit", 512, "Take only so many sentences."),
    THREADS,
    REPEATS,
)
def command(
    *,
    bundle: Path,
    device: str,
    precisions: list[str],
    sentences: list[int],
    beam: int,
    shortlist: bool,
    source: Path,
    limit: int,
    threads: int,
    repeats: int,
) -> Found:
    """Decode a file with batches that stay on the device and with batches that regroup on the host."""
    corpus, opened = read_corpus(source, None, limit), open_bundle(bundle)
    has = opened.manifest.precisions
    if not (present := [precision for precision in precisions if precision in has]):
        raise MeasurementError(
            f"{bundle} has none of {', '.join(precisions)}, only {', '.join(has)}; `dragoman export` adds "
            "them with --precisions, and --precisions here names others"
        )
    decoders = {
        (precision, batch): open_decoder(
            opened,
            DecoderOptions(
                device=device,
                precision=precision,
                num_threads=threads,
                use_shortlist=shortlist,
                stays_on_device=stays,
            ),
        )
        for precision in present
        for batch, stays in BATCHES.items()
    }
    options = translation_options(opened, beam)
    documents = [prepare(line, opened, options, deadline=None) for line in corpus.sources]
    work = [sentence for document in documents for sentence in document.sentences]
    cases = {
        Case(*key, places): partial(_decode, opened, decoder, work, places=places, beam_size=beam)
        for key, decoder in decoders.items()
        for places in sentences
    }
    for run in cases.values():
        # Kernels are loaded and memory is taken when they are first needed.
        run()
    runs = in_turns(cases, repeats, lambda done: f"{len(work) / done.seconds:,.0f} sentences/s")
    gpu = describe_gpu() if device == "cuda" else None
    speeds = Table(
        name="rows",
        title=f"{corpus.name}, {len(work):,} sentences, beam {beam}, on {gpu or device}, median of {repeats}",
        columns=[
            *CASE_COLUMNS,
            ("sentences_per_second", "sentences/s", ",.1f"),
            ("spread", "spread", ".0%"),
            *((f"{name}_ms", f"{name} ms", ".2f") for name in ("step", "regroup", "encode")),
        ],
        rows=[_row(case, results, len(work)) for case, results in runs.items()],
        note="Batch: on the device or on the host. Sentences: places in the batch. From token ids to token "
        "ids. Medians of a full batch's step, of a regrouping, and of the encoding of a group.",
    )
    ratios = Table(
        name="ratios",
        title="Batches on the device against batches on the host",
        columns=[
            *CASE_COLUMNS,
            ("speed", "speed", ".2f"),
            ("spread", "spread", ".0%"),
            ("same_tokens", "same tokens", ".1%"),
        ],
        rows=_ratio_rows(runs),
        note="Same tokens: sentences of which both find the same best translation.",
    )
    facts = {
        "device": device,
        "gpu": gpu,
        "bundle": opened.manifest.key,
        "input": corpus.name,
        "repeats": repeats,
    }
    return Found(
        tables=[speeds, ratios], facts={**facts, "shortlist": shortlist and opened.shortlist is not None}
    )


def _decode(
    bundle: Bundle, decoder: OnnxDecoder, sentences: Sequence[Sentence], *, places: int, beam_size: int
) -> Decoded:
    """Decodes the sentences in a batch of at most so many."""
    clock = ClockedDecoder(decoder)
    limits = EngineLimits(
        max_rows=places * beam_size,
        max_source_tokens=places * (bundle.manifest.decoding.max_source_tokens + 8),
        max_queue=MAX_QUEUE,
        max_queue_seconds=math.inf,
        max_beam_size=beam_size,
    )
    engine = Engine(clock, limits=limits)
    engine.start()
    try:
        started = time.perf_counter()
        results = [future.result() for future in engine.submit(sentences)]
        seconds = time.perf_counter() - started
    finally:
        engine.close()
    full = [took for count, took in clock.steps if count == places]
    return Decoded(
        seconds=seconds,
        step_ms=1e3 * statistics.median(full or [took for _, took in clock.steps]),
        regroup_ms=1e3 * statistics.median(clock.regroupings),
        encode_ms=1e3 * statistics.median(clock.encodings),
        tokens=[result.hypotheses[0].tokens for result in results],
    )


def _row(case: Case, runs: Sequence[Decoded], num_sentences: int) -> Row:
    """A case's medians."""
    speed = summarize([num_sentences / run.seconds for run in runs])
    return {
        **vars(case),
        "sentences_per_second": speed.median,
        "spread": speed.spread,
        "step_ms": statistics.median(run.step_ms for run in runs),
        "regroup_ms": statistics.median(run.regroup_ms for run in runs),
        "encode_ms": statistics.median(run.encode_ms for run in runs),
    }


def _ratio_rows(runs: Mapping[Case, Sequence[Decoded]]) -> list[Row]:
    """Batches on the device over those on the host."""
    rows: list[Row] = []
    for case in [case for case in runs if case.batch == "device"]:
        ours, host = runs[case], runs[Case(case.precision, "host", case.sentences)]
        speed = ratio([run.seconds for run in host], [run.seconds for run in ours])
        alike = [one == other for one, other in zip(ours[0].tokens, host[0].tokens, strict=True)]
        same = sum(alike) / len(alike)
        rows.append({**vars(case), "speed": speed.median, "spread": speed.spread, "same_tokens": same})
    return rows


def describe_gpu() -> str | None:
    """Name, memory and driver of the GPUs; None where there is no driver."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return "; ".join(done.stdout.strip().splitlines()) or None

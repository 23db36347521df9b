"""Decodes the same sentences with a batch of so many places, and says where the time went."""

import math
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_bundle import Bundle

from dragoman_server.engine import Batch, Engine, EngineLimits, Sentence, StepInput, StepOutput
from dragoman_server.engine.decoder import IntArray
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.offline.system import MAX_QUEUE


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way of running the engine."""

    precision: str
    batch: str
    """"device" or "host": where sentences join and leave."""
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
    """Median."""
    encode_ms: float
    """Median of a group that was encoded together."""
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
        """As `Decoder.release_memory`: nothing, so that no run takes longer than the others."""


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


def decode(
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
        futures = engine.submit(sentences)
        results = [future.result() for future in futures]
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


def describe_gpu() -> str | None:
    """Name, memory and driver of the GPUs; None where there is no driver."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return "; ".join(done.stdout.strip().splitlines()) or None

"""Turns a bundle into a model that is being served: a decoder, engines, and a first sentence to warm them."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dragoman_bundle import Bundle, Manifest

from dragoman_server.config import EngineConfig
from dragoman_server.engine import (
    Admission,
    Engine,
    EngineLimits,
    Priority,
    SearchOptions,
    Sentence,
    warm,
)
from dragoman_server.engine.events import Listener, ignore
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import choose_precision, open_decoder, opener
from dragoman_server.engine.onnx.options import DecoderOptions
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.pool.process import EngineProcess
from dragoman_server.engine.pool.processors import count_processors
from dragoman_server.engine.pool.sharing import engines_a_process, measure_step
from dragoman_server.metrics.translation import Metrics, ModelMetrics
from dragoman_server.models.model import Model

_SAMPLE_TOKENS = 16
"""Source tokens of the sentence whose steps tell how many engines share a process."""

logger = logging.getLogger(__name__)


class ModelLoader:
    """Loads models that run as the configuration says."""

    def __init__(self, config: EngineConfig, *, max_beam_size: int, metrics: Metrics) -> None:
        self._config = config
        self._max_beam_size = max_beam_size
        self._metrics = metrics

    @property
    def device(self) -> str:
        """Where models run: "auto", "cpu" or "cuda"."""
        return self._config.device

    def beam_size(self, manifest: Manifest) -> int:
        """Of a request to the model that sets none."""
        return min(manifest.decoding.beam_size, self._max_beam_size)

    def check(self, path: Path, manifest: Manifest) -> None:
        """What the manifest alone tells of whether the bundle at `path` can be loaded.

        Raises PrecisionUnavailableError, or SentenceError as `load`.
        """
        if self._config.device != "auto" or self._config.precision != "auto":
            choose_precision(path, manifest, self._config.device, self._config.precision)
        admission = Admission(
            limits=engine_limits(self._config, self._max_beam_size),
            source_vocabulary=manifest.source_vocabulary,
            target_vocabulary=manifest.target_vocabulary,
        )
        admission.check(_longest_sentence(manifest, self.beam_size(manifest)))

    def load(self, bundle: Bundle, metrics: ModelMetrics | None = None) -> Model:
        """A model that has translated a sentence, and is counted in `metrics`, or in some of its own.

        Raises DeviceUnavailableError, PrecisionUnavailableError, DecoderError where the graphs don't run, or
        SentenceError where the model takes longer sentences than the configuration has source positions for.
        """
        decoder = open_decoder(bundle, decoder_options(self._config))
        beam_size = self.beam_size(bundle.manifest)
        limits = engine_limits(self._config, self._max_beam_size)
        metrics = metrics or ModelMetrics(self._metrics, bundle.manifest)
        engine = open_engine(
            decoder,
            self._config,
            self._max_beam_size,
            listener=metrics.on_event,
            warm_up=_longest_sentence(bundle.manifest, beam_size),
        )
        return Model(
            bundle=bundle,
            engine=engine,
            metrics=metrics,
            precision=decoder.precision,
            providers=decoder.providers,
            default_beam_size=beam_size,
            max_sentences={
                Priority.INTERACTIVE: limits.max_queue,
                Priority.BULK: limits.max_bulk_queue,
            },
        )


def decoder_options(config: EngineConfig) -> DecoderOptions:
    """How graphs are opened, as the configuration says."""
    return DecoderOptions(
        device=config.device,
        precision=config.precision,
        use_shortlist=config.shortlist,
        gpu_memory_limit_mib=config.gpu_memory_limit,
    )


def open_engine(
    decoder: OnnxDecoder,
    config: EngineConfig,
    max_beam_size: int,
    *,
    listener: Listener = ignore,
    warm_up: Sentence | None = None,
) -> EnginePool:
    """A running engine, which has decoded the sentence `warm_up`.

    On a CPU it has a batch for each thread, on a GPU a single one. Several are in processes of their own,
    each with a decoder opened as this one was, and with as many of them as Python's lock allows. Raises
    SentenceError where the sentence is more than the configuration allows, and DecoderError.
    """
    limits = engine_limits(config, max_beam_size)
    admission = Admission.to(decoder, limits)
    if warm_up is not None:
        admission.check(warm_up)
    num_engines = (config.threads or count_processors()) if decoder.device == "cpu" else 1
    timeout = config.engine_timeout_seconds
    sizes = _process_sizes(decoder, num_engines, config.engines_per_process, warm_up)
    engines: Sequence[Engine | EngineProcess]
    if num_engines == 1:
        if warm_up is not None:
            warm(decoder, limits, warm_up)
        engines = [Engine(decoder, limits=limits, listener=listener, timeout_seconds=timeout)]
    else:
        engines = [
            EngineProcess(
                opener(decoder),
                limits=limits,
                listener=listener,
                warm_up=warm_up,
                timeout_seconds=timeout,
                num_engines=size,
                first_number=sum(sizes[:place]),
            )
            for place, size in enumerate(sizes)
        ]
    pool = EnginePool(engines, admission)
    pool.start()
    return pool


def _process_sizes(
    decoder: OnnxDecoder, num_engines: int, engines_per_process: int | None, sample: Sentence | None
) -> list[int]:
    """How many engines each process has: about as many as any other."""
    if engines_per_process is None:
        engines_per_process = 1
        if num_engines > 1 and sample is not None:
            short = replace(sample, source=sample.source[-_SAMPLE_TOKENS:])
            step_seconds = measure_step(decoder, short)
            engines_per_process = engines_a_process(step_seconds)
            logger.info(
                "engines share processes as far as steps are long",
                extra={
                    "engines": num_engines,
                    "per_process": engines_per_process,
                    "step_seconds": step_seconds,
                },
            )
    num_processes = -(-num_engines // engines_per_process)
    return [
        num_engines // num_processes + (number < num_engines % num_processes)
        for number in range(num_processes)
    ]


def engine_limits(config: EngineConfig, max_beam_size: int) -> EngineLimits:
    """How much an engine takes on, as the configuration says."""
    return EngineLimits(
        max_rows=config.max_rows,
        max_source_tokens=config.max_source_tokens,
        max_bulk_share=config.max_bulk_share,
        max_bulk_slowdown=config.max_bulk_slowdown,
        max_queue=config.max_queue,
        max_queue_seconds=config.max_queue_seconds,
        max_beam_size=max_beam_size,
        continuous=config.batching == "continuous",
    )


def _longest_sentence(manifest: Manifest, beam_size: int) -> Sentence:
    """As long as the bundle allows: whatever is allocated grows to it."""
    decoding = manifest.decoding
    options = SearchOptions(
        beam_size=beam_size, num_hypotheses=1, length_penalty=decoding.length_penalty, max_output_tokens=8
    )
    end = (manifest.source_ids.eos,) if manifest.source_end else ()
    source = (*((manifest.source_ids.unk,) * (decoding.max_source_tokens - len(end))), *end)
    return Sentence(source=source, options=options, return_attention=True)

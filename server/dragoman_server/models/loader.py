"""Turns a bundle into a model that is being served: a decoder, engines, and a first sentence to warm them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dragoman_bundle import Bundle, Manifest
from dragoman_bundle.bundle import read_description
from dragoman_bundle.machine import count_processors

from dragoman_server.config import EngineConfig
from dragoman_server.engine import Admission, Engine, EngineLimits, Priority, SearchOptions, Sentence, warm
from dragoman_server.engine.events import Listener, ignore
from dragoman_server.engine.onnx import opening
from dragoman_server.engine.onnx.decoder import has_shortlist
from dragoman_server.engine.onnx.session import PROVIDERS, DecoderOptions
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.pool.process import EngineProcess
from dragoman_server.metrics.translation import Metrics, ModelMetrics
from dragoman_server.models.model import Model

_SAMPLE_TOKENS = 16
"""Source tokens of the sentence whose steps tell how many engines share a process."""

HOST_SECONDS = 0.0004
"""Time that Python holds its lock between two steps of an engine (benchmarks/results/finished.md, host)."""
MAX_LOCK_SHARE = 0.5
"""Share of the time that the engines of a process hold the lock at most."""
_SCORE_BYTES = 4
"""Bytes of the score of a row and token."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelLoader:
    """Loads models that run as the configuration says."""

    config: EngineConfig
    max_beam_size: int
    metrics: Metrics

    def beam_size(self, manifest: Manifest) -> int:
        """The beam size of a request to the model that sets none."""
        return min(manifest.decoding.beam_size, self.max_beam_size)

    def check(self, path: Path, manifest: Manifest) -> None:
        """Checks by the manifest alone whether the bundle at `path` can be loaded.

        Raises PrecisionUnavailableError, or SentenceError as `load`.
        """
        if self.config.device != "auto" or self.config.precision != "auto":
            opening.choose_precision(path, manifest, self.config.device, self.config.precision)
        admission = _admission(engine_limits(self.config, self.max_beam_size), manifest)
        admission.check(_longest_sentence(manifest, self.beam_size(manifest)))

    def load(self, bundle: Bundle, metrics: ModelMetrics | None = None) -> Model:
        """A model that has translated a sentence, and is counted in `metrics`, or in some of its own.

        Raises DeviceUnavailableError, PrecisionUnavailableError, DecoderError where the graphs don't run, or
        SentenceError where the model takes longer sentences than the configuration has source positions for.
        """
        beam_size = self.beam_size(bundle.manifest)
        limits = engine_limits(self.config, self.max_beam_size)
        metrics = metrics or ModelMetrics(self.metrics, bundle.manifest)
        running = open_engine(
            bundle,
            decoder_options(self.config),
            self.config,
            self.max_beam_size,
            listener=metrics.on_event,
            warm_up=_longest_sentence(bundle.manifest, beam_size),
        )
        return Model(
            bundle=bundle,
            engine=running.engine,
            metrics=metrics,
            precision=running.precision,
            providers=running.providers,
            default_beam_size=beam_size,
            description=read_description(bundle.path),
            max_sentences={Priority.INTERACTIVE: limits.max_queue, Priority.BULK: limits.max_bulk_queue},
        )


def decoder_options(config: EngineConfig) -> DecoderOptions:
    """How graphs are opened, as the configuration says."""
    return DecoderOptions(
        device=config.device,
        precision=config.precision,
        use_shortlist=config.shortlist,
        gpu_memory_limit_mib=config.gpu_memory_limit,
    )


@dataclass(frozen=True, kw_only=True)
class RunningEngine:
    """An engine that decodes, and what with."""

    engine: EnginePool
    precision: str
    providers: Mapping[str, str]
    """The open graphs, each with the onnxruntime provider that it runs on."""

    def has_shortlist(self, beam_size: int) -> bool:
        return has_shortlist(self.providers, beam_size)


def open_engine(
    bundle: Bundle,
    options: DecoderOptions,
    config: EngineConfig,
    max_beam_size: int,
    *,
    listener: Listener = ignore,
    warm_up: Sentence | None = None,
) -> RunningEngine:
    """Engines over the bundle's graphs, which have decoded the sentence `warm_up`.

    On a CPU there is a batch for each thread, on a GPU a single one. Several are in processes of their own,
    with as many in each as Python's lock allows; this process then opens no graph. Raises SentenceError where
    the sentence is more than the configuration allows, DeviceUnavailableError, PrecisionUnavailableError, and
    DecoderError.
    """
    limits = engine_limits(config, max_beam_size)
    admission = _admission(limits, bundle.manifest)
    if warm_up is not None:
        admission.check(warm_up)
    num_engines = config.threads or count_processors()
    options, graphs, decoder = opening.settle_device(bundle, options), [], None
    if num_engines == 1 or options.device != "cpu":
        decoder = opening.open_decoder(bundle, options)
        options, graphs = decoder.options, list(decoder.sessions)
    else:
        options, graphs = opening.choose_graphs(bundle, options)
    if options.device == "cpu":
        # As many rows as have their scores in so much memory, and those of one beam at least.
        num_rows = config.max_score_memory * 2**20 // (_SCORE_BYTES * bundle.manifest.target_vocabulary)
        num_rows = min(limits.max_rows, max(limits.max_beam_size, num_rows))
        limits = replace(limits, max_rows=num_rows)
    else:
        num_engines = 1
    engines: Sequence[Engine | EngineProcess]
    timeout = config.engine_timeout_seconds
    if num_engines == 1:
        assert decoder is not None
        if warm_up is not None:
            warm(decoder, limits, warm_up)
        engines = [Engine(decoder, limits=limits, listener=listener, timeout_seconds=timeout)]
    else:
        # One that was opened for a GPU which could not be used after all is not kept.
        del decoder
        make = partial(
            EngineProcess,
            partial(opening.reopen_decoder, bundle.graphs, options),
            limits=limits,
            listener=listener,
            warm_up=warm_up,
            timeout_seconds=timeout,
        )
        engines = _processes(make, num_engines, config.engines_per_process, warm_up)
    pool = EnginePool(engines, replace(admission, limits=limits))
    pool.start()
    providers = dict.fromkeys(graphs, PROVIDERS[options.device])
    return RunningEngine(engine=pool, precision=options.precision, providers=providers)


def _admission(limits: EngineLimits, manifest: Manifest) -> Admission:
    return Admission(
        limits=limits,
        source_vocabulary=manifest.source_vocabulary,
        target_vocabulary=manifest.target_vocabulary,
    )


def engines_a_process(step_seconds: float) -> int:
    """How many engines share a process, and so a model's weights: as many as Python's lock lets work.

    `step_seconds`: how long a step of a lone sentence takes.
    """
    return max(1, int(MAX_LOCK_SHARE * step_seconds / HOST_SECONDS))


def _processes(
    make: Callable[[], EngineProcess],
    num_engines: int,
    engines_per_process: int | None,
    sample: Sentence | None,
) -> list[EngineProcess]:
    """The processes, as many as there must be, each with about as many engines as any other."""
    first = make()
    if engines_per_process is None:
        engines_per_process = 1
        if sample is not None:
            step_seconds = first.measure_step(replace(sample, source=sample.source[-_SAMPLE_TOKENS:]))
            engines_per_process = engines_a_process(step_seconds)
            extra = {"per_process": engines_per_process, "step_seconds": step_seconds}
            message = "engines share processes as far as steps are long"
            logger.info(message, extra={"engines": num_engines, **extra})
    num_processes = -(-num_engines // engines_per_process)
    processes = [first, *(make() for _ in range(num_processes - 1))]
    first_number = 0
    for number, process in enumerate(processes):
        process.num_engines = num_engines // num_processes + (number < num_engines % num_processes)
        process.first_number = first_number
        first_number += process.num_engines
    return processes


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
    """The longest sentence that the bundle allows: whatever is allocated grows to it."""
    decoding = manifest.decoding
    options = SearchOptions(
        beam_size=beam_size, num_hypotheses=1, length_penalty=decoding.length_penalty, max_output_tokens=8
    )
    end = (manifest.source_ids.eos,) if manifest.source_end else ()
    source = (*((manifest.source_ids.unk,) * (decoding.max_source_tokens - len(end))), *end)
    return Sentence(source=source, options=options, return_attention=True)

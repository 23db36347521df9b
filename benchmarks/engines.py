"""Opens the engine on a bundle as the server does, within this process."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman_bundle import Bundle, open_bundle

from benchmarks.measuring import MeasurementError
from dragoman_server.config import Batching, EngineConfig
from dragoman_server.engine import Admission, Engine
from dragoman_server.engine.onnx import opening
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.models.loader import engine_limits, open_engine
from dragoman_server.offline.system import MAX_QUEUE, BundleSystem
from dragoman_server.text.options import Protection, Segmentation, TranslationOptions


def open_decoder(
    bundle: Bundle, *, precision: str, shortlist: bool, num_threads: int = 1, device: str = "cpu"
) -> OnnxDecoder:
    """The bundle's graphs, on a CPU with so many threads a call.

    Raises MeasurementError for a precision or shortlist that the bundle lacks.
    """
    if precision not in bundle.manifest.precisions:
        present = ", ".join(bundle.manifest.precisions)
        raise MeasurementError(
            f"{bundle.path} has no {precision} graphs, only {present}; "
            f"`dragoman export` adds them with --precisions {precision},{present}"
        )
    if shortlist and bundle.shortlist is None:
        raise MeasurementError(
            f"{bundle.path} has no shortlist; `dragoman export --help` says how to add one"
        )
    options = DecoderOptions(
        device=device, precision=precision, num_threads=num_threads, use_shortlist=shortlist
    )
    return opening.open_decoder(bundle, options)


def translation_options(bundle: Bundle, beam_size: int) -> TranslationOptions:
    """Each line as one sentence, with the bundle's own length penalty."""
    return TranslationOptions(
        beam_size=beam_size,
        length_penalty=bundle.manifest.decoding.length_penalty,
        segmentation=Segmentation.LINE,
        # Of every sentence one search.
        protection=Protection(is_automatic=False),
    )


@contextmanager
def running_engine(
    decoder: OnnxDecoder, *, beam_size: int, threads: int = 1, continuous: bool = True
) -> Iterator[EnginePool]:
    """So many engines as the server has them, but for its queue's limit."""
    batching: Batching = "continuous" if continuous else "request"
    config = EngineConfig(threads=threads, max_queue=MAX_QUEUE, max_queue_seconds=math.inf, batching=batching)
    if threads == 1:
        limits = engine_limits(config, beam_size)
        engine = EnginePool([Engine(decoder, limits=limits)], Admission.to(decoder, limits))
        engine.start()
    else:
        bundle = open_bundle(decoder.path)
        engine = open_engine(bundle, decoder.options, config, beam_size).engine
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def running_system(
    bundle: Bundle, decoder: OnnxDecoder, *, beam_size: int, threads: int = 1, continuous: bool = True
) -> Iterator[BundleSystem]:
    """The engine behind lines of text, as `dragoman evaluate` runs it."""
    with running_engine(decoder, beam_size=beam_size, threads=threads, continuous=continuous) as engine:
        yield BundleSystem(bundle, engine, translation_options(bundle, beam_size), "")

"""All that is measured of a bundle and a load, one thing after the other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_bundle import Bundle

from dragoman_server.config import EngineConfig, Precision
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.models.loader import decoder_options
from dragoman_server.offline.system import MAX_QUEUE
from dragoman_server.sizing.calibration import measure_engine
from dragoman_server.sizing.cores import slowdown_of_all
from dragoman_server.sizing.figures import EngineFigures, ServerFigures
from dragoman_server.sizing.served import measure_server
from dragoman_server.text.document import prepare
from dragoman_server.text.options import TranslationOptions

ENGINE_SHARE = 0.5
SERVER_SHARE = 0.3
"""Shares of the time; the rest is for all cores at once."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The measurements that a plan is made of."""

    engine: EngineFigures
    server: ServerFigures
    slowdown: float
    """How many times as long an engine takes where all cores have one."""


def measure(
    bundle: Bundle,
    lines: Sequence[str],
    *,
    cores: int,
    beam_size: int | None,
    precision: Precision,
    seconds: float,
    on_progress: Callable[[str], None],
) -> Measured:
    """Measures for about so many seconds. Raises LoadError, ServerError, and as a bundle's opening."""
    config = EngineConfig(device="cpu", precision=precision, max_queue=MAX_QUEUE, max_queue_seconds=math.inf)
    decoder = open_decoder(bundle, decoder_options(config))
    decoding = bundle.manifest.decoding
    options = TranslationOptions(
        beam_size=beam_size or decoding.beam_size, length_penalty=decoding.length_penalty
    )
    engine = measure_engine(
        bundle, decoder, lines, options, seconds=ENGINE_SHARE * seconds, on_progress=on_progress
    )
    on_progress("all cores at once")
    known = lines[: len(engine.texts)]
    sample = [sentence for line in known for sentence in prepare(line, bundle, options, None).sentences]
    slowdown = slowdown_of_all(bundle, decoder.options, config, sample, cores=cores)
    on_progress("a server")
    server = measure_server(
        bundle,
        lines,
        options,
        ["--precision", decoder.precision],
        num_engines=cores,
        seconds=SERVER_SHARE * seconds,
    )
    return Measured(engine=engine, server=server, slowdown=slowdown)

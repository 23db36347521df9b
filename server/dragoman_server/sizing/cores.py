"""How much slower a core is when all cores work: they share the memory's bandwidth, and their clock falls."""

import time
from collections.abc import Sequence
from dataclasses import replace

from dragoman_bundle import Bundle

from dragoman_server.config import EngineConfig
from dragoman_server.engine import EngineLimits, Sentence
from dragoman_server.engine.onnx.options import DecoderOptions
from dragoman_server.models.loader import open_engine

REPEATS = 2
"""The quickest counts."""


def slowdown_of_all(
    bundle: Bundle,
    options: DecoderOptions,
    config: EngineConfig,
    sentences: Sequence[Sentence],
    *,
    cores: int,
) -> float:
    """How many times as long an engine takes for the sentences where one on each core does the same.

    At least 1. `config` must let all of them wait.
    """
    if cores == 1:
        return 1.0
    seconds = {}
    for number in (1, cores):
        max_beam_size = max(EngineLimits.max_beam_size, sentences[0].options.beam_size)
        engine = open_engine(bundle, options, replace(config, threads=number), max_beam_size).engine
        try:
            taken = []
            for _ in range(REPEATS):
                began = time.monotonic()
                for future in engine.submit([*sentences] * number):
                    future.result()
                taken.append(time.monotonic() - began)
            seconds[number] = min(taken)
        finally:
            engine.close()
    return max(1.0, seconds[cores] / seconds[1])

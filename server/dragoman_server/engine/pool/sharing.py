"""How many engines share a process, and so a model's weights: as many as Python's lock lets work."""

import time
from typing import Any

import numpy as np

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.request import Sentence
from dragoman_server.engine.search.beam import Beams

HOST_SECONDS = 0.0004
"""What Python does between two steps of an engine, while it holds the lock (benchmarks decode --profile)."""
MAX_LOCK_SHARE = 0.5
"""Share of the time that the engines of a process hold the lock at most."""
NUM_STEPS = 4
"""Steps that are measured; the quickest counts."""


def engines_a_process(step_seconds: float) -> int:
    """How many engines may share a process, where a step of a lone sentence takes so long."""
    return max(1, int(MAX_LOCK_SHARE * step_seconds / HOST_SECONDS))


def measure_step(decoder: Decoder[Any], sentence: Sentence) -> float:
    """Processor seconds that a decoder step of the sentence alone takes. Raises what decoding raises."""
    beam_size = sentence.options.beam_size
    batch = decoder.open_batch(beam_size)
    beams = Beams(beam_size=beam_size, vocabulary=decoder.target_vocabulary, bos=decoder.bos, eos=decoder.eos)
    origin_S = np.zeros(1, np.int64)
    batch.regroup(origin_S, [decoder.encode([sentence.source], beam_size)], len(sentence.source))
    beams.regroup(origin_S, [sentence])
    quickest = float("inf")
    for _ in range(NUM_STEPS):
        rows = beams.rows()
        # The thread's own time: what else the machine does says nothing of the model.
        began = time.thread_time()
        output = batch.step(rows)
        quickest = min(quickest, time.thread_time() - began)
        beams.advance(output)
    return quickest

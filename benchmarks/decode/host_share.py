"""How much of the wall time passes outside onnxruntime: scheduling, beam bookkeeping, building responses."""

import time
from collections.abc import Sequence
from concurrent.futures import wait

from dragoman_bundle import Bundle

from benchmarks.engines import running_engine, translation_options
from benchmarks.sessions import clocked_sessions
from dragoman_server.engine import BatchStepped, Event
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.text.document import advance, complete, prepare

AIM = 0.15
"""Largest share of wall time outside onnxruntime that is aimed at, in int8 at 64 sentences and beam 5."""
PLACES = 96
"""Sentences that a batch holds, for about 64 in the mean: newcomers are let in where three quarters are
free, and at a file's end none are left."""


class StepCounter:
    """Counts steps and the sentences in them."""

    def __init__(self) -> None:
        self.num_steps = 0
        self.num_sentences = 0

    def hear(self, event: Event) -> None:
        """From the engine."""
        if isinstance(event, BatchStepped):
            self.num_steps += 1
            self.num_sentences += event.num_sentences


def measure_host_share(
    bundle: Bundle, decoder: OnnxDecoder, lines: Sequence[str], beam_size: int
) -> dict[str, float]:
    """Translates the lines once, with one engine, and says where the time went, in seconds and as shares."""
    options = translation_options(bundle, beam_size)
    counter = StepCounter()
    with (
        clocked_sessions() as clock,
        running_engine(
            decoder, beam_size=beam_size, listener=counter.hear, max_rows=PLACES * beam_size
        ) as engine,
    ):
        started = time.perf_counter()
        documents = [prepare(line, bundle, options, deadline=None) for line in lines]
        tokenized = time.perf_counter()
        futures = engine.submit([sentence for document in documents for sentence in document.sentences])
        # Woken once: as in a process of its own, nobody else takes Python's lock meanwhile.
        wait(futures)
        results = iter([future.result() for future in futures])
        searched = time.perf_counter()
        for document in documents:
            complete(advance(document, [next(results) for _ in document.sentences], bundle), bundle)
        ended = time.perf_counter()
    encoder, step = clock.encoder_seconds, clock.step_seconds
    if not step:
        raise RuntimeError("no step was seen: the decoder calls onnxruntime in a way that sessions.py misses")
    in_sessions = encoder + step
    search, response = searched - tokenized, ended - searched
    return {
        "wall_seconds": ended - started,
        "tokenize_seconds": tokenized - started,
        "encoder_seconds": encoder,
        "step_seconds": step,
        "engine_seconds": search - in_sessions,
        "response_seconds": response,
        "outside_share": (search - in_sessions + response) / (search + response),
        "outside_share_with_tokenizing": (tokenized - started + search - in_sessions + response)
        / (tokenized - started + search + response),
        "steps": counter.num_steps,
        "mean_sentences": counter.num_sentences / counter.num_steps,
    }

"""The engine's side of the comparison: lines of text in, lines of text out, target tokens counted."""

import time
from collections.abc import Sequence

from benchmarks.engines import open_decoder, running_engine, translation_options
from benchmarks.peers.worker import Decoded
from dragoman_bundle import Bundle
from dragoman_server.document import complete, prepare
from dragoman_server.engine import OnnxDecoder

SYSTEMS = {"engine_int8": False, "engine_int8_shortlist": True}
"""Our systems, and whether each uses the shortlist."""


def open_system(bundle: Bundle, system: str) -> OnnxDecoder:
    """One of `SYSTEMS`. Raises SystemMissingError."""
    return open_decoder(bundle, precision="int8", shortlist=SYSTEMS[system])


def translate(bundle: Bundle, decoder: OnnxDecoder, lines: Sequence[str], beam: int, threads: int) -> Decoded:
    """Translates the lines with an engine of so many threads, tokenizing and joining included."""
    options = translation_options(bundle, beam)
    with running_engine(decoder, beam_size=beam, threads=threads) as engine:
        started = time.perf_counter()
        documents = [prepare(line, bundle, options, deadline=None) for line in lines]
        futures = engine.submit([sentence for document in documents for sentence in document.sentences])
        results = iter([future.result() for future in futures])
        texts = [
            complete(document, [next(results) for _ in document.sentences], bundle) for document in documents
        ]
        seconds = time.perf_counter() - started
    return Decoded(seconds=seconds, tokens=sum(text.num_target_tokens for text in texts))

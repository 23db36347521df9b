"""The engine's side of the comparison: lines of text in, lines of text out, target tokens counted."""

import time
from collections.abc import Sequence

from dragoman_bundle import Bundle

from benchmarks.engines import open_decoder, running_system
from benchmarks.peers.worker import Decoded
from dragoman_server.engine.onnx.decoder import OnnxDecoder

SYSTEMS = {"engine_int8": False, "engine_int8_shortlist": True}
"""Our systems, and whether each uses the shortlist."""


def open_system(bundle: Bundle, system: str) -> OnnxDecoder:
    """One of `SYSTEMS`. Raises SystemMissingError."""
    return open_decoder(bundle, precision="int8", shortlist=SYSTEMS[system])


def translate(bundle: Bundle, decoder: OnnxDecoder, lines: Sequence[str], beam: int, threads: int) -> Decoded:
    """Translates the lines with an engine of so many threads, tokenizing and joining included."""
    with running_system(bundle, decoder, beam_size=beam, threads=threads) as system:
        started = time.perf_counter()
        texts = system.translate_texts(lines)
        seconds = time.perf_counter() - started
    return Decoded(seconds=seconds, tokens=sum(text.num_target_tokens for text in texts))

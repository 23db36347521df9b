"""A bundle's engine in the caller's own process, from text to text: for corpora, without a server."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dragoman_bundle import open_bundle

from dragoman_server.config import Device, EngineConfig, Precision
from dragoman_server.engine import EngineLimits, FinishReason
from dragoman_server.models.loader import decoder_options, open_engine
from dragoman_server.offline.system import MAX_QUEUE, BundleSystem
from dragoman_server.text.options import Segmentation, TranslationOptions
from dragoman_server.text.translated import TranslatedText


class InProcessTranslator:
    """Translates texts as a server does. Threads may share it."""

    def __init__(self, system: BundleSystem) -> None:
        self._system = system

    def translate(self, texts: Sequence[str]) -> list[tuple[str, bool]]:
        """The translation of each text, and whether that lacks an end: the text's was dropped, or its own
        limit was reached. Raises DecoderError.
        """
        return [_outcome(translated) for translated in self._system.translate_texts(texts)]


def _outcome(translated: TranslatedText) -> tuple[str, bool]:
    first = translated.hypotheses[0] if translated.hypotheses else None
    is_limited = first is not None and first.finish_reason is FinishReason.LENGTH
    return translated.text, translated.truncated or is_limited


@contextmanager
def open_in_process(
    location: str,
    *,
    beam_size: int | None,
    length_penalty: float | None,
    segmentation: str,
    device: Device,
    precision: Precision,
) -> Iterator[InProcessTranslator]:
    """Opens the bundle at `location`, with one engine on a CPU's core or on a GPU.

    What is None is the bundle's own. Raises BundleError, PrecisionUnavailableError, DeviceUnavailableError,
    DecoderError, and ValueError for a segmentation that is none, or a bundle of many languages.
    """
    bundle = open_bundle(Path(location))
    if bundle.manifest.languages:
        raise ValueError(f"{location} is of many languages: serve it, and ask the server for two of them")
    decoding = bundle.manifest.decoding
    config = EngineConfig(
        device=device, precision=precision, threads=1, max_queue=MAX_QUEUE, max_queue_seconds=math.inf
    )
    options = TranslationOptions(
        beam_size=beam_size or decoding.beam_size,
        length_penalty=decoding.length_penalty if length_penalty is None else length_penalty,
        segmentation=Segmentation(segmentation),
    )
    max_beam_size = max(EngineLimits.max_beam_size, options.beam_size)
    engine = open_engine(bundle, decoder_options(config), config, max_beam_size).engine
    try:
        yield InProcessTranslator(BundleSystem(bundle, engine, options, bundle.manifest.key))
    finally:
        engine.close()

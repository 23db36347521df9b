"""A bundle's engine in the caller's own process, from text to text: for corpora, and for quality."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman_bundle import Bundle, open_bundle
from dragoman_bundle.bundle import read_manifest
from dragoman_bundle.manifest import FORMAT_VERSION
from dragoman_bundle.writer import changed_bundle, seal

from dragoman_server.config import Device, EngineConfig, Precision
from dragoman_server.engine import EngineLimits, FinishReason
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.models.language_lookup import closest_pair
from dragoman_server.models.loader import decoder_options, open_engine
from dragoman_server.offline.calibrating import CalibrationError, fit_confidence
from dragoman_server.text.options import Segmentation, TranslationOptions
from dragoman_server.text.stages import advance, complete, prepare
from dragoman_server.text.translated import TranslatedText

MAX_QUEUE = 10_000_000
"""More sentences than any file that is measured with has."""


@dataclass(frozen=True)
class BundleSystem:
    """Translates lines with a bundle, each as one unit."""

    bundle: Bundle
    engine: EnginePool
    options: TranslationOptions
    description: str
    """Model, precision and beam, for a report."""
    details: Mapping[str, str | float | None] = field(default_factory=dict)
    """The same and more in fields, for `dragoman record-quality`."""

    def translate(self, lines: Sequence[str]) -> list[str]:
        return [translated.text for translated in self.translate_texts(lines)]

    def calibrate(self, sources: Sequence[str], references: Sequence[str]) -> list[str]:
        """The lines' translations, by which the bundle's confidence is fitted; it is written into the bundle.

        Raises CalibrationError, and OSError where the bundle can't be written.
        """
        manifest = read_manifest(self.bundle.path)
        if manifest.languages:
            raise CalibrationError(
                f"{self.bundle.path} is of many languages, and a confidence is of two: their sentences "
                "differ in length and quality"
            )
        translated = self.translate_texts(sources)
        confidence = fit_confidence(sources, references, translated)
        with changed_bundle(self.bundle.path) as folder:
            seal(folder, replace(manifest, format_version=FORMAT_VERSION, confidence=confidence))
        return [one.text for one in translated]

    def translate_texts(
        self, lines: Sequence[str], options: TranslationOptions | None = None
    ) -> list[TranslatedText]:
        """The same with all that is known of each; with other `options` if any are given.

        The first are decoded while the last are read. Threads may call it at the same time.
        """
        options = options or self.options
        running = []
        for place, line in enumerate(lines):
            document = prepare(line, self.bundle, options, deadline=None)
            running.append((place, document, self.engine.submit(document.sentences)))
        finished: dict[int, TranslatedText] = {}
        while running:
            # What is asked once more is decoded together, too.
            again = []
            for place, document, futures in running:
                if document.sentences:
                    document = advance(document, [future.result() for future in futures])
                if document.sentences:
                    again.append((place, document, self.engine.submit(document.sentences)))
                else:
                    finished[place] = complete(document)
            running = again
        return [finished[place] for place in range(len(lines))]


@contextmanager
def open_bundle_system(
    location: str,
    *,
    source_language: str | None,
    target_language: str | None,
    beam_size: int,
    length_penalty: float | None = None,
    device: Device,
    precision: Precision,
    shortlist: bool | None = None,
) -> Iterator[BundleSystem]:
    """Opens the bundle at `location`.

    With `shortlist` None it is decoded with a shortlist where it has one.

    Raises BundleError, PrecisionUnavailableError, DeviceUnavailableError, DecoderError, and ValueError where
    the bundle is for other languages than those that are given, or not decoded with a shortlist as asked for.
    """
    bundle = open_bundle(Path(location))
    manifest = bundle.manifest
    pair = closest_pair(manifest, source_language or "", target_language or "")
    if pair is None:
        raise ValueError(
            f"{location} translates from {manifest.source_language} to {manifest.target_language}, not "
            f"{source_language!r} to {target_language!r}"
        )
    if manifest.languages:
        if not (source_language and target_language):
            raise ValueError(f"{location} is of many languages: give the source's and the target's")
        bundle = bundle.between(*pair[1])
    if shortlist and bundle.shortlist is None:
        raise ValueError(f"{location} has no shortlist; export it with --shortlist")
    config = EngineConfig(
        device=device,
        precision=precision,
        shortlist=shortlist is not False,
        max_queue=MAX_QUEUE,
        max_queue_seconds=math.inf,
    )
    running = open_engine(bundle, decoder_options(config), config, max_beam_size=beam_size)
    has_shortlist = running.has_shortlist(beam_size)
    if shortlist and not has_shortlist:
        running.engine.close()
        raise ValueError(
            "on a CPU a greedy search over so few target pieces has no shortlist, as it is slower: "
            "take --beam 2 or more"
        )
    options = TranslationOptions(
        beam_size=beam_size,
        length_penalty=manifest.decoding.length_penalty if length_penalty is None else length_penalty,
        segmentation=Segmentation.LINE,
    )
    providers = ", ".join(sorted(set(running.providers.values())))
    description = f"{manifest.key} {running.precision}, beam {beam_size}, {providers}"
    if has_shortlist:
        description += ", with a shortlist"
    details: Mapping[str, str | float | None] = {
        "bundle": manifest.key,
        "checksum": manifest.checksum(),
        "precision": running.precision,
        "shortlist": has_shortlist,
        "length_penalty": options.length_penalty,
    }
    try:
        yield BundleSystem(bundle, running.engine, options, description, details)
    finally:
        running.engine.close()


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

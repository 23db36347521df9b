"""Writes answers to the wire."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.detection import DetectedLanguage
from dragoman_server.engine import FinishReason
from dragoman_server.glossaries import Glossary
from dragoman_server.models.model import RequestedModel
from dragoman_server.text.align.pairs import AlignedPair
from dragoman_server.text.mapped import Span
from dragoman_server.text.translated import (
    Alignment,
    Timings,
    TranslatedHypothesis,
    TranslatedText,
    WarningKind,
)

_FINISH_REASONS = {reason: getattr(pb, f"FINISH_REASON_{reason.name}") for reason in FinishReason}
_WARNING_KINDS = {kind: getattr(pb, f"WARNING_KIND_{kind.name}") for kind in WarningKind}


def _named_alike(message: type[Message], source: object) -> dict[str, Any]:
    """The values of all fields of a message, from an object that calls them the same."""
    return {name: getattr(source, name) for name in message.DESCRIPTOR.fields_by_name}


def write_reference(model: RequestedModel) -> pb.ModelReference:
    """The name of a model's version, and its languages."""
    return pb.ModelReference(**_named_alike(pb.ModelReference, model.manifest))


def write_model(model: RequestedModel) -> pb.Model:
    manifest, loaded = model.manifest, model.loaded
    decoding = manifest.decoding
    return pb.Model(
        **_named_alike(pb.ModelReference, manifest),
        languages=manifest.languages,
        architecture=manifest.architecture.family,
        parameters=manifest.architecture.parameters,
        precision="" if loaded is None else loaded.precision,
        providers={} if loaded is None else loaded.providers,
        loaded=loaded is not None,
        # Without max_output_tokens: a request that sets none gets a limit from the length of each sentence.
        defaults=pb.DecodingOptions(
            beam_size=model.default_beam_size,
            num_hypotheses=1,
            length_penalty=decoding.length_penalty,
            length_policy=pb.LENGTH_POLICY_SPLIT,
        ),
        max_source_tokens=decoding.max_source_tokens,
        quality=[pb.Quality(**_named_alike(pb.Quality, quality)) for quality in manifest.quality],
        description=model.description,
        licence=manifest.licence,
        credit=manifest.credit,
        calibrated=manifest.confidence is not None,
    )


def write_translation(translated: TranslatedText) -> pb.Translation:
    return pb.Translation(
        text=translated.text,
        hypotheses=map(_write_hypothesis, translated.hypotheses),
        truncated=translated.truncated,
        split=translated.split,
        sentences=translated.num_units,
        source_tokens=translated.num_source_tokens,
        target_tokens=translated.num_target_tokens,
        timings=_write_timings(translated.timings),
        warnings=[
            pb.TranslationWarning(
                kind=_WARNING_KINDS[warning.kind], start=warning.span[0], end=warning.span[1]
            )
            for warning in translated.warnings
        ],
        confidence=translated.confidence,
        sentence_confidences=[
            pb.SentenceConfidence(
                source_start=each.source[0],
                source_end=each.source[1],
                target_start=each.target[0],
                target_end=each.target[1],
                confidence=each.confidence,
            )
            for each in translated.confidences
        ],
    )


def write_aligned_pair(aligned: AlignedPair) -> pb.AlignedTexts:
    """The links of a text and its translation."""
    return pb.AlignedTexts(
        alignments=_write_alignments(aligned.alignments),
        source_tokens=aligned.num_source_tokens,
        target_tokens=aligned.num_target_tokens,
        timings=_write_timings(aligned.timings),
    )


def write_detected(detected: DetectedLanguage) -> pb.DetectedLanguage:
    return pb.DetectedLanguage(
        language=detected.language or "",
        confidence=detected.confidence,
        candidates=[
            pb.LanguageCandidate(
                language=candidate.language, confidence=candidate.confidence, served=candidate.is_served
            )
            for candidate in detected.candidates
        ],
    )


def _write_timings(timings: Timings) -> pb.Timings:
    queue, encode, decode = map(_write_seconds, timings)
    return pb.Timings(queue=queue, encode=encode, decode=decode)


def write_glossary(glossary: Glossary) -> pb.Glossary:
    return pb.Glossary(name=glossary.name, languages=glossary.languages, entries=len(glossary.entries))


def _write_hypothesis(hypothesis: TranslatedHypothesis) -> pb.Hypothesis:
    return pb.Hypothesis(
        text=hypothesis.text,
        score=hypothesis.score,
        log_probability=hypothesis.log_probability,
        finish_reason=_FINISH_REASONS[hypothesis.finish_reason],
        alignments=_write_alignments(hypothesis.alignments),
    )


def _write_alignments(links: Iterable[Alignment]) -> list[pb.Alignment]:
    return [write_alignment(link.source, link.target, link.weight) for link in links]


def write_alignment(source: Span, target: Span, weight: float) -> pb.Alignment:
    """A link between words, as ranges of code points."""
    (first, end), (target_first, target_end) = source, target
    return pb.Alignment(
        source_start=first, source_end=end, target_start=target_first, target_end=target_end, weight=weight
    )


def _write_seconds(seconds: float) -> Duration:
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration

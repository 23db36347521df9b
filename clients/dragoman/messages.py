"""Converts the client's plain values to the messages of the wire contract and back, for both clients
alike."""

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, get_args

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from dragoman.model import DecodingDefaults, Glossary, Model, ModelReference, Quality
from dragoman.settings import LengthPolicy, Priority, Settings, check_choice
from dragoman.translation import (
    AlignedTexts,
    Alignment,
    DetectedLanguage,
    FinishReason,
    Hypothesis,
    LanguageCandidate,
    SentenceConfidence,
    Timings,
    Translation,
    TranslationWarning,
    WarningKind,
)
from dragoman.v1 import translation_pb2 as pb
from dragoman_files.texts import ranges_of

Plain = TypeVar("Plain")

TEXTS_PER_MESSAGE = 32
"""Texts in one message of a stream whose texts are all at hand."""
MAX_MESSAGE_TEXTS = 4096
"""Most texts in one message of a stream: servers take no more."""
MAX_MESSAGE_BYTES = 1 << 16
"""Most bytes of text in one message of a stream, or of one longer text."""

_WARNING_KINDS = {
    getattr(pb, f"WARNING_KIND_{kind.name}"): kind for kind in WarningKind if kind is not WarningKind.UNKNOWN
}
_LENGTH_POLICY_NAMES = {getattr(pb, f"LENGTH_POLICY_{name.upper()}"): name for name in get_args(LengthPolicy)}
_FINISH_REASONS = {pb.FINISH_REASON_STOP: FinishReason.STOP, pb.FINISH_REASON_LENGTH: FinishReason.LENGTH}


def translate_request(texts: list[str], settings: Settings) -> pb.TranslateRequest:
    return pb.TranslateRequest(
        texts=texts,
        **_fields(settings),
        # For each text or for none.
        protected_ranges=map(_text_ranges, texts) if any(map(ranges_of, texts)) else None,
    )


def stream_config(settings: Settings) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**_fields(settings), join_results=True))


def stream_item(id_: str, text: str) -> pb.TranslateStreamItem:
    """The message of one text of a stream."""
    return pb.TranslateStreamItem(id=id_, text=text, protected_ranges=_text_ranges(text).ranges)


def stream_items(items: list[pb.TranslateStreamItem]) -> pb.TranslateStreamRequest:
    """The message of one text of a stream, or of several."""
    if len(items) == 1:
        return pb.TranslateStreamRequest(item=items[0])
    return pb.TranslateStreamRequest(items=pb.TranslateStreamItems(items=items))


def _text_ranges(text: str) -> pb.TextRanges:
    return pb.TextRanges(ranges=[pb.TextRange(start=start, end=end) for start, end in ranges_of(text)])


def _fields(settings: Settings) -> dict[str, Any]:
    """The fields that a request and the configuration of a stream have in common."""
    decoding = {name: getattr(settings, name) for name in pb.DecodingOptions.DESCRIPTOR.fields_by_name}
    decoding["length_policy"] = _enum("LENGTH_POLICY", settings.length_policy)
    decoding["formality"] = _enum("FORMALITY", settings.formality)
    return {
        "source_language": settings.source,
        "target_language": settings.target,
        "model": settings.model or "",
        "options": pb.DecodingOptions(**decoding),
        "return_alignments": settings.alignments,
        "segmentation": _enum("SEGMENTATION", settings.segmentation),
        "priority": priority_of(settings.priority),
        "text_format": _enum("TEXT_FORMAT", settings.text_format),
        "protection": _protection(settings),
        "pivot_language": settings.pivot,
    }


def priority_of(name: Priority | None) -> Any:
    """The priority's value. Raises InvalidRequestError for no such priority."""
    check_choice(name, Priority, "priority")
    return _enum("PRIORITY", name)


def _enum(prefix: str, name: str | None) -> Any:
    """The enumeration's value of this name; None of None, which leaves the choice to the server."""
    return None if name is None else getattr(pb, f"{prefix}_{name.upper()}")


def _protection(settings: Settings) -> pb.Protection | None:
    """None where nothing is asked for: older servers have no such thing."""
    terms = settings.terms or {}
    protection = pb.Protection(
        automatic=settings.protect,
        do_not_translate=settings.do_not_translate or (),
        patterns=settings.patterns or (),
        terms=[pb.Term(source=source, target=target) for source, target in terms.items()],
        glossaries=settings.glossaries or (),
        inflected_terms=settings.inflected_terms or False,
        terms_as_written=settings.terms_as_written or False,
        forbidden=settings.forbidden or (),
    )
    return protection if protection.ByteSize() else None


def translations(response: pb.TranslateResponse) -> list[Translation]:
    """The translations of a response, in its order."""
    model = model_reference(response.model)
    path = tuple(map(model_reference, response.path))
    return [translation(message, model, path) for message in response.translations]


def aligned_texts(response: pb.AlignTextsResponse) -> list[AlignedTexts]:
    """The links of a response, in its order."""
    model = model_reference(response.model) if response.HasField("model") else None
    return [
        _plain(
            AlignedTexts,
            message,
            alignments=_alignments(message.alignments),
            model=model,
            aligner=response.aligner or None,
            timings=_timings(message.timings),
        )
        for message in response.pairs
    ]


def detected_languages(response: pb.DetectLanguageResponse) -> list[DetectedLanguage]:
    """The languages of a response, in its order."""
    return [
        _plain(
            DetectedLanguage,
            message,
            language=message.language or None,
            candidates=tuple(_plain(LanguageCandidate, candidate) for candidate in message.candidates),
        )
        for message in response.texts
    ]


def translation(
    message: pb.Translation, model: ModelReference, path: tuple[ModelReference, ...] = ()
) -> Translation:
    return _plain(
        Translation,
        message,
        hypotheses=tuple(
            _plain(
                Hypothesis,
                hypothesis,
                finish_reason=_FINISH_REASONS.get(hypothesis.finish_reason, FinishReason.UNKNOWN),
                alignments=_alignments(hypothesis.alignments),
            )
            for hypothesis in message.hypotheses
        ),
        model=model,
        path=path,
        timings=_timings(message.timings),
        warnings=tuple(
            _plain(TranslationWarning, warning, kind=_WARNING_KINDS.get(warning.kind, WarningKind.UNKNOWN))
            for warning in message.warnings
        ),
        sentence_confidences=tuple(_plain(SentenceConfidence, each) for each in message.sentence_confidences),
    )


def _timings(message: pb.Timings) -> Timings:
    durations = (message.queue, message.encode, message.decode)
    queue, encode, decode = (duration.seconds + duration.nanos * 1e-9 for duration in durations)
    return Timings(queue_seconds=queue, encode_seconds=encode, decode_seconds=decode)


def _alignments(links: Iterable[pb.Alignment]) -> tuple[Alignment, ...]:
    return tuple(_plain(Alignment, link) for link in links)


def model_reference(message: pb.ModelReference) -> ModelReference:
    return _plain(ModelReference, message)


def model(message: pb.Model) -> Model:
    policy = _LENGTH_POLICY_NAMES.get(message.defaults.length_policy)
    return _plain(
        Model,
        message,
        reference=_plain(ModelReference, message),
        providers=dict(message.providers),
        defaults=_plain(DecodingDefaults, message.defaults, length_policy=policy),
        quality=tuple(_plain(Quality, quality) for quality in message.quality),
        languages=tuple(message.languages),
        loaded=not message.HasField("loaded") or message.loaded,
    )


def glossary(message: pb.Glossary) -> Glossary:
    return _plain(Glossary, message, languages=tuple(message.languages))


def _plain(kind: type[Plain], message: Message, /, **converted: Any) -> Plain:
    """The plain value of a message: each field that is not converted is the message's of the same name, None
    where that is optional and not set."""
    for name, is_optional in _fields_of(kind, message.DESCRIPTOR):  # type: ignore[arg-type]
        if name not in converted:
            converted[name] = getattr(message, name) if not is_optional or message.HasField(name) else None
    return kind(**converted)


@cache
def _fields_of(kind: type[Any], descriptor: Descriptor) -> list[tuple[str, bool]]:
    """The fields that a plain value and a message have in common, and whether each is optional."""
    there = descriptor.fields_by_name
    return [(field.name, there[field.name].has_presence) for field in fields(kind) if field.name in there]

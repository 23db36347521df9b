import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Formality(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORMALITY_UNSPECIFIED: _ClassVar[Formality]
    FORMALITY_FORMAL: _ClassVar[Formality]
    FORMALITY_INFORMAL: _ClassVar[Formality]

class TextFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TEXT_FORMAT_UNSPECIFIED: _ClassVar[TextFormat]
    TEXT_FORMAT_PLAIN: _ClassVar[TextFormat]
    TEXT_FORMAT_HTML: _ClassVar[TextFormat]

class WarningKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WARNING_KIND_UNSPECIFIED: _ClassVar[WarningKind]
    WARNING_KIND_UNKNOWN_TOKENS: _ClassVar[WarningKind]
    WARNING_KIND_SPAN_PUT_BACK: _ClassVar[WarningKind]
    WARNING_KIND_SPAN_MISSING: _ClassVar[WarningKind]
    WARNING_KIND_NUMBER_PUT_BACK: _ClassVar[WarningKind]
    WARNING_KIND_NUMBER_MISSING: _ClassVar[WarningKind]
    WARNING_KIND_REPETITION: _ClassVar[WarningKind]
    WARNING_KIND_OUTPUT_LIMIT: _ClassVar[WarningKind]
    WARNING_KIND_LENGTH: _ClassVar[WarningKind]
    WARNING_KIND_UNTRANSLATED: _ClassVar[WarningKind]
    WARNING_KIND_FOREIGN_SCRIPT: _ClassVar[WarningKind]
    WARNING_KIND_OMISSION: _ClassVar[WarningKind]
    WARNING_KIND_BRACKETS: _ClassVar[WarningKind]
    WARNING_KIND_NAME_MISSING: _ClassVar[WarningKind]
    WARNING_KIND_FORBIDDEN_TERM: _ClassVar[WarningKind]
    WARNING_KIND_NUMBER_AMBIGUOUS: _ClassVar[WarningKind]

class LengthPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LENGTH_POLICY_UNSPECIFIED: _ClassVar[LengthPolicy]
    LENGTH_POLICY_SPLIT: _ClassVar[LengthPolicy]
    LENGTH_POLICY_REJECT: _ClassVar[LengthPolicy]
    LENGTH_POLICY_TRUNCATE: _ClassVar[LengthPolicy]

class Segmentation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEGMENTATION_UNSPECIFIED: _ClassVar[Segmentation]
    SEGMENTATION_SENTENCE: _ClassVar[Segmentation]
    SEGMENTATION_LINE: _ClassVar[Segmentation]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_INTERACTIVE: _ClassVar[Priority]
    PRIORITY_BULK: _ClassVar[Priority]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_STOP: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]
FORMALITY_UNSPECIFIED: Formality
FORMALITY_FORMAL: Formality
FORMALITY_INFORMAL: Formality
TEXT_FORMAT_UNSPECIFIED: TextFormat
TEXT_FORMAT_PLAIN: TextFormat
TEXT_FORMAT_HTML: TextFormat
WARNING_KIND_UNSPECIFIED: WarningKind
WARNING_KIND_UNKNOWN_TOKENS: WarningKind
WARNING_KIND_SPAN_PUT_BACK: WarningKind
WARNING_KIND_SPAN_MISSING: WarningKind
WARNING_KIND_NUMBER_PUT_BACK: WarningKind
WARNING_KIND_NUMBER_MISSING: WarningKind
WARNING_KIND_REPETITION: WarningKind
WARNING_KIND_OUTPUT_LIMIT: WarningKind
WARNING_KIND_LENGTH: WarningKind
WARNING_KIND_UNTRANSLATED: WarningKind
WARNING_KIND_FOREIGN_SCRIPT: WarningKind
WARNING_KIND_OMISSION: WarningKind
WARNING_KIND_BRACKETS: WarningKind
WARNING_KIND_NAME_MISSING: WarningKind
WARNING_KIND_FORBIDDEN_TERM: WarningKind
WARNING_KIND_NUMBER_AMBIGUOUS: WarningKind
LENGTH_POLICY_UNSPECIFIED: LengthPolicy
LENGTH_POLICY_SPLIT: LengthPolicy
LENGTH_POLICY_REJECT: LengthPolicy
LENGTH_POLICY_TRUNCATE: LengthPolicy
SEGMENTATION_UNSPECIFIED: Segmentation
SEGMENTATION_SENTENCE: Segmentation
SEGMENTATION_LINE: Segmentation
PRIORITY_UNSPECIFIED: Priority
PRIORITY_INTERACTIVE: Priority
PRIORITY_BULK: Priority
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_STOP: FinishReason
FINISH_REASON_LENGTH: FinishReason

class DecodingOptions(_message.Message):
    __slots__ = ("beam_size", "num_hypotheses", "length_penalty", "max_output_tokens", "target_prefix", "length_policy", "formality")
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_PREFIX_FIELD_NUMBER: _ClassVar[int]
    LENGTH_POLICY_FIELD_NUMBER: _ClassVar[int]
    FORMALITY_FIELD_NUMBER: _ClassVar[int]
    beam_size: int
    num_hypotheses: int
    length_penalty: float
    max_output_tokens: int
    target_prefix: str
    length_policy: LengthPolicy
    formality: Formality
    def __init__(self, beam_size: _Optional[int] = ..., num_hypotheses: _Optional[int] = ..., length_penalty: _Optional[float] = ..., max_output_tokens: _Optional[int] = ..., target_prefix: _Optional[str] = ..., length_policy: _Optional[_Union[LengthPolicy, str]] = ..., formality: _Optional[_Union[Formality, str]] = ...) -> None: ...

class Protection(_message.Message):
    __slots__ = ("automatic", "do_not_translate", "patterns", "terms", "glossaries", "untranslated_elements", "inflected_terms", "terms_as_written", "forbidden")
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    DO_NOT_TRANSLATE_FIELD_NUMBER: _ClassVar[int]
    PATTERNS_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    UNTRANSLATED_ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    INFLECTED_TERMS_FIELD_NUMBER: _ClassVar[int]
    TERMS_AS_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    FORBIDDEN_FIELD_NUMBER: _ClassVar[int]
    automatic: bool
    do_not_translate: _containers.RepeatedScalarFieldContainer[str]
    patterns: _containers.RepeatedScalarFieldContainer[str]
    terms: _containers.RepeatedCompositeFieldContainer[Term]
    glossaries: _containers.RepeatedScalarFieldContainer[str]
    untranslated_elements: _containers.RepeatedScalarFieldContainer[str]
    inflected_terms: bool
    terms_as_written: bool
    forbidden: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, automatic: _Optional[bool] = ..., do_not_translate: _Optional[_Iterable[str]] = ..., patterns: _Optional[_Iterable[str]] = ..., terms: _Optional[_Iterable[_Union[Term, _Mapping]]] = ..., glossaries: _Optional[_Iterable[str]] = ..., untranslated_elements: _Optional[_Iterable[str]] = ..., inflected_terms: _Optional[bool] = ..., terms_as_written: _Optional[bool] = ..., forbidden: _Optional[_Iterable[str]] = ...) -> None: ...

class Term(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class TextRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class TextRanges(_message.Message):
    __slots__ = ("ranges",)
    RANGES_FIELD_NUMBER: _ClassVar[int]
    ranges: _containers.RepeatedCompositeFieldContainer[TextRange]
    def __init__(self, ranges: _Optional[_Iterable[_Union[TextRange, _Mapping]]] = ...) -> None: ...

class TranslateRequest(_message.Message):
    __slots__ = ("texts", "source_language", "target_language", "model", "options", "return_alignments", "segmentation", "priority", "text_format", "protection", "protected_ranges", "pivot_language")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    RETURN_ALIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTATION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    PROTECTION_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_RANGES_FIELD_NUMBER: _ClassVar[int]
    PIVOT_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    source_language: str
    target_language: str
    model: str
    options: DecodingOptions
    return_alignments: bool
    segmentation: Segmentation
    priority: Priority
    text_format: TextFormat
    protection: Protection
    protected_ranges: _containers.RepeatedCompositeFieldContainer[TextRanges]
    pivot_language: str
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[DecodingOptions, _Mapping]] = ..., return_alignments: _Optional[bool] = ..., segmentation: _Optional[_Union[Segmentation, str]] = ..., priority: _Optional[_Union[Priority, str]] = ..., text_format: _Optional[_Union[TextFormat, str]] = ..., protection: _Optional[_Union[Protection, _Mapping]] = ..., protected_ranges: _Optional[_Iterable[_Union[TextRanges, _Mapping]]] = ..., pivot_language: _Optional[str] = ...) -> None: ...

class TranslateResponse(_message.Message):
    __slots__ = ("translations", "model", "path")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    model: ModelReference
    path: _containers.RepeatedCompositeFieldContainer[ModelReference]
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ..., model: _Optional[_Union[ModelReference, _Mapping]] = ..., path: _Optional[_Iterable[_Union[ModelReference, _Mapping]]] = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("text", "hypotheses", "truncated", "split", "sentences", "source_tokens", "target_tokens", "timings", "warnings", "confidence", "sentence_confidences")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_CONFIDENCES_FIELD_NUMBER: _ClassVar[int]
    text: str
    hypotheses: _containers.RepeatedCompositeFieldContainer[Hypothesis]
    truncated: bool
    split: bool
    sentences: int
    source_tokens: int
    target_tokens: int
    timings: Timings
    warnings: _containers.RepeatedCompositeFieldContainer[TranslationWarning]
    confidence: float
    sentence_confidences: _containers.RepeatedCompositeFieldContainer[SentenceConfidence]
    def __init__(self, text: _Optional[str] = ..., hypotheses: _Optional[_Iterable[_Union[Hypothesis, _Mapping]]] = ..., truncated: _Optional[bool] = ..., split: _Optional[bool] = ..., sentences: _Optional[int] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., timings: _Optional[_Union[Timings, _Mapping]] = ..., warnings: _Optional[_Iterable[_Union[TranslationWarning, _Mapping]]] = ..., confidence: _Optional[float] = ..., sentence_confidences: _Optional[_Iterable[_Union[SentenceConfidence, _Mapping]]] = ...) -> None: ...

class SentenceConfidence(_message.Message):
    __slots__ = ("source_start", "source_end", "target_start", "target_end", "confidence")
    SOURCE_START_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    TARGET_START_FIELD_NUMBER: _ClassVar[int]
    TARGET_END_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    confidence: float
    def __init__(self, source_start: _Optional[int] = ..., source_end: _Optional[int] = ..., target_start: _Optional[int] = ..., target_end: _Optional[int] = ..., confidence: _Optional[float] = ...) -> None: ...

class TranslationWarning(_message.Message):
    __slots__ = ("kind", "start", "end")
    KIND_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    kind: WarningKind
    start: int
    end: int
    def __init__(self, kind: _Optional[_Union[WarningKind, str]] = ..., start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class Hypothesis(_message.Message):
    __slots__ = ("text", "score", "log_probability", "finish_reason", "alignments")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    text: str
    score: float
    log_probability: float
    finish_reason: FinishReason
    alignments: _containers.RepeatedCompositeFieldContainer[Alignment]
    def __init__(self, text: _Optional[str] = ..., score: _Optional[float] = ..., log_probability: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., alignments: _Optional[_Iterable[_Union[Alignment, _Mapping]]] = ...) -> None: ...

class Alignment(_message.Message):
    __slots__ = ("source_start", "source_end", "target_start", "target_end", "weight")
    SOURCE_START_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    TARGET_START_FIELD_NUMBER: _ClassVar[int]
    TARGET_END_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    weight: float
    def __init__(self, source_start: _Optional[int] = ..., source_end: _Optional[int] = ..., target_start: _Optional[int] = ..., target_end: _Optional[int] = ..., weight: _Optional[float] = ...) -> None: ...

class Timings(_message.Message):
    __slots__ = ("queue", "encode", "decode")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ENCODE_FIELD_NUMBER: _ClassVar[int]
    DECODE_FIELD_NUMBER: _ClassVar[int]
    queue: _duration_pb2.Duration
    encode: _duration_pb2.Duration
    decode: _duration_pb2.Duration
    def __init__(self, queue: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., encode: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., decode: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AlignTextsRequest(_message.Message):
    __slots__ = ("pairs", "source_language", "target_language", "model", "priority", "aligner")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ALIGNER_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[TextPair]
    source_language: str
    target_language: str
    model: str
    priority: Priority
    aligner: str
    def __init__(self, pairs: _Optional[_Iterable[_Union[TextPair, _Mapping]]] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., model: _Optional[str] = ..., priority: _Optional[_Union[Priority, str]] = ..., aligner: _Optional[str] = ...) -> None: ...

class TextPair(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class AlignTextsResponse(_message.Message):
    __slots__ = ("pairs", "model", "aligner")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ALIGNER_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[AlignedTexts]
    model: ModelReference
    aligner: str
    def __init__(self, pairs: _Optional[_Iterable[_Union[AlignedTexts, _Mapping]]] = ..., model: _Optional[_Union[ModelReference, _Mapping]] = ..., aligner: _Optional[str] = ...) -> None: ...

class AlignedTexts(_message.Message):
    __slots__ = ("alignments", "source_tokens", "target_tokens", "timings")
    ALIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    alignments: _containers.RepeatedCompositeFieldContainer[Alignment]
    source_tokens: int
    target_tokens: int
    timings: Timings
    def __init__(self, alignments: _Optional[_Iterable[_Union[Alignment, _Mapping]]] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., timings: _Optional[_Union[Timings, _Mapping]] = ...) -> None: ...

class DetectLanguageRequest(_message.Message):
    __slots__ = ("texts", "target_language")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    target_language: str
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., target_language: _Optional[str] = ...) -> None: ...

class DetectLanguageResponse(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedCompositeFieldContainer[DetectedLanguage]
    def __init__(self, texts: _Optional[_Iterable[_Union[DetectedLanguage, _Mapping]]] = ...) -> None: ...

class DetectedLanguage(_message.Message):
    __slots__ = ("language", "confidence", "candidates")
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    language: str
    confidence: float
    candidates: _containers.RepeatedCompositeFieldContainer[LanguageCandidate]
    def __init__(self, language: _Optional[str] = ..., confidence: _Optional[float] = ..., candidates: _Optional[_Iterable[_Union[LanguageCandidate, _Mapping]]] = ...) -> None: ...

class LanguageCandidate(_message.Message):
    __slots__ = ("language", "confidence", "served")
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    language: str
    confidence: float
    served: bool
    def __init__(self, language: _Optional[str] = ..., confidence: _Optional[float] = ..., served: _Optional[bool] = ...) -> None: ...

class TranslateStreamRequest(_message.Message):
    __slots__ = ("config", "item", "items")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    config: TranslateStreamConfig
    item: TranslateStreamItem
    items: TranslateStreamItems
    def __init__(self, config: _Optional[_Union[TranslateStreamConfig, _Mapping]] = ..., item: _Optional[_Union[TranslateStreamItem, _Mapping]] = ..., items: _Optional[_Union[TranslateStreamItems, _Mapping]] = ...) -> None: ...

class TranslateStreamConfig(_message.Message):
    __slots__ = ("source_language", "target_language", "model", "options", "return_alignments", "segmentation", "priority", "join_results", "text_format", "protection", "pivot_language")
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    RETURN_ALIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTATION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    JOIN_RESULTS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    PROTECTION_FIELD_NUMBER: _ClassVar[int]
    PIVOT_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    source_language: str
    target_language: str
    model: str
    options: DecodingOptions
    return_alignments: bool
    segmentation: Segmentation
    priority: Priority
    join_results: bool
    text_format: TextFormat
    protection: Protection
    pivot_language: str
    def __init__(self, source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[DecodingOptions, _Mapping]] = ..., return_alignments: _Optional[bool] = ..., segmentation: _Optional[_Union[Segmentation, str]] = ..., priority: _Optional[_Union[Priority, str]] = ..., join_results: _Optional[bool] = ..., text_format: _Optional[_Union[TextFormat, str]] = ..., protection: _Optional[_Union[Protection, _Mapping]] = ..., pivot_language: _Optional[str] = ...) -> None: ...

class TranslateStreamItems(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[TranslateStreamItem]
    def __init__(self, items: _Optional[_Iterable[_Union[TranslateStreamItem, _Mapping]]] = ...) -> None: ...

class TranslateStreamItem(_message.Message):
    __slots__ = ("id", "text", "protected_ranges")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_RANGES_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    protected_ranges: _containers.RepeatedCompositeFieldContainer[TextRange]
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., protected_ranges: _Optional[_Iterable[_Union[TextRange, _Mapping]]] = ...) -> None: ...

class TranslateStreamResponse(_message.Message):
    __slots__ = ("id", "translation", "error", "results", "model", "path")
    ID_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    id: str
    translation: Translation
    error: _status_pb2.Status
    results: TranslateStreamResults
    model: ModelReference
    path: _containers.RepeatedCompositeFieldContainer[ModelReference]
    def __init__(self, id: _Optional[str] = ..., translation: _Optional[_Union[Translation, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., results: _Optional[_Union[TranslateStreamResults, _Mapping]] = ..., model: _Optional[_Union[ModelReference, _Mapping]] = ..., path: _Optional[_Iterable[_Union[ModelReference, _Mapping]]] = ...) -> None: ...

class TranslateStreamResults(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TranslateStreamResponse]
    def __init__(self, results: _Optional[_Iterable[_Union[TranslateStreamResponse, _Mapping]]] = ...) -> None: ...

class ModelReference(_message.Message):
    __slots__ = ("name", "version", "source_language", "target_language")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    source_language: str
    target_language: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("source_language", "target_language")
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    source_language: str
    target_language: str
    def __init__(self, source_language: _Optional[str] = ..., target_language: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: Model
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("name", "version", "source_language", "target_language", "architecture", "parameters", "precision", "providers", "defaults", "max_source_tokens", "quality", "licence", "credit", "loaded", "languages", "description", "calibrated")
    class ProvidersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    PROVIDERS_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    MAX_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    LICENCE_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    LOADED_FIELD_NUMBER: _ClassVar[int]
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CALIBRATED_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    source_language: str
    target_language: str
    architecture: str
    parameters: int
    precision: str
    providers: _containers.ScalarMap[str, str]
    defaults: DecodingOptions
    max_source_tokens: int
    quality: _containers.RepeatedCompositeFieldContainer[Quality]
    licence: str
    credit: str
    loaded: bool
    languages: _containers.RepeatedScalarFieldContainer[str]
    description: str
    calibrated: bool
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., architecture: _Optional[str] = ..., parameters: _Optional[int] = ..., precision: _Optional[str] = ..., providers: _Optional[_Mapping[str, str]] = ..., defaults: _Optional[_Union[DecodingOptions, _Mapping]] = ..., max_source_tokens: _Optional[int] = ..., quality: _Optional[_Iterable[_Union[Quality, _Mapping]]] = ..., licence: _Optional[str] = ..., credit: _Optional[str] = ..., loaded: _Optional[bool] = ..., languages: _Optional[_Iterable[str]] = ..., description: _Optional[str] = ..., calibrated: _Optional[bool] = ...) -> None: ...

class Quality(_message.Message):
    __slots__ = ("test_set", "metric", "score", "signature", "precision", "beam_size", "shortlist", "length_penalty")
    TEST_SET_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    SHORTLIST_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    test_set: str
    metric: str
    score: float
    signature: str
    precision: str
    beam_size: int
    shortlist: bool
    length_penalty: float
    def __init__(self, test_set: _Optional[str] = ..., metric: _Optional[str] = ..., score: _Optional[float] = ..., signature: _Optional[str] = ..., precision: _Optional[str] = ..., beam_size: _Optional[int] = ..., shortlist: _Optional[bool] = ..., length_penalty: _Optional[float] = ...) -> None: ...

class ListGlossariesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGlossariesResponse(_message.Message):
    __slots__ = ("glossaries",)
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    glossaries: _containers.RepeatedCompositeFieldContainer[Glossary]
    def __init__(self, glossaries: _Optional[_Iterable[_Union[Glossary, _Mapping]]] = ...) -> None: ...

class Glossary(_message.Message):
    __slots__ = ("name", "languages", "entries")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    languages: _containers.RepeatedScalarFieldContainer[str]
    entries: int
    def __init__(self, name: _Optional[str] = ..., languages: _Optional[_Iterable[str]] = ..., entries: _Optional[int] = ...) -> None: ...

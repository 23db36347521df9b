"""Reads requests off the wire: every field is checked, and what is wrong is told at once.

Owns the limits of what a caller may ask for and the names of the fields in violations.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any, TypeVar

from dragoman_bundle import Bundle
from dragoman_bundle.tokenizers.tokenizer import FORMAL, INFORMAL

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.aligners.aligner import ServedAligner
from dragoman_server.aligners.linking import LinkingRequest
from dragoman_server.config import RequestLimits
from dragoman_server.engine import Priority
from dragoman_server.errors import AlignerNotFoundError, Violation, list_names, quote, raise_if_any, refusal
from dragoman_server.glossaries import Glossary
from dragoman_server.models.language_lookup import distance
from dragoman_server.models.model import Model, RequestedModel
from dragoman_server.models.repository import Repository
from dragoman_server.service.protection import read_protection, read_ranges
from dragoman_server.service.translating import AlignmentRequest, TranslationRequest
from dragoman_server.text.align.pairs import PairOptions
from dragoman_server.text.mapped import Span
from dragoman_server.text.options import LengthPolicy, Segmentation, TextFormat, TranslationOptions
from dragoman_server.text.read.clean import clean

MAX_LENGTH_PENALTY = 10.0
"""Largest exponent that a request may ask for, far from where its power overflows."""
MAX_TARGET_PREFIX_CHARACTERS = 4_000
"""Longest target prefix: it is tokenized on the event loop, for a couple of milliseconds."""

Kind = TypeVar("Kind", bound=Enum)


def _by_number(prefix: str, kinds: type[Kind]) -> dict[int, Kind]:
    """The members of an enumeration by the numbers that the proto gives to their names."""
    return {getattr(pb, f"{prefix}_{kind.name}"): kind for kind in kinds}


# A request that says nothing has a number of 0.
_LENGTH_POLICIES = {0: LengthPolicy.SPLIT} | _by_number("LENGTH_POLICY", LengthPolicy)
_FORMALITIES = {0: "", pb.FORMALITY_FORMAL: FORMAL, pb.FORMALITY_INFORMAL: INFORMAL}
_SEGMENTATIONS = {0: Segmentation.SENTENCE} | _by_number("SEGMENTATION", Segmentation)
_TEXT_FORMATS = {0: TextFormat.PLAIN} | _by_number("TEXT_FORMAT", TextFormat)
_PRIORITIES = _by_number("PRIORITY", Priority)

RequestSettings = pb.TranslateRequest | pb.TranslateStreamConfig
AnyRequest = RequestSettings | pb.AlignTextsRequest


@dataclass(frozen=True)
class RequestReader:
    repository: Repository
    limits: RequestLimits
    glossaries: Mapping[str, Glossary]
    aligners: Mapping[str, ServedAligner]

    def choose_model(self, message: AnyRequest) -> RequestedModel:
        """The model that a message names, or one for its languages.

        Raises ModelNotFoundError, or InvalidRequestError where the message says too little or contradicts
        itself.
        """
        requested = {"source_language": message.source_language, "target_language": message.target_language}
        missing = [field for field, value in requested.items() if not value.strip()]
        if not message.model:
            raise_if_any([Violation(field, "is required") for field in missing])
            return self.repository.by_languages(message.source_language, message.target_language)
        model = self.repository.by_name(message.model)
        translated = dict(zip(requested, (model.manifest.sources, model.manifest.targets), strict=True))
        violations = [
            Violation(field, f"is {quote(value)}, and model {model.key} has {list_names(translated[field])}")
            for field, value in requested.items()
            if value.strip() and all(distance(value, has) is None for has in translated[field])
        ]
        if model.manifest.languages:
            why = f"is required: model {model.key} is of many languages"
            violations += [Violation(field, why) for field in missing]
        if not violations and model.distance(*requested.values()) is None:
            violations = [Violation("target_language", "is the language that texts are in")]
        raise_if_any(violations)
        return model.between(*requested.values())

    def choose_aligner(self, message: pb.AlignTextsRequest) -> ServedAligner:
        """The aligner that a message names. Raises AlignerNotFoundError, or InvalidRequestError."""
        if message.model:
            description = f"is {quote(message.model)} beside an aligner, which links in its place; name one"
            raise refusal("model", description)
        aligner = self.aligners.get(message.aligner)
        if aligner is None:
            known = list_names(list(self.aligners)) or "none; a server has those of its --aligners"
            raise AlignerNotFoundError(f"there is no aligner {quote(message.aligner)}; there are: {known}")
        return aligner

    def find_model(self, message: pb.GetModelRequest) -> RequestedModel:
        """The model that is asked about. Raises InvalidRequestError, or ModelNotFoundError."""
        if not message.name:
            raise refusal("name", "is required")
        return self.repository.by_name(message.name)

    def read(self, message: pb.TranslateRequest, model: Model) -> TranslationRequest:
        """A unary request. Raises InvalidRequestError."""
        violations = self._check_texts(message.texts)
        ranges = self._read_ranges(message, violations)
        options = self._read_options(message, model, violations)
        fields = tuple(f"texts[{index}]" for index in range(len(message.texts)))
        return TranslationRequest(
            model=model, texts=tuple(message.texts), options=options, text_fields=fields, ranges=ranges
        )

    def read_pairs(self, message: pb.AlignTextsRequest, model: Model) -> AlignmentRequest:
        """Texts with their translations, for a model. Raises InvalidRequestError."""
        options = PairOptions(
            priority=read_priority(message),
            max_target_tokens=self.limits.max_output_tokens,
            max_interactive_tokens=self.limits.max_interactive_tokens,
        )
        return AlignmentRequest(model=model, pairs=self._check_pairs(message), options=options)

    def read_linking(self, message: pb.AlignTextsRequest, aligner: ServedAligner) -> LinkingRequest:
        """The same for an aligner. Raises InvalidRequestError."""
        return LinkingRequest(
            aligner=aligner,
            pairs=self._check_pairs(message),
            priority=read_priority(message),
            max_words=self.limits.max_aligned_words,
            max_interactive_words=self.limits.max_interactive_tokens,
        )

    def _check_pairs(self, message: pb.AlignTextsRequest) -> tuple[tuple[str, str], ...]:
        """Raises InvalidRequestError."""
        limit = self.limits.max_texts
        violations = []
        if len(message.pairs) > limit:
            description = f"holds {len(message.pairs)} pairs, and a call takes {limit}; send several calls"
            violations.append(Violation("pairs", description))
        else:
            for index, pair in enumerate(message.pairs):
                violations += self._check_text(f"pairs[{index}].source", pair.source)
                violations += self._check_text(f"pairs[{index}].target", pair.target)
        violations += _unless_known("priority", message.priority, _PRIORITIES)
        raise_if_any(violations)
        return tuple((pair.source, pair.target) for pair in message.pairs)

    def read_config(self, message: pb.TranslateStreamConfig, model: Model) -> TranslationOptions:
        """The settings of a stream. Raises InvalidRequestError."""
        return self._read_options(message, model, [])

    def read_item(
        self, item: pb.TranslateStreamItem, model: Model, options: TranslationOptions
    ) -> TranslationRequest:
        """An item of a stream. Raises InvalidRequestError."""
        violations = self._check_text("item.text", item.text)
        ranges = read_ranges(item.protected_ranges, item.text, "item.protected_ranges", violations)
        raise_if_any(violations)
        return TranslationRequest(
            model=model,
            texts=(item.text,),
            options=options,
            text_fields=("item.text",),
            ranges=(ranges,) if ranges else (),
        )

    def check_texts(self, texts: Sequence[str]) -> None:
        """Raises InvalidRequestError for more or longer texts than a call takes."""
        raise_if_any(self._check_texts(texts))

    def _check_texts(self, texts: Sequence[str]) -> list[Violation]:
        if len(texts) > self.limits.max_texts:
            description = f"holds {len(texts)} texts, and a call takes {self.limits.max_texts}; "
            return [Violation("texts", description + "send several calls, or use TranslateStream")]
        found = (self._check_text(f"texts[{index}]", text) for index, text in enumerate(texts))
        return list(chain.from_iterable(found))

    def _check_text(self, field: str, text: str) -> list[Violation]:
        limit = self.limits.max_text_characters
        if len(text) <= limit:
            return []
        return [Violation(field, f"has {len(text)} characters, and a text takes {limit}; cut it up")]

    def _read_ranges(
        self, message: pb.TranslateRequest, violations: list[Violation]
    ) -> tuple[tuple[Span, ...], ...]:
        ranges = message.protected_ranges
        if not ranges:
            return ()
        if len(ranges) != len(message.texts):
            description = f"are of {len(ranges)} texts, and there are {len(message.texts)}; give each its own"
            violations.append(Violation("protected_ranges", description))
            return ()
        return tuple(
            read_ranges(of_text.ranges, text, f"protected_ranges[{rank}]", violations)
            for rank, (of_text, text) in enumerate(zip(ranges, message.texts, strict=True))
        )

    def _read_options(
        self, message: RequestSettings, model: Model, violations: list[Violation]
    ) -> TranslationOptions:
        """Raises InvalidRequestError with `violations` and those of the options."""
        options = message.options
        beam_size = options.beam_size if options.HasField("beam_size") else model.default_beam_size
        violations += _unless_within("options.beam_size", beam_size, self.limits.max_beam_size)
        num_hypotheses = options.num_hypotheses if options.HasField("num_hypotheses") else 1
        if not 1 <= num_hypotheses <= max(1, beam_size):
            description = f"is {num_hypotheses}; it must be from 1 to the beam size, {beam_size}"
            violations.append(Violation("options.num_hypotheses", description))
        is_given = options.HasField("length_penalty")
        length_penalty = options.length_penalty if is_given else model.bundle.manifest.decoding.length_penalty
        if not (math.isfinite(length_penalty) and 0 <= length_penalty <= MAX_LENGTH_PENALTY):
            description = f"is {length_penalty}; it must be from 0 to {MAX_LENGTH_PENALTY:g}"
            violations.append(Violation("options.length_penalty", description))
        max_output_tokens = options.max_output_tokens if options.HasField("max_output_tokens") else None
        limit = self.limits.max_output_tokens
        if max_output_tokens is not None:
            violations += _unless_within("options.max_output_tokens", max_output_tokens, limit)
        target_prefix = _read_target_prefix(
            options.target_prefix, model.bundle, max_output_tokens or limit, limit, violations
        )
        for field, value, known in (
            ("options.length_policy", options.length_policy, _LENGTH_POLICIES),
            ("options.formality", options.formality, _FORMALITIES),
            ("segmentation", message.segmentation, _SEGMENTATIONS),
            ("priority", message.priority, _PRIORITIES),
            ("text_format", message.text_format, _TEXT_FORMATS),
        ):
            violations += _unless_known(field, value, known)
        source_tag = _FORMALITIES.get(options.formality, "")
        if source_tag and not model.knows(source_tag):
            description = f"is set, and {model.key} was not trained for it; leave it out"
            violations.append(Violation("options.formality", description))
        manifest = model.bundle.manifest
        languages = (manifest.source_language, manifest.target_language)
        protection = read_protection(message.protection, languages, self.glossaries, self.limits, violations)
        raise_if_any(violations)
        return TranslationOptions(
            beam_size=beam_size,
            num_hypotheses=num_hypotheses,
            length_penalty=length_penalty,
            max_output_tokens=max_output_tokens,
            max_default_output_tokens=limit,
            target_prefix=target_prefix,
            length_policy=_LENGTH_POLICIES[options.length_policy],
            segmentation=_SEGMENTATIONS[message.segmentation],
            return_alignments=message.return_alignments,
            priority=read_priority(message),
            max_text_tokens=self.limits.max_text_tokens,
            max_interactive_tokens=self.limits.max_interactive_tokens,
            text_format=_TEXT_FORMATS[message.text_format],
            source_tag=source_tag,
            protection=protection,
        )


def _unless_known(field: str, value: int, known: Mapping[Any, object]) -> list[Violation]:
    return [Violation(field, f"is {value}, which is not known")] if value and value not in known else []


def _unless_within(field: str, value: int, maximum: int) -> list[Violation]:
    return [] if 1 <= value <= maximum else [Violation(field, f"is {value}; it must be from 1 to {maximum}")]


def read_priority(message: AnyRequest) -> Priority:
    """The priority that a message asks for. Without one somebody waits for a call, and a stream is a job."""
    default = Priority.BULK if isinstance(message, pb.TranslateStreamConfig) else Priority.INTERACTIVE
    return _PRIORITIES.get(message.priority, default)


def _read_target_prefix(
    text: str, bundle: Bundle, max_output_tokens: int, limit: int, violations: list[Violation]
) -> tuple[int, ...]:
    """`limit` is the most that `max_output_tokens` can be."""
    field = "options.target_prefix"
    if len(text) > (maximum := MAX_TARGET_PREFIX_CHARACTERS):
        description = f"has {len(text)} characters, and a prefix takes {maximum}; shorten it"
        violations.append(Violation(field, description))
        return ()
    tokens = tuple(bundle.target_tokenizer.encode_ids([clean(text).text])[0])
    if len(tokens) >= max_output_tokens:
        description = (
            f"has {len(tokens)} tokens, and it must have fewer than max_output_tokens, {max_output_tokens}; "
            f"shorten it{', or raise that' if max_output_tokens < limit else ''}"
        )
        violations.append(Violation(field, description))
    if bundle.manifest.target_ids.unk in tokens:
        description = "has characters that the model cannot write; leave them out"
        violations.append(Violation(field, description))
    return tokens

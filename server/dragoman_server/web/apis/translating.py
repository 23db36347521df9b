"""Texts of any of our languages to one of them: what requests of LibreTranslate and DeepL have in common.

Each text whose language is not named is detected by itself; those of one language go to its model together.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman_bundle.languages import english_name, primary_language
from dragoman_bundle.tokenizers.tokenizer import FORMAL

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import InvalidRequestError, Violation, list_names, raise_if_any
from dragoman_server.models.language_lookup import distance
from dragoman_server.models.model import ServedModel
from dragoman_server.service.call import Call
from dragoman_server.service.core import ServiceCore
from dragoman_server.text.words import holds_letter


def language_name(code: str) -> str:
    """The language's English name, with the code's region or script; the code where there is no name."""
    name = english_name(code)
    if name is None:
        return code
    more = code.replace("_", "-").partition("-")[2]
    return f"{name} ({more})" if more else name


def targets_by_source(core: ServiceCore) -> dict[str, list[str]]:
    """The languages that models translate from, in order, each with those that one or two of them reach."""
    found: dict[str, set[str]] = {}
    for model in core.models:
        for source in model.manifest.sources:
            found.setdefault(source, set()).update(model.manifest.targets)
    for targets in found.values():
        if core.pivot in targets:
            targets |= found.get(core.pivot, set())
    return {source: sorted(found[source] - {source}) for source in sorted(found)}


def knows_formality(core: ServiceCore, target: str) -> bool:
    """Whether models that translate to the language, or to a region of it, know how to address a reader."""
    language = primary_language(target)
    models = (model for model in core.models if language in map(primary_language, model.manifest.targets))
    return any(model.knows(FORMAL) for model in models)


def all_languages(models: Iterable[ServedModel]) -> list[str]:
    """The languages that models translate from or to, in order."""
    return sorted(
        {language for model in models for language in (*model.manifest.sources, *model.manifest.targets)}
    )


_TEXT_FIELD = re.compile(r"texts\[(\d+)\]")


@dataclass(frozen=True, kw_only=True)
class Answer:
    text: str
    alternatives: tuple[str, ...] = ()
    """Other translations, best first."""
    source_language: str
    """The text's, as it was named or detected; "" where the text holds nothing that tells."""
    confidence: float = 1.0
    """How likely that is: 1 where it was named."""
    num_characters: int = 0
    """The text's, as they count for its caller: 0 where it stays as it is."""


async def translate_texts(
    core: ServiceCore, call: Call, texts: Sequence[str], template: pb.TranslateRequest, *, field: str
) -> list[Answer]:
    """The texts' translations, one to one, with all that the template asks for but its texts.

    Without a source language in the template each text is detected. A text that is in the target language
    already stays as it is. Raises InvalidRequestError, with violations of `field`, also for a text in none of
    the languages that are served, and what the core raises.
    """
    answers: list[Answer | None] = [None] * len(texts)
    languages = await _languages(core, call, texts, template, field)
    groups: dict[str, list[int]] = {}
    for rank, (language, confidence) in enumerate(languages):
        if not language or distance(language, template.target_language) is not None:
            answers[rank] = Answer(text=texts[rank], source_language=language, confidence=confidence)
        else:
            groups.setdefault(language, []).append(rank)
    num_characters = sum(len(texts[rank]) for ranks in groups.values() for rank in ranks)
    async with call.characters(num_characters, field=field) as note_done:
        for language, ranks in groups.items():
            message = pb.TranslateRequest()
            message.CopyFrom(template)
            message.source_language = language
            message.texts.extend(texts[rank] for rank in ranks)
            try:
                response = await core.translate_part(message, call)
            except InvalidRequestError as error:
                raise _renamed(error, field, ranks) from error
            note_done(sum(len(texts[rank]) for rank in ranks))
            for rank, translation in zip(ranks, response.translations, strict=True):
                answers[rank] = Answer(
                    text=translation.text,
                    alternatives=tuple(hypothesis.text for hypothesis in translation.hypotheses[1:]),
                    source_language=language,
                    confidence=languages[rank][1],
                    num_characters=len(texts[rank]),
                )
    return [answer for answer in answers if answer is not None]


async def _languages(
    core: ServiceCore, call: Call, texts: Sequence[str], template: pb.TranslateRequest, field: str
) -> list[tuple[str, float]]:
    """Each text's language and how likely it is."""
    if template.source_language:
        return [(template.source_language, 1.0)] * len(texts)
    request = pb.DetectLanguageRequest(texts=texts, target_language=template.target_language)
    detected = (await core.detect_language(request, call)).texts
    violations = [
        _violation(f"{field}[{rank}]", guess, core)
        for rank, (text, guess) in enumerate(zip(texts, detected, strict=True))
        if not guess.language and holds_letter(text)
    ]
    raise_if_any(violations)
    return [(guess.language, guess.confidence) for guess in detected]


def _violation(field: str, detected: pb.DetectedLanguage, core: ServiceCore) -> Violation:
    served = all_languages(core.models)
    looks = next((candidate.language for candidate in detected.candidates if not candidate.served), "another")
    advice = f"it looks like {looks}. Name its source language if it is one of ours"
    return Violation(field, f"is in none of the languages that are served ({list_names(served)}); {advice}")


def _renamed(error: InvalidRequestError, field: str, ranks: Sequence[int]) -> InvalidRequestError:
    """The error with the texts as the caller calls them."""

    def renamed(found: re.Match[str]) -> str:
        return f"{field}[{ranks[int(found[1])]}]"

    violations = [Violation(_TEXT_FIELD.sub(renamed, name), words) for name, words in error.violations]
    return InvalidRequestError(violations)

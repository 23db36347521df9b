"""Texts whose languages the server detects: which of them go together, and their translations in order."""

import re
from collections.abc import Sequence

from dragoman.arguments import invalid
from dragoman.model import ModelReference
from dragoman.translation import DetectedLanguage, Timings, Translation

AUTO = "auto"
"""In place of a source language: each text's own."""


class AutoSource:
    """The texts of a call, by the language of each."""

    def __init__(self, texts: Sequence[str], found: Sequence[DetectedLanguage], target: str) -> None:
        """Raises InvalidRequestError for a text that clearly is in no language of the server."""
        self._translations: dict[int, Translation] = {}
        self._ranks: dict[str, list[int]] = {}
        self._texts = texts
        for rank, (text, detected) in enumerate(zip(texts, found, strict=True)):
            language = detected.language
            if language is None and any(map(str.isalpha, text)):
                foreign = next((each.language for each in detected.candidates if not each.served), "another")
                raise invalid(
                    "source",
                    f"is auto, and texts[{rank}] is in no language of the server; it looks like {foreign}: "
                    "name its language if it is one of the server's",
                )
            if language is None or _primary(language) == _primary(target):
                self._translations[rank] = _untranslated(text, language or "")
            else:
                self._ranks.setdefault(language, []).append(rank)

    def groups(self) -> list[tuple[str, list[str]]]:
        """The languages that are translated from, with their texts."""
        return [(language, [self._texts[rank] for rank in ranks]) for language, ranks in self._ranks.items()]

    def answer(self, language: str, translations: Sequence[Translation]) -> None:
        """Takes the translations of a group."""
        self._translations.update(zip(self._ranks[language], translations, strict=True))

    def translations(self) -> list[Translation]:
        """All of them, in the order of the texts."""
        return [self._translations[rank] for rank in range(len(self._texts))]


def language_of_all(found: DetectedLanguage) -> str:
    """The language of many texts, by that of their beginning. Raises InvalidRequestError for none."""
    if found.language is None:
        raise invalid(
            "source", "is auto, and the beginning is in no language of the server: name its language"
        )
    return found.language


def _primary(language: str) -> str:
    return re.split("[-_]", language.lower(), maxsplit=1)[0]


def _untranslated(text: str, language: str) -> Translation:
    """The text itself, which needs no translation; no model has seen it."""
    return Translation(
        text=text,
        hypotheses=(),
        model=ModelReference(name="", version="", source_language=language, target_language=language),
        truncated=False,
        split=False,
        sentences=0,
        source_tokens=0,
        target_tokens=0,
        timings=Timings(queue_seconds=0.0, encode_seconds=0.0, decode_seconds=0.0),
    )

"""Which language a text is in, of those that are served: docs/decisions/0017-language-detection.md.

Owns the model of py3langid, which is loaded when a first text comes, and when a text is in none of ours.
"""

import asyncio
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from dragoman_bundle.languages import primary_language

from dragoman_server.errors import UnsupportedError

MAX_CHARACTERS = 1_000
"""Of a text so many are looked at: more tell nothing new."""
FOREIGN_MARGIN = 4.0
"""By how much, as a logarithm of likelihood, a language that is not served must be more likely than each that
is, for the text to be in none of ours."""

# Less goes faster than a thread is asked to; more would hold up the event loop.
_MAX_CHARACTERS_ON_LOOP = 2_000
# What says nothing has this for every language.
_NOTHING = -1e37


class _Identifier(Protocol):
    """As much of py3langid's as is used."""

    def rank(self, text: str) -> Sequence[tuple[str, float]]:
        """By language a logarithm of likelihood, the largest first."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A language that a text may be in."""

    language: str
    confidence: float
    """All candidates of a text together have 1."""
    is_served: bool
    """Whether it is one of ours."""


@dataclass(frozen=True, kw_only=True)
class DetectedLanguage:
    """What a text is in."""

    language: str | None
    """None where it is in no language that is served, or holds nothing that tells."""
    confidence: float
    """0 for None."""
    candidates: tuple[Candidate, ...]
    """Most likely first: those that are served, and the most likely one that is not."""


class LanguageDetector:
    """Detects languages. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._identifier: _Identifier | None = None
        self._loading = asyncio.Lock()

    async def detect(self, texts: Sequence[str], served: Collection[str]) -> list[DetectedLanguage]:
        """Each text's language, of the codes `served`. Raises UnsupportedError without the library."""
        async with self._loading:
            if self._identifier is None:
                self._identifier = await asyncio.to_thread(_load)
        identifier = self._identifier
        cut = [text[:MAX_CHARACTERS] for text in texts]

        def detect_all() -> list[DetectedLanguage]:
            return [choose(identifier.rank(text), served, num_bytes=len(text.encode())) for text in cut]

        if sum(map(len, cut)) <= _MAX_CHARACTERS_ON_LOOP:
            return detect_all()
        return await asyncio.to_thread(detect_all)


def choose(
    scores: Iterable[tuple[str, float]], served: Collection[str], *, num_bytes: int
) -> DetectedLanguage:
    """The most likely of the languages that are served, unless another is far more likely.

    `scores` are logarithms of likelihood of a text of so many bytes.
    """
    by_language = {language: score for language, score in scores if score > _NOTHING}
    codes: dict[str, str] = {}
    for code in sorted(served, key=lambda code: (len(code), code)):
        # The shortest stands for all of one language, as "en" for "en-GB".
        codes.setdefault(primary_language(code), code)
    ours = {language: by_language[language] for language in codes if language in by_language}
    others = {language: score for language, score in by_language.items() if language not in codes}
    if not ours:
        return DetectedLanguage(language=None, confidence=0.0, candidates=())
    foreign = max(others, key=others.__getitem__, default=None)
    compared = ours | ({foreign: others[foreign]} if foreign is not None else {})
    likeliest = max(ours, key=ours.__getitem__)
    # Bytes of a text depend on each other: py3langid divides by the root of their number, too.
    scale = math.sqrt(max(num_bytes, 1))
    top = max(compared.values())
    weights = {language: math.exp((score - top) / scale) for language, score in compared.items()}
    total = sum(weights.values())
    candidates = tuple(
        Candidate(
            language=codes.get(language, language),
            confidence=weights[language] / total,
            is_served=language in ours,
        )
        for language in sorted(compared, key=compared.__getitem__, reverse=True)
    )
    if foreign is not None and others[foreign] - ours[likeliest] > FOREIGN_MARGIN:
        return DetectedLanguage(language=None, confidence=0.0, candidates=candidates)
    return DetectedLanguage(
        language=codes[likeliest], confidence=weights[likeliest] / total, candidates=candidates
    )


def _load() -> _Identifier:
    """Raises UnsupportedError."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise UnsupportedError(
            "this server does not detect languages, as it lacks a library: name the source language, or have "
            "the extra `web` bring it"
        ) from error
    return cast(_Identifier, LanguageIdentifier.from_model_file(MODEL_FILE))

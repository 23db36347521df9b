"""Which language a text is in, of those that are served: docs/decisions/0017-language-detection.md.

Owns py3langid's model, which says when a text is in none of ours, and lingua's, which add to it in a word or
two.
"""

import asyncio
import contextlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol, cast

from dragoman_bundle.languages import primary_language

from dragoman_server.errors import UnsupportedError
from dragoman_server.text.words import holds_letter
from dragoman_server.turns import FairThreads

if TYPE_CHECKING:
    from lingua import LanguageDetector as Lingua

MAX_CHARACTERS = 1_000
"""Characters of a text that are looked at: more tell nothing new."""
FOREIGN_MARGIN = 10.0
"""Margin, as a logarithm of likelihood, by which a language that is not served must be more likely than each
that is, for the text to be in none of ours."""
FOREIGN_BYTES = 16
"""Shorter texts are in one of ours: in a word or two the names and greetings of all languages are alike."""
SURE, SURE_OF_A_WORD = 0.85, 0.99
"""The confidence from which a text counts as in a language that it can't be translated from. One word seldom
says much, and who asks for it to be translated hardly wrote it in the language that is asked for."""

SHORT_WORDS = 5
"""Texts of at most so many words are looked at by lingua, too; of longer ones py3langid is certain."""
SHORT_WEIGHT = 4.0
"""Weight of the logarithm of lingua's confidence beside py3langid's likelihood."""
MAX_SHORT_LANGUAGES = 12
"""Most served languages that lingua tells apart: it takes some 30 MiB for each."""
_LEAST_CONFIDENCE = 1e-9

# Less goes faster than a thread is asked to; more would hold up the event loop.
_MAX_CHARACTERS_ON_LOOP = 2_000


class _Identifier(Protocol):
    """The part of py3langid's identifier that is used."""

    def rank(self, text: str) -> Sequence[tuple[str, float]]:
        """The languages, each with a logarithm of likelihood, the largest first."""


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
    language: str | None
    """None where it clearly is in no language that is served, or holds no letter."""
    confidence: float
    """0 for None."""
    candidates: tuple[Candidate, ...]
    """Most likely first: those that are served, and for None the most likely one that is not."""


_NONE = DetectedLanguage(language=None, confidence=0.0, candidates=())


class LanguageDetector:
    """Detects languages. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._identifier: _Identifier | None = None
        self._lingua: tuple[frozenset[str], Lingua | None] = frozenset(), None
        self._loading = asyncio.Lock()
        # One: several would take turns at the interpreter.
        self._threads = FairThreads(1, "dragoman-detection")

    def close(self) -> None:
        """Ends the thread. What has not begun is cancelled."""
        self._threads.close()

    async def warm(self, served: Collection[str]) -> None:
        """Loads the libraries, where they are there, and has them look at a text once: threads start then."""
        with contextlib.suppress(UnsupportedError):
            await self.detect(["Ja."], served)

    async def detect(
        self, texts: Sequence[str], served: Collection[str], *, wanted: Collection[str] = (), caller: str = ""
    ) -> list[DetectedLanguage]:
        """Each text's language, of the codes `served`; where that is uncertain, of those `wanted`.

        Raises UnsupportedError without the libraries.
        """
        identifier, lingua = await self._loaded(served)
        cut = [text[:MAX_CHARACTERS] for text in texts]

        def detect_all() -> list[DetectedLanguage]:
            # A space on both sides: the model knows how words begin and end.
            return [
                choose(identifier.rank(f" {text} "), text, served, wanted, _of_short(lingua, text))
                for text in cut
            ]

        if sum(map(len, cut)) <= _MAX_CHARACTERS_ON_LOOP:
            return detect_all()
        return await self._threads.run(caller, detect_all)

    async def _loaded(self, served: Collection[str]) -> "tuple[_Identifier, Lingua | None]":
        languages = frozenset(map(primary_language, served))
        async with self._loading:
            try:
                if self._identifier is None:
                    self._identifier = await self._threads.run("", load_identifier)
                if self._lingua[0] != languages:
                    self._lingua = languages, await self._threads.run("", partial(_load_lingua, languages))
            except ImportError as error:
                raise UnsupportedError(
                    "this server does not detect languages, as it lacks a library: name the source language, "
                    "or have the extra `web` bring it"
                ) from error
            return self._identifier, self._lingua[1]


def choose(
    scores: Iterable[tuple[str, float]],
    text: str,
    served: Collection[str],
    wanted: Collection[str] = (),
    among_served: Mapping[str, float] | None = None,
) -> DetectedLanguage:
    """The most likely language of those that are served, unless another is far more likely.

    `scores` are logarithms of likelihood of the text; for the choice among served languages `among_served`
    is added to them. Where it is uncertain, the most likely one of those `wanted` is taken. A text without
    letters is in none.
    """
    by_language = dict(scores)
    codes: dict[str, str] = {}
    for code in sorted(served, key=lambda code: (len(code), code)):
        # The shortest stands for all of one language, as "en" for "en-GB".
        codes.setdefault(primary_language(code), code)
    ours = {language: by_language[language] for language in codes if language in by_language}
    if not ours or not holds_letter(text):
        return _NONE
    likeliest = max(ours, key=ours.__getitem__)
    others = {language: score for language, score in by_language.items() if language not in codes}
    foreign = max(others, key=others.__getitem__, default=likeliest)
    num_bytes = len(text.encode())
    if num_bytes >= FOREIGN_BYTES and by_language[foreign] - ours[likeliest] > FOREIGN_MARGIN:
        shares = _shares(ours | {foreign: others[foreign]}, num_bytes)
        return DetectedLanguage(language=None, confidence=0.0, candidates=_candidates(shares, codes))
    if among_served:
        # A difference first: what py3langid has nothing to say of has the least number there is.
        best = ours[likeliest]
        ours = {language: score - best + among_served[language] for language, score in ours.items()}
        likeliest = max(ours, key=ours.__getitem__)
    shares = _shares(ours, num_bytes)
    possible = {primary_language(code) for code in wanted} & set(ours)
    sure = SURE if len(text.split()) > 1 else SURE_OF_A_WORD
    if possible and shares[likeliest] < sure:
        likeliest = max(sorted(possible), key=shares.__getitem__)
    found = _candidates(shares, codes)
    return DetectedLanguage(language=codes[likeliest], confidence=shares[likeliest], candidates=found)


def _shares(scores: Mapping[str, float], num_bytes: int) -> dict[str, float]:
    """How likely each is beside the others."""
    # Bytes of a text depend on each other: py3langid divides by the root of their number, too.
    scale = math.sqrt(num_bytes + 2)
    top = max(scores.values())
    weights = {language: math.exp((score - top) / scale) for language, score in scores.items()}
    total = sum(weights.values())
    return {language: weight / total for language, weight in weights.items()}


def _candidates(shares: Mapping[str, float], codes: Mapping[str, str]) -> tuple[Candidate, ...]:
    ranked = sorted(shares.items(), key=lambda share: share[1], reverse=True)
    return tuple(
        Candidate(language=codes.get(name, name), confidence=share, is_served=name in codes)
        for name, share in ranked
    )


@cache
def load_identifier() -> _Identifier:
    """The identifier that all detectors of this process share: it takes a second to load. Raises
    ImportError."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return cast(_Identifier, LanguageIdentifier.from_model_file(MODEL_FILE))


def _load_lingua(languages: Collection[str]) -> "Lingua | None":
    """What tells languages apart in a word or two; None where it does not know all, or they are too many."""
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [code for language in languages if (code := getattr(IsoCode639_1, language.upper(), None))]
    if len(codes) < len(languages) or not 1 < len(codes) <= MAX_SHORT_LANGUAGES:
        return None
    return LanguageDetectorBuilder.from_iso_codes_639_1(*codes).with_preloaded_language_models().build()


def _of_short(lingua: "Lingua | None", text: str) -> dict[str, float]:
    """What is added to the scores of a text's languages, if it is short."""
    if lingua is None or len(text.split(maxsplit=SHORT_WORDS)) > SHORT_WORDS:
        return {}
    return {
        each.language.iso_code_639_1.name.lower(): SHORT_WEIGHT * math.log(max(each.value, _LEAST_CONFIDENCE))
        for each in lingua.compute_language_confidence_values(text)
    }

"""Which texts of a call travel in which request, for both clients, by language where the server detects it.

Knows no threads and no event loop.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman import errors, messages
from dragoman.connection.channel import RetryBudget
from dragoman.model import ModelReference
from dragoman.settings import MAX_DETECTION_CHARACTERS, Settings, invalid
from dragoman.translation import DetectedLanguage, Translation
from dragoman.v1 import translation_pb2 as pb
from dragoman_files.texts import primary_language

MAX_REQUEST_TEXTS = 256
"""Most texts of one request."""
MAX_REQUEST_BYTES = 1 << 16
"""Most bytes of text of one request, or of one longer text: what a server's queue holds, and little of it."""
MAX_REQUEST_PAIRS = 256
"""Most pairs of one request that links words."""
MAX_REQUESTS_IN_FLIGHT = 2
"""Requests of one call that are under way at once: the next waits on the server while one is translated."""


@dataclass(eq=False, kw_only=True)
class Portion:
    """The texts of one request."""

    first: int
    """Position of the first text in the call."""
    request: pb.TranslateRequest
    met_another: bool = False
    """Whether another request of the call was under way at the same time."""


class Portions:
    """Cuts the texts of a call into requests, and keeps the translations until all are there."""

    def __init__(
        self, texts: list[str], settings: Settings, *, patience_seconds: float, num_elsewhere: int = 0
    ) -> None:
        """A request that a server has no room for goes on at `num_elsewhere` others."""
        self._num_elsewhere = num_elsewhere
        self._refusals: Counter[int] = Counter()
        self._budget = retry_budget(patience_seconds)
        self._texts = texts
        self._settings = settings
        self._max_in_flight = MAX_REQUESTS_IN_FLIGHT
        self._waiting = deque([range(len(texts))] if texts else [])
        self._in_flight: list[Portion] = []
        self._translations: dict[int, list[Translation]] = {}

    def next(self) -> Portion | None:
        """The next request, if there is one: None where answers must come first, or nothing is left."""
        if not self._waiting or len(self._in_flight) >= self._max_in_flight:
            return None
        remaining = self._waiting.popleft()
        taken = self._take(remaining)
        if len(taken) < len(remaining):
            self._waiting.appendleft(remaining[len(taken) :])
        request = messages.translate_request(self._texts[taken.start : taken.stop], self._settings)
        portion = Portion(first=taken.start, request=request)
        self._in_flight.append(portion)
        if len(self._in_flight) > 1:
            for other in self._in_flight:
                other.met_another = True
        return portion

    def _take(self, remaining: range) -> range:
        """The texts of one request, from the first that is left."""
        num_bytes = 0
        allowed = remaining[:MAX_REQUEST_TEXTS]
        for position in allowed:
            num_bytes += len(self._texts[position].encode())
            if position > remaining.start and num_bytes > MAX_REQUEST_BYTES:
                return range(remaining.start, position)
        return allowed

    def answer(self, portion: Portion, response: pb.TranslateResponse) -> None:
        self._in_flight.remove(portion)
        self._translations[portion.first] = messages.translations(response)
        self._budget.renew()

    def refuse(self, portion: Portion, error: errors.DragomanError, remaining_seconds: float | None) -> float:
        """Takes the error of a request, whose texts `next` gives again where that may help.

        Returns how long to wait before. Raises the error where nothing helps, with what is done.
        """
        self._in_flight.remove(portion)
        sent = range(portion.first, portion.first + len(portion.request.texts))
        if isinstance(error, errors.OverloadedError) and portion.met_another:
            # The call may have filled the queue itself: what is left goes one request at a time.
            self._max_in_flight = 1
            self._waiting.appendleft(sent)
            return 0.0
        if isinstance(error, errors.OverloadedError) and self._refusals[portion.first] < self._num_elsewhere:
            # The next call is another server's turn.
            self._refusals[portion.first] += 1
            self._waiting.appendleft(sent)
            return 0.0
        if _is_too_large(error) and len(sent) > 1:
            half = len(sent) // 2
            self._waiting.extendleft([sent[half:], sent[:half]])
            return 0.0
        # Without an answer yet, nothing is lost by telling the caller at once.
        if self._translations and isinstance(error, errors.UnavailableError | errors.CallCancelledError):
            wait_seconds = self._budget.wait_seconds(error, remaining_seconds)
            if wait_seconds is not None:
                self._waiting.appendleft(sent)
                return wait_seconds
        placed = _placed(error, portion.first)
        placed.translations = {
            first + index: translation
            for first, some in sorted(self._translations.items())
            for index, translation in enumerate(some)
        }
        raise placed

    def translations(self) -> list[Translation]:
        """All translations, in the order of the texts."""
        return [translation for _, some in sorted(self._translations.items()) for translation in some]


def retry_budget(seconds: float) -> RetryBudget:
    """The waits of one call for a server that went away in its middle."""
    return RetryBudget(seconds, first_wait_seconds=0.2, max_wait_seconds=2.0)


def _is_too_large(error: errors.DragomanError) -> bool:
    """Whether a request holds too much as a whole, be each of its texts as it may."""
    return isinstance(error, errors.InvalidRequestError) and (
        errors.is_over_transport(error) or any(violation.field == "texts" for violation in error.violations)
    )


def _placed(error: errors.DragomanError, first: int) -> errors.DragomanError:
    """The error, with the positions of texts counted in the call and not in its request."""
    if not isinstance(error, errors.InvalidRequestError):
        return error

    def in_the_call(match: re.Match[str]) -> str:
        return f"texts[{int(match[1]) + first}]"

    violations = tuple(
        replace(violation, field=re.sub(r"^texts\[(\d+)\]$", in_the_call, violation.field))
        for violation in error.violations
    )
    message = re.sub(r"\btexts\[(\d+)\](?=: )", in_the_call, str(error))
    return errors.InvalidRequestError(message, violations=violations, status=error.status)


def text_pair_portions(pairs: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The pairs in the portions of requests: few enough, and of so many bytes or one longer pair."""
    portion: list[tuple[str, str]] = []
    num_bytes = 0
    for pair in pairs:
        size = sum(len(text.encode()) for text in pair)
        if portion and (len(portion) == MAX_REQUEST_PAIRS or num_bytes + size > MAX_REQUEST_BYTES):
            yield portion
            portion, num_bytes = [], 0
        portion.append(pair)
        num_bytes += size
    if portion:
        yield portion


def detection_portions(texts: list[str]) -> Iterator[list[str]]:
    """The texts' beginnings, by which languages are detected, in portions of requests."""
    beginnings = [text[:MAX_DETECTION_CHARACTERS] for text in texts]
    for start in range(0, len(beginnings), MAX_REQUEST_PAIRS):
        yield beginnings[start : start + MAX_REQUEST_PAIRS]


AUTO = "auto"
"""Stands in place of a source language: each text's own."""


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
                which = f"texts[{rank}] is in no language of the server; it looks like {foreign}"
                advice = "name its language if it is one of the server's"
                raise invalid("source", f"is auto, and {which}: {advice}")
            if language is None or primary_language(language) == primary_language(target):
                self._translations[rank] = _untranslated(text, language or "")
            else:
                self._ranks.setdefault(language, []).append(rank)

    def groups(self) -> list[tuple[str, list[str]]]:
        """The languages that are translated from, with their texts."""
        return [(language, [self._texts[rank] for rank in ranks]) for language, ranks in self._ranks.items()]

    def answer(self, language: str, translations: Sequence[Translation]) -> None:
        self._translations.update(zip(self._ranks[language], translations, strict=True))

    def translations(self) -> list[Translation]:
        """All of them, in the order of the texts."""
        return [self._translations[rank] for rank in range(len(self._texts))]


def language_of_all(found: DetectedLanguage) -> str:
    """The language of many texts, by that of their beginning. Raises InvalidRequestError for none."""
    if found.language is None:
        which = "the beginning is in no language of the server"
        raise invalid("source", f"is auto, and {which}: name its language")
    return found.language


def _untranslated(text: str, language: str) -> Translation:
    """The text itself, which needs no translation; no model has seen it."""
    model = ModelReference(name="", version="", source_language=language, target_language=language)
    return messages.translation(pb.Translation(text=text), model)

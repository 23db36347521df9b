"""Callers that keep a server busy and account for every call: so many begun, so many ended, and how."""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import aclosing

from dragoman import AsyncClient, DragomanError

CALL_SECONDS = 60.0
"""A call that takes longer has hung."""
LANGUAGES = {"source": "de", "target": "en"}
_WHO = ["Der Hund", "Die Katze", "Tom", "Meine Mutter", "Das Kind", "Der Mann", "Eine junge Frau", "Maria"]
_WHAT = ["schläft", "wartet", "spielt", "sitzt", "steht", "lacht", "singt", "arbeitet"]
_WHEN = ["heute", "morgens", "am Abend", "jeden Tag", "seit drei Stunden", "oft", "nie", "wieder"]
_WHERE = ["im Garten", "zu Hause", "in Berlin", "unter dem Tisch", "vor der Tür", "in der Schule", "am Meer"]
_WHY = ("", ", weil es regnet", ", obwohl niemand da ist", ", denn alle sind müde")


def make_sentences(number: int) -> list[str]:
    """German sentences of several lengths, all different; there are 14,336."""
    kinds = itertools.product(_WHY, _WHERE, _WHEN, _WHAT, _WHO)
    sentences = [f"{who} {what} {when} {where}{why}." for why, where, when, what, who in kinds]
    # Neighbours are unlike each other: a step that shares no factor with the number of sentences.
    return [sentences[at * 4567 % len(sentences)] for at in range(number)]


class Callers:
    """Callers of one client, who translate sentences whose translations are known."""

    def __init__(self, client: AsyncClient, known: dict[str, str]) -> None:
        self.known = known
        self.begun = 0
        """Calls, streams among them."""
        self.ended: Counter[str] = Counter()
        """Calls by how they ended: OK, or the name of a gRPC status."""
        self.texts: Counter[str] = Counter()
        """Texts: right or wrong, of a stream also lost, doubled, or a status."""
        self.messages: Counter[str] = Counter()
        """Errors by their message."""
        self.errors: list[tuple[DragomanError, float]] = []
        """Errors with the seconds until they came."""
        self.longest = 0.0
        """Seconds of the longest call."""
        self._client = client

    async def call(self, texts: list[str], *, seconds: float = CALL_SECONDS) -> None:
        """Makes one call."""
        self.begun += 1
        began = time.monotonic()
        try:
            answers = await self._client.translate(texts, **LANGUAGES, timeout_seconds=seconds)
        except DragomanError as error:
            self._fail(error, began)
            return
        self._end("OK", began)
        for text, answer in zip(texts, answers, strict=True):
            self._compare(text, answer.text)

    async def call_until(self, stop: asyncio.Event, seed: int) -> None:
        """Makes one call after the other."""
        generator = random.Random(seed)
        while not stop.is_set():
            await self.call(generator.sample(list(self.known), generator.choice((1, 2, 5))))
            await asyncio.sleep(0.005)

    async def stream_until(self, stop: asyncio.Event, seed: int) -> None:
        """Makes one stream of many texts after the other."""
        generator = random.Random(seed)
        while not stop.is_set():
            await self._stream(generator.sample(list(self.known), min(50, len(self.known))))

    async def _stream(self, texts: list[str]) -> None:
        self.begun += 1
        began, left = time.monotonic(), set(range(len(texts)))
        stream = self._client.translate_stream(enumerate(texts), **LANGUAGES, timeout_seconds=CALL_SECONDS)
        try:
            async with aclosing(stream):
                async for result in stream:
                    self.texts["doubled"] += result.id not in left
                    left.discard(result.id)
                    if result.translation is None:
                        self.texts[getattr(result.error, "status", "UNKNOWN")] += 1
                    else:
                        self._compare(texts[result.id], result.translation.text)
        except DragomanError as error:
            self._fail(error, began)
            return
        self._end("OK", began)
        self.texts["lost"] += len(left)

    def check(self, *allowed: str) -> None:
        """Asserts that each call ended once, as OK or one of the `allowed`, in time, and each text right."""
        ended = sum(self.ended.values())
        assert self.begun == ended, f"{self.begun} calls begun, {self.ended} ended"
        assert set(self.ended) <= {"OK", *allowed}, f"{self.ended}: {self.messages}"
        assert self.texts["right"] > 0
        assert not self.texts["wrong"] + self.texts["doubled"] + self.texts["lost"], self.texts
        assert self.longest < CALL_SECONDS + 1

    def _compare(self, text: str, translation: str) -> None:
        self.texts["right" if translation == self.known[text] else "wrong"] += 1

    def _fail(self, error: DragomanError, began: float) -> None:
        self._end(error.status, began)
        self.messages[f"{error.status} {error}"[:200]] += 1
        self.errors.append((error, time.monotonic() - began))

    def _end(self, outcome: str, began: float) -> None:
        self.ended[outcome] += 1
        self.longest = max(self.longest, time.monotonic() - began)


async def translate_alone(client: AsyncClient, sentences: Iterable[str]) -> dict[str, str]:
    """Each sentence's translation where no other is under way."""
    known = {}
    for sentence in sentences:
        [answer] = await client.translate([sentence], **LANGUAGES)
        known[sentence] = answer.text
    return known

"""Callers that keep a server busy and account for every call: so many begun, so many ended, and how."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from benchmarks.drill.drill import Drill
from dragoman import AsyncClient, DragomanError

CALL_SECONDS = 60.0
"""A call that takes longer has hung."""


@dataclass(kw_only=True)
class Account:
    """What became of all calls and texts."""

    begun: int = 0
    """Calls, streams too."""
    ended: Counter[str] = field(default_factory=Counter)
    """Calls by how they ended: OK, or the name of a gRPC status."""
    texts: Counter[str] = field(default_factory=Counter)
    """Texts that were answered: right or wrong, and of a stream also by their status."""
    messages: Counter[str] = field(default_factory=Counter)
    """Errors by what they say."""
    seconds: list[float] = field(default_factory=list)
    """How long each call took."""

    def end(self, outcome: str, since: float) -> None:
        """Of a call that began at `since`."""
        self.ended[outcome] += 1
        self.seconds.append(time.monotonic() - since)

    def fail(self, error: DragomanError, since: float) -> None:
        """Of one that failed."""
        self.end(error.status, since)
        self.messages[f"{error.status} {error}"[:200]] += 1


class Callers:
    """Translate sentences whose translations are known."""

    def __init__(self, drill: Drill, client: AsyncClient, known: Mapping[str, str]) -> None:
        self.account = Account()
        self._client = client
        self._known = known
        self._sentences = list(known)
        self._source, self._target = drill.source, drill.target

    async def call_until(
        self, stop: asyncio.Event, seed: int, *, num_texts: Sequence[int] = (1, 2, 5)
    ) -> None:
        """Calls one after the other, of one of these numbers of texts each."""
        generator = random.Random(seed)
        while not stop.is_set():
            await self.call(generator.sample(self._sentences, generator.choice(num_texts)))
            await asyncio.sleep(0.005)

    async def call(self, texts: list[str], *, seconds: float = CALL_SECONDS) -> None:
        """One call."""
        since = time.monotonic()
        self.account.begun += 1
        try:
            answers = await self._client.translate(
                texts, source=self._source, target=self._target, timeout_seconds=seconds
            )
        except DragomanError as error:
            self.account.fail(error, since)
            return
        self.account.end("OK", since)
        for text, answer in zip(texts, answers, strict=True):
            self._compare(text, answer.text)

    async def stream_until(self, stop: asyncio.Event, seed: int, *, num_texts: int = 50) -> None:
        """Streams one after the other."""
        generator = random.Random(seed)
        while not stop.is_set():
            await self.stream(generator.sample(self._sentences, min(num_texts, len(self._sentences))))

    async def stream(self, texts: list[str]) -> None:
        """One stream of texts; a result that is missing or comes twice is none that is right."""
        since = time.monotonic()
        self.account.begun += 1
        left = set(range(len(texts)))
        stream = self._client.translate_stream(
            enumerate(texts), source=self._source, target=self._target, timeout_seconds=CALL_SECONDS
        )
        try:
            async with aclosing(stream):
                async for result in stream:
                    if result.id not in left:
                        self.account.texts["doubled"] += 1
                    left.discard(result.id)
                    if result.translation is None:
                        assert result.error is not None
                        self.account.texts[getattr(result.error, "status", "UNKNOWN")] += 1
                    else:
                        self._compare(texts[result.id], result.translation.text)
        except DragomanError as error:
            self.account.fail(error, since)
            return
        self.account.end("OK", since)
        self.account.texts["lost"] += len(left)

    def _compare(self, text: str, translation: str) -> None:
        self.account.texts["right" if translation == self._known[text] else "wrong"] += 1


async def translate_alone(drill: Drill, client: AsyncClient, sentences: list[str]) -> dict[str, str]:
    """What each comes to with nobody beside it."""
    known = {}
    for sentence in sentences:
        [answer] = await client.translate([sentence], source=drill.source, target=drill.target)
        known[sentence] = answer.text
    return known


def check_account(drill: Drill, account: Account) -> None:
    """Whether all was accounted for, and all answers are right."""
    ended = sum(account.ended.values())
    drill.check(
        "each call ends once", account.begun == ended, f"{account.begun} begun, {dict(account.ended)}"
    )
    wrong = account.texts["wrong"] + account.texts["doubled"] + account.texts["lost"]
    promise = "each text of a call that ends well has the translation that it has alone"
    drill.check(promise, account.texts["right"] > 0 and not wrong, dict(account.texts))
    hung = sum(seconds > CALL_SECONDS + 1 for seconds in account.seconds)
    drill.check("no call hangs", not hung, f"the longest took {max(account.seconds, default=0):.1f} s")

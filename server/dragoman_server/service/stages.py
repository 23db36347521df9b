"""Where a request's time goes, as it is told from stage to stage. Knows nothing of who wants to know."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman_server.engine import SentenceResult

StageName = Literal["text", "queue", "encode", "decode", "link"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Seconds on the clock of time.monotonic, from a stage's begin to its end."""

    name: StageName
    began: float
    ended: float


class Stages:
    """The stages of one request; each begins where the one before it ended."""

    def __init__(self) -> None:
        self.came_at = time.monotonic()
        """When the request came."""
        self.stages: list[Stage] = []
        self._since = self.came_at

    def begin(self) -> None:
        """The model is there, and the first stage begins."""
        self._since = time.monotonic()

    def end_text(self) -> None:
        """Texts are cut and tokenized, or joined."""
        self._add("text", time.monotonic())

    def end_search(self, waited_seconds: float, results: Sequence[SentenceResult]) -> None:
        """Sentences are searched, after such a wait for room in the queue: the slowest's stages."""
        now = time.monotonic()
        if results:
            slowest = max(
                results,
                key=lambda result: result.queue_seconds + result.encode_seconds + result.decode_seconds,
            )
            # Taken by an engine's clock, which is that of this process or of another on the same machine.
            self._add("queue", min(self._since + waited_seconds + slowest.queue_seconds, now))
            self._add("encode", min(self._since + slowest.encode_seconds, now))
            self._add("decode", min(self._since + slowest.decode_seconds, now))
        self._since = now

    def end_linking(self, began: float) -> None:
        """An aligner has linked all words, from that moment on; before it they waited for a thread."""
        self._add("queue", max(began, self._since))
        self._add("link", time.monotonic())

    def seconds(self, name: str) -> float:
        """All stages of that name together, as far as they have ended."""
        return sum(stage.ended - stage.began for stage in self.stages if stage.name == name)

    def _add(self, name: StageName, ended: float) -> None:
        self.stages.append(Stage(name=name, began=self._since, ended=ended))
        self._since = ended

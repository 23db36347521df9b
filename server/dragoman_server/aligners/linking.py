"""Links the words of pairs beside the event loop, some at a time, so that calls take turns.

Owns the threads for it and the lines before them. Must not know gRPC.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from dragoman_server.aligners.aligner import ServedAligner, TextPair
from dragoman_server.aligners.pairs import LinkedPart, PairWriter, Part, cut_pairs, portions
from dragoman_server.engine import Priority
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.errors import refusal
from dragoman_server.service.searching import Stages
from dragoman_server.text.align.pairs import AlignedPair
from dragoman_server.turns import FairThreads
from dragoman_server.wanted import Wanted

# Texts with more are cut, which takes 0.4 s for a million, in the thread of jobs.
_MAX_INTERACTIVE_CHARACTERS = 100_000
# By so much what a portion took moves what is expected of the next.
_NEWEST = 0.2


@dataclass(frozen=True, kw_only=True)
class LinkingRequest:
    """Texts and their translations for one aligner, checked against the server's limits."""

    aligner: ServedAligner
    pairs: tuple[TextPair, ...]
    priority: Priority
    max_words: int
    """Most words of a side of what is linked at once."""
    max_interactive_words: int
    """Most source words of a request that is linked as interactive."""


class _Line:
    """The thread of a priority, and how much waits for it or is in it."""

    def __init__(self, priority: Priority) -> None:
        # One: several would take turns at the interpreter, and cores from the engines.
        self.threads = FairThreads(1, f"dragoman-align-{priority.name.lower()}")
        self.num_parts = 0
        self.work = 0

    def add(self, parts: Iterable[Part], sign: int = 1) -> None:
        """They come, or with -1 they go."""
        for part in parts:
            self.num_parts += sign
            self.work += sign * part.work


class Linking:
    """The threads that all aligners share. Belongs to the event loop's thread.

    A call is in the line of its priority with one portion at a time, and then behind all others of its
    caller; callers take turns. So a long one holds up a short one by two portions at most, one before its
    texts are cut and one behind that.
    """

    def __init__(self, limits: EngineLimits) -> None:
        """`limits`: of the lines, in which a part to link is what a sentence is to an engine."""
        self._limits = limits
        self._lines = {priority: _Line(priority) for priority in Priority}
        # By what was linked of late; nobody knows before the first.
        self._seconds_per_work = 0.0

    def close(self) -> None:
        """Ends the threads, once they have done what they are at. What has not begun is cancelled."""
        for line in self._lines.values():
            line.threads.close()

    async def link(
        self,
        request: LinkingRequest,
        write: Callable[[AlignedPair], object],
        *,
        wanted: Wanted,
        stages: Stages | None = None,
    ) -> None:
        """Links the words of pairs, and has each written, in their order and in other threads.

        Raises InvalidRequestError for what no aligner links and for more parts than a line can ever hold,
        QueueFullError at once, and UnwantedError once it is not `wanted` any more: then nothing more of it is
        begun. `stages` is told of each.
        """
        came_at = time.monotonic()
        stages = stages or Stages()
        stages.begin()
        linker, priority = request.aligner.linker, request.priority
        # More than there is ever room for is told otherwise, once it is certain.
        self._check_room(priority, min(len(request.pairs), self._room(priority)))
        is_long = sum(len(text) for pair in request.pairs for text in pair) > _MAX_INTERACTIVE_CHARACTERS
        threads = self._lines[Priority.BULK if is_long else priority].threads
        cut_all = partial(cut_pairs, request.pairs, linker, request.max_words, wanted)
        cut = await threads.run(wanted.caller, cut_all)
        stages.end_text()
        if sum(part.num_words[0] for part in cut.parts) > request.max_interactive_words:
            priority = Priority.BULK

        writer = PairWriter(cut, write)

        def link_portion(portion: list[Part]) -> tuple[float, float]:
            """The first and the last moment of it."""
            wanted.check()
            began = time.monotonic() - came_at
            links = linker.link([part.texts for part in portion])
            ended = time.monotonic() - came_at
            pairs = zip(portion, links, strict=True)
            writer.add([LinkedPart(part=part, links=of, began=began, ended=ended) for part, of in pairs])
            return began, ended

        # More than a line can ever hold is told otherwise than what does not fit now.
        if (num_parts := len(cut.parts)) > (room := self._room(priority)):
            description = f"have {num_parts} lines to link, and the queue takes {room}; send fewer at a time"
            raise refusal("pairs", description)
        self._check_room(priority, num_parts)
        line = self._lines[priority]
        line.add(cut.parts)
        num_linked, first_began = 0, None
        try:
            for portion in portions(cut.parts):
                began, ended = await line.threads.run(wanted.caller, partial(link_portion, portion))
                line.add(portion, -1)
                num_linked += len(portion)
                first_began = began if first_began is None else first_began
                self._note(portion, ended - began)
        finally:
            line.add(cut.parts[num_linked:], -1)
        if first_began is not None:
            stages.end_linking(came_at + first_began)
        await line.threads.run(wanted.caller, writer.end)
        stages.end_text()

    def _room(self, priority: Priority) -> int:
        return self._limits.max_bulk_queue if priority is Priority.BULK else self._limits.max_queue

    def _check_room(self, priority: Priority, num_parts: int) -> None:
        """Raises QueueFullError where so many don't fit beside those that wait, or these take too long."""
        lines = self._lines.items()
        self._limits.check_queue(
            coming={priority: num_parts},
            waiting={priority: line.num_parts for priority, line in lines},
            expected_seconds={priority: line.work * self._seconds_per_work for priority, line in lines},
        )

    def _note(self, portion: list[Part], seconds: float) -> None:
        """A portion took so long."""
        per_work = seconds / sum(part.work for part in portion)
        newest = _NEWEST if self._seconds_per_work else 1.0
        self._seconds_per_work += newest * (per_work - self._seconds_per_work)

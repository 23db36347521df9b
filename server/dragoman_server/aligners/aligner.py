"""A saved aligner that is served, and what the server asks of one. Knows nobody who makes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman_server.metrics.aligners import AlignerMetrics

TextPair = tuple[str, str]
"""A text and its translation."""


class Link(Protocol):
    """A link between two words, as half-open ranges of code points."""

    @property
    def source(self) -> tuple[int, int]: ...

    @property
    def target(self) -> tuple[int, int]: ...

    @property
    def weight(self) -> float: ...


class WordLinker(Protocol):
    """An aligner links words. Threads may share it."""

    def link(self, pairs: Sequence[TextPair]) -> Sequence[Sequence[Link]]:
        """The links of each pair by target word and falling weight. What shares a call changes nothing."""

    def count_words(self, text: str) -> int:
        """How many words it links of a text."""

    def is_swapped(self, pairs: Sequence[TextPair]) -> bool:
        """Whether the texts' words are rather those of the other side, of all pairs together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ServedAligner:
    """An aligner that requests may name."""

    name: str
    linker: WordLinker
    metrics: AlignerMetrics
    """Its own series."""

    @property
    def key(self) -> str:
        """The name of it in log, metrics and traces, where models are named: no model has such a one."""
        return self.metrics.key

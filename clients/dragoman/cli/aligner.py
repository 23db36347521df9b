"""What `dragoman align-texts` links words with in place of a server: a saved aligner.

One registers as an entry point of the group `dragoman.aligners`, a function like `OpenAligner`.
"""

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Protocol

from dragoman.cli.failure import missing_extra
from dragoman.translation import Alignment


class Link(Protocol):
    """A link between two words, as half-open code point ranges."""

    @property
    def source(self) -> tuple[int, int]: ...

    @property
    def target(self) -> tuple[int, int]: ...

    @property
    def weight(self) -> float: ...


class Aligner(Protocol):
    """Links the words of a text and of its translation."""

    def __call__(self, text: str, translation: str, max_words: int) -> Sequence[Link]:
        """By target word and falling weight. Raises ValueError for texts that belong the other way round, or
        with more words on a side of what is linked at once.
        """


class OpenAligner(Protocol):
    """Opens a folder. Raises ValueError where it holds no aligner."""

    def __call__(self, location: str) -> Aligner: ...


def align_by_folder(location: str, text: str, translation: str, *, max_words: int) -> tuple[Alignment, ...]:
    """The links. Raises ClickException where the aligner's extra is not installed, and ValueError."""
    (entry_point,) = entry_points(group="dragoman.aligners", name="folder")
    try:
        opener: OpenAligner = entry_point.load()
        align = opener(location)
    except ModuleNotFoundError as error:
        raise missing_extra("--aligner", entry_point, error) from error
    return tuple(
        Alignment(
            source_start=link.source[0],
            source_end=link.source[1],
            target_start=link.target[0],
            target_end=link.target[1],
            weight=link.weight,
        )
        for link in align(text, translation, max_words)
    )

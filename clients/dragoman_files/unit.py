"""The units of a file: its texts, each with all that stands around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One text of a file: a line, a cell, a paragraph."""

    number: int
    """Counted from 1."""
    position: int
    """Bytes of the input, as it lies on disk, that were read to come past it."""
    text: str
    """The text to translate. Empty where there is none: it then travels as an empty text, and so keeps its
    place in the order and in the window."""
    raw: str
    """The original, for people, where it holds no text."""
    error: str | None
    """Why there is no text."""
    location: Mapping[str, int | str]
    """Where it stands in the input, for the record of what failed."""
    write: Callable[[str | None, bool], bytes]
    """The output's bytes from the end of the unit before to the end of this one, by the translation, None
    where there is none, and whether that lacks an end: the text's was dropped, or its own limit was reached.

    Raises UnitError for a translation that can't stand there; never for None."""

    is_markup: bool = False
    """Whether `text` has markup of the server's, so that `raw` is what people are shown."""

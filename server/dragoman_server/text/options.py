"""How a caller wants texts translated."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from dragoman_server.engine.request import Priority
from dragoman_server.text.marks import Mark


class TextFormat(enum.Enum):
    """The format of a text."""

    PLAIN = "plain"
    """Every character of it is text."""
    HTML = "html"
    """Text with tags, and with character references."""


class LengthPolicy(enum.Enum):
    """The caller's choice for a unit that is too long."""

    SPLIT = "split"
    """It is cut at clause ends or spaces."""
    REJECT = "reject"
    """UnitTooLongError."""
    TRUNCATE = "truncate"
    """Drop its last tokens."""


class Segmentation(enum.Enum):
    """How a text is cut into units. Line ends always separate units."""

    SENTENCE = "sentence"
    """Sentences, by the rules of the source language."""
    LINE = "line"
    """Every line is one unit."""


class Finder(Protocol):
    """A finder of parts of a text that are to be kept."""

    def find(self, text: str) -> Iterator[Mark]:
        """Marks of the parts, which may overlap, and come in any order."""
        ...


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The parts of texts that come out unchanged, or as the caller says."""

    is_automatic: bool = True
    """Whether that goes for what is certain without being asked: placeholders, URLs, numbers' values, what
    the model can't read; and whether capitals are read as small letters."""
    finders: tuple[Finder, ...] = ()
    """The caller's terms and patterns, and glossaries."""
    forbidden: Finder | None = None
    """The words that a translation is warned of for."""
    is_inflected: bool = False
    """Whether terms count in all their inflected forms, of both languages."""
    is_as_written: bool = False
    """Whether translations of terms keep the case of their letters."""
    untranslated_elements: frozenset[str] = frozenset()
    """Further names of elements of markup, in small letters, that are not translated."""


@dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """How a caller wants texts translated."""

    beam_size: int
    """Hypotheses kept per sentence while searching."""
    num_hypotheses: int = 1
    """Hypotheses returned; at most `beam_size`."""
    length_penalty: float
    """Exponent of the length penalty; 0 turns it off."""
    max_output_tokens: int | None = None
    """Most output tokens of a sentence; None: from the length of its source."""
    max_default_output_tokens: int | None = None
    """Cap on that derived limit; None: the bundle's own alone. Must exceed the length of `target_prefix`."""
    target_prefix: tuple[int, ...] = ()
    """Target tokens that the first sentence's translation begins with."""
    length_policy: LengthPolicy = LengthPolicy.SPLIT
    """The policy for a sentence with more source tokens than the model takes."""
    segmentation: Segmentation = Segmentation.SENTENCE
    """How texts are cut into units."""
    return_alignments: bool = False
    """Whether hypotheses come with word alignments."""
    priority: Priority = Priority.INTERACTIVE
    """The priority where not all sentences fit into the batch."""
    max_text_tokens: int | None = None
    """Most source tokens of a text; None: any number."""
    max_interactive_tokens: int | None = None
    """Most source tokens of all texts together that are decoded as interactive; None: any number."""
    text_format: TextFormat = TextFormat.PLAIN
    """The format of the texts."""
    source_tag: str = ""
    """The tag that every source has for the model; it knows it."""
    protection: Protection = field(default_factory=Protection)
    """The parts of the texts that come out unchanged."""

    @property
    def num_searched_hypotheses(self) -> int:
        """Hypotheses of a sentence that the engine returns: of a list all, since some may fall out."""
        return self.beam_size if self.num_hypotheses > 1 else 1

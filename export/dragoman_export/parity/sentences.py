"""The sentences that the gate decodes: random tokens, and lines of text where there are some.

Owns their number and lengths, which are what the gate's time goes into.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from dragoman_bundle.manifest import SpecialIds

from dragoman_training.data.corpus import evenly_spaced
from dragoman_training.data.files import read_lines

if TYPE_CHECKING:
    from dragoman_export.model import Subject


@dataclass(frozen=True, kw_only=True)
class BatchShape:
    """A batch that both sides decode by a whole beam search."""

    beam_size: int
    lengths: tuple[int, ...]
    """Source tokens of each sentence, its end included."""
    max_steps: int


BATCH_SHAPES = (
    BatchShape(beam_size=1, lengths=(1,), max_steps=8),
    BatchShape(beam_size=1, lengths=(2, 17, 9), max_steps=32),
    BatchShape(beam_size=2, lengths=(7,), max_steps=16),
    BatchShape(beam_size=5, lengths=(100, 1, 2, 33, 12, 64, 5), max_steps=12),
    BatchShape(beam_size=8, lengths=(3, 17), max_steps=12),
    BatchShape(beam_size=3, lengths=tuple(range(1, 33, 3)), max_steps=8),
)
"""Beams, rows and lengths that differ in each. A step of few rows costs nearly what one of many does, as the
whole output layer is read: so one batch alone has a long output."""
TEXT_LENGTHS = (1, 2, 17, 9, 33, 5, 12, 24, 48, 3, 7, 40, 4, 29, 14, 20)
"""Tokens of sentences that stand in for text, their end included."""
MAX_TEXT_SENTENCES = 24
MAX_TEXT_TOKENS = 48
"""Longer lines are not decoded."""
TEXT_STEPS = 24
"""Longest output along which text is compared."""
MAX_LINES = 10_000
"""Lines of a corpus that the sentences are sought among, evenly spread."""


@dataclass(frozen=True, kw_only=True)
class CheckText:
    """Lines in the source language, and where they are from."""

    lines: tuple[str, ...]
    origin: str
    """The origin as a card says it."""

    @classmethod
    def of(cls, lines: Sequence[str], origin: str) -> "CheckText":
        """Some of the lines, evenly spread."""
        return cls(lines=tuple(lines[place] for place in evenly_spaced(len(lines), MAX_LINES)), origin=origin)

    @classmethod
    def read(cls, path: Path) -> "CheckText":
        """The lines of a file, `.gz` or not. Raises ValueError where it can't be read or has none."""
        lines = [line for line in map(str.strip, read_lines(path)) if line]
        if not lines:
            raise ValueError(f"{path} has no line to check the graphs with; give one with source sentences")
        return cls.of(lines, f"`{path.name}`")


def text_sources(text: CheckText, subject: "Subject") -> list[list[int]]:
    """Some lines of the text as the subject's ids, evenly spread over those neither empty nor too long."""
    tokenizer = subject.checked_tokenizer
    end = [tokenizer.eos_id] if subject.source_end else []
    longest = min(subject.decoding.max_source_tokens, MAX_TEXT_TOKENS)
    sources = [[*ids, *end] for ids in tokenizer.encode_ids(text.lines) if ids]
    fitting = [source for source in sources if len(source) <= longest]
    if not fitting:
        fitting = [[*source[: longest - len(end)], *end] for source in sources]
    return [fitting[place] for place in evenly_spaced(len(fitting), MAX_TEXT_SENTENCES)]


class RandomSentences:
    """Draws sentences of ordinary tokens, the same ones each time."""

    def __init__(self, vocabulary: int, ids: SpecialIds, *, source_end: bool, max_tokens: int) -> None:
        self._ordinary = np.setdiff1d(np.arange(vocabulary), (ids.pad, ids.unk, ids.bos, ids.eos))
        self._end = [ids.eos] if source_end else []
        self._max_tokens = max_tokens
        self._random = np.random.default_rng(1)

    def of_lengths(self, lengths: Iterable[int]) -> list[list[int]]:
        """A sentence of each length, its end included, or of the most tokens there may be."""
        return [
            [
                *self._random.choice(self._ordinary, min(length, self._max_tokens) - len(self._end)).tolist(),
                *self._end,
            ]
            for length in lengths
        ]

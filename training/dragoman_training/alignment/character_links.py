"""The links of a text and its translation as ranges of characters, for `dragoman align-texts --aligner`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman_training.alignment.aligner import Aligner
from dragoman_training.alignment.saved import load_aligner

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class CharacterLink:
    """A link between two words."""

    source: Span
    """Half-open, in the text."""
    target: Span
    """The same in the translation."""
    weight: float
    """How far both directions believe in it, up to 1."""


def open_character_aligner(location: str) -> Callable[[str, str], list[CharacterLink]]:
    """Raises ValueError where the folder holds no aligner."""
    aligner = load_aligner(Path(location))
    return lambda text, translation: link_characters(aligner, text, translation)


def link_characters(aligner: Aligner, text: str, translation: str) -> list[CharacterLink]:
    """By target word and falling weight; line by line where both have as many lines, else at once.

    Raises ValueError for texts that belong the other way round.
    """
    sides = [_lines(side) for side in (text, translation)]
    if len(sides[0]) != len(sides[1]):
        sides = [[(0, side)] for side in (text, translation)]
    rule = aligner.rule
    pairs = [
        (rule.normalize(one), rule.normalize(other)) for (_, one), (_, other) in zip(*sides, strict=True)
    ]
    if aligner.swapped(pairs):
        raise ValueError(
            "the text has more words of the aligner's target language, and the translation of its source "
            "language: they belong the other way round"
        )
    matrices = aligner.align(pairs, "grow-diag-final-and")
    links: list[CharacterLink] = []
    for (one_start, one), (other_start, other), matrix, beliefs in zip(
        *sides, matrices, aligner.beliefs(pairs), strict=True
    ):
        from_spans = [(one_start + start, one_start + end) for start, end in rule.spans(one)]
        to_spans = [(other_start + start, other_start + end) for start, end in rule.spans(other)]
        links += [
            CharacterLink(source=from_spans[i], target=to_spans[j], weight=float(beliefs[i, j]))
            for i, j in zip(*(axis.tolist() for axis in matrix.nonzero()), strict=True)
        ]
    return sorted(links, key=lambda link: (link.target, -link.weight))


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines that have a word, each with where it starts."""
    found, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            found.append((start, line))
        start += len(line) + 1
    return found

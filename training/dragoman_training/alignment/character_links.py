"""The links of texts and their translations, as they are written, as ranges of characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman_training.alignment.aligner import Aligner, load_aligner

Span = tuple[int, int]
TextPair = tuple[str, str]
"""A text and its translation."""


@dataclass(frozen=True, kw_only=True)
class CharacterLink:
    """A link between two words."""

    source: Span
    """Half-open, in the text."""
    target: Span
    """The same in the translation."""
    weight: float
    """How far both directions believe in it, up to 1."""


def open_character_aligner(location: str) -> "CharacterAligner":
    """Raises ValueError where the folder holds no aligner."""
    return CharacterAligner(load_aligner(Path(location)))


class CharacterAligner:
    """A saved aligner. Threads may share it."""

    def __init__(self, aligner: Aligner) -> None:
        self._aligner = aligner

    def __call__(self, text: str, translation: str, max_words: int = 500) -> list[CharacterLink]:
        """Links by target word and falling weight; line by line where both have as many, else at once.

        Raises ValueError for texts that belong the other way round, and where a side of what is linked at
        once has more than `max_words`.
        """
        if self.is_swapped([(text, translation)]):
            raise ValueError(
                "the text has more words of the aligner's target language, and the translation of its source "
                "language: they belong the other way round"
            )
        sides = [_lines(side) for side in (text, translation)]
        if len(sides[0]) != len(sides[1]):
            sides = [[(0, side)] for side in (text, translation)]
        longest = max((self.count_words(part) for side in sides for _, part in side), default=0)
        if longest > max_words:
            raise ValueError(
                f"what is linked at once has {longest} words, and at most {max_words} are; give both sides "
                "as many lines, which are linked line by line, or say a larger --max-words"
            )
        linked = self.link([(one, other) for (_, one), (_, other) in zip(*sides, strict=True)])
        links = [
            CharacterLink(
                source=_moved(link.source, start), target=_moved(link.target, other_start), weight=link.weight
            )
            for (start, _), (other_start, _), of_line in zip(*sides, linked, strict=True)
            for link in of_line
        ]
        return sorted(links, key=_order)

    def link(self, pairs: Sequence[TextPair]) -> list[list[CharacterLink]]:
        """The links of each pair, at once, by target word and falling weight."""
        rule = self._aligner.rule
        words = [(rule.normalize(one), rule.normalize(other)) for one, other in pairs]
        found = []
        for (one, other), (belief_IJ, link_IJ) in zip(
            pairs, self._aligner.believed(words, "grow-diag-final-and"), strict=True
        ):
            spans, other_spans = rule.spans(one), rule.spans(other)
            links = [
                CharacterLink(source=spans[i], target=other_spans[j], weight=float(belief_IJ[i, j]))
                for i, j in zip(*(axis.tolist() for axis in link_IJ.nonzero()), strict=True)
            ]
            found.append(sorted(links, key=_order))
        return found

    def count_words(self, text: str) -> int:
        """How many words it links of a text."""
        return len(self._aligner.rule.split(text))

    def is_swapped(self, pairs: Sequence[TextPair]) -> bool:
        """Whether the texts' words are rather those of the other side, of all pairs together."""
        rule = self._aligner.rule
        return self._aligner.swapped([(rule.normalize(one), rule.normalize(other)) for one, other in pairs])


def _order(link: CharacterLink) -> tuple[Span, float]:
    return link.target, -link.weight


def _moved(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines that have a word, each with where it starts."""
    found, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            found.append((start, line))
        start += len(line) + 1
    return found

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

    def link(self, pairs: Sequence[TextPair]) -> list[list[CharacterLink]]:
        """The links of each pair, at once, by target word and falling weight."""
        rule = self._aligner.rule
        words = [(rule.normalize(one), rule.normalize(other)) for one, other in pairs]
        found = []
        believed = self._aligner.believed(words, "grow-diag-final-and")
        for (one, other), (belief_IJ, link_IJ) in zip(pairs, believed, strict=True):
            spans, other_spans = rule.spans(one), rule.spans(other)
            links = [
                CharacterLink(source=spans[i], target=other_spans[j], weight=float(belief_IJ[i, j]))
                for i, j in zip(*(axis.tolist() for axis in link_IJ.nonzero()), strict=True)
            ]
            found.append(sorted(links, key=lambda link: (link.target, -link.weight)))
        return found

    def count_words(self, text: str) -> int:
        """How many words it links of a text."""
        return len(self._aligner.rule.split(text))

    def is_swapped(self, pairs: Sequence[TextPair]) -> bool:
        """Whether the texts' words are rather those of the other side, of all pairs together."""
        rule = self._aligner.rule
        return self._aligner.swapped([(rule.normalize(one), rule.normalize(other)) for one, other in pairs])

"""How far links are from those that people drew (Och & Ney 2003, section 5.1).

With A the links, S the sure and P the possible ones: precision |A ∩ P| / |A|, recall |A ∩ S| / |S|,
AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman_training.alignment.output.pharaoh import GoldLinks, Link


@dataclass(frozen=True, kw_only=True)
class Score:
    """Counts of links over all sentence pairs."""

    num_links: int
    num_sure: int
    num_sure_found: int
    num_possible_found: int

    @property
    def precision(self) -> float:
        """1 where there are no links."""
        return self.num_possible_found / self.num_links if self.num_links else 1.0

    @property
    def recall(self) -> float:
        """1 where nothing is sure."""
        return self.num_sure_found / self.num_sure if self.num_sure else 1.0

    @property
    def aer(self) -> float:
        """Alignment error rate."""
        total = self.num_links + self.num_sure
        return 1 - (self.num_sure_found + self.num_possible_found) / total if total else 0.0


def score_links(links: Sequence[frozenset[Link]], gold: Sequence[GoldLinks]) -> Score:
    """Over sentence pairs, as many of both."""
    pairs = list(zip(links, gold, strict=True))
    return Score(
        num_links=sum(len(found) for found, _ in pairs),
        num_sure=sum(len(drawn.sure) for _, drawn in pairs),
        num_sure_found=sum(len(found & drawn.sure) for found, drawn in pairs),
        num_possible_found=sum(len(found & drawn.possible) for found, drawn in pairs),
    )


def check_range(path: Path, links: Sequence[frozenset[Link]], sizes: Sequence[tuple[int, int]]) -> None:
    """Raises ValueError, with the line, for a link of a word that its sentence pair does not have."""
    for number, (found, (num_sources, num_targets)) in enumerate(zip(links, sizes, strict=True), 1):
        for i, j in sorted(found):
            if i >= num_sources or j >= num_targets:
                raise ValueError(
                    f"{path}, line {number}: link {i}-{j} is out of range: of {num_sources} source "
                    f"and {num_targets} target words the first is 0"
                )

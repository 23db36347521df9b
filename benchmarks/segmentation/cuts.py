"""Counts cuts that are missed between two sentences, and those within one. Pure."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_bundle.languages import writes_spaces

from dragoman_server.text.segmentation import Segmentation, segment

_ENDS = tuple(".!?…。！？")
_CLOSERS = "\"'”“’»«）)」』"


@dataclass(frozen=True, kw_only=True)
class MissedCuts:
    """What became of pairs of sentences."""

    num_pairs: int
    missed: list[str]
    """The pairs that were not cut between the two, joined with a bar."""


def count_missed_cuts(sentences: Sequence[str], language: str, *, limit: int | None = None) -> MissedCuts:
    """Joins each sentence with the next one in an order by chance, and looks for the cut.

    Leaves out a first one that has no mark at its end. `limit` is in sentences.
    """
    order = list(sentences)
    random.Random(1).shuffle(order)
    pairs = zip(order[:limit:2], order[1:limit:2], strict=False)
    space = " " if writes_spaces(language) else ""
    num_pairs = 0
    missed = []
    for first, second in pairs:
        if first.rstrip(_CLOSERS).endswith(_ENDS):
            num_pairs += 1
            joined = first + space + second
            if len(first + space) not in _starts(joined, language):
                missed.append(f"{first}|{second}")
    return MissedCuts(num_pairs=num_pairs, missed=missed)


def wrong_cuts(sentences: Sequence[str], language: str) -> list[str]:
    """The sentences that were cut."""
    return [sentence for sentence in sentences if len(_starts(sentence, language)) != 1]


def _starts(text: str, language: str) -> list[int]:
    return [start for start, _ in segment(text, language=language, mode=Segmentation.SENTENCE)]

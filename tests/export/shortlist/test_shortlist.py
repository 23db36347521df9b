"""What a shortlist is learnt from."""

from dragoman_export.shortlist.builder import build_shortlist
from dragoman_export.shortlist.options import ShortlistOptions
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus


def test_pairs_of_which_normalization_leaves_nothing_teach_nothing(luong: Checkpoint) -> None:
    lines: list[str] = []
    nothing = "\u200b"
    corpus = Corpus(["a b", nothing, "c d", "e"], ["a b", "c", nothing, "e"])
    build_shortlist(luong, corpus, ShortlistOptions(), lines.append)
    assert lines[0] == "shortlist: learning from 2 sentence pairs"

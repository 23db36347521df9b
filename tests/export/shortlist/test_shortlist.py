"""What a shortlist is learnt from."""

from dragoman_export.shortlist.builder import learn_shortlist
from dragoman_export.shortlist.options import ShortlistOptions
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus


def test_pairs_of_which_normalization_leaves_nothing_teach_nothing(luong: Checkpoint) -> None:
    lines: list[str] = []
    nothing = "\u200b"
    corpus = Corpus(["a b", nothing, "c d", "e"], ["a b", "c", nothing, "e"])
    tokenizers = luong.source_tokenizer, luong.target_tokenizer
    learn_shortlist(corpus, *tokenizers, ShortlistOptions(), lines.append, max_tokens=60, max_pairs=4)
    assert lines[0] == "shortlist: learning from 2 sentence pairs"

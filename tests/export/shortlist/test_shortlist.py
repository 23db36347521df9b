"""What a shortlist is learnt from."""

import pytest

from dragoman_export.shortlist.builder import ShortlistOptions, build_shortlist, learn_shortlist
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus


@pytest.mark.parametrize(("max_pairs", "used"), [(10, 10), (26, 26), (40, 26), (1, 1)])
def test_of_a_larger_corpus_it_is_as_many_pairs_as_it_may_be(
    luong: Checkpoint, max_pairs: int, used: int
) -> None:
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    lines: list[str] = []
    options = ShortlistOptions(num_frequent=0)
    tokenizers = luong.source_tokenizer, luong.target_tokenizer
    corpus = Corpus(letters, letters)
    learn_shortlist(corpus, *tokenizers, options, lines.append, max_tokens=100, max_pairs=max_pairs)
    assert lines[0] == f"shortlist: learning from {used} sentence pairs"


def test_pairs_of_which_normalization_leaves_nothing_teach_nothing(luong: Checkpoint) -> None:
    lines: list[str] = []
    nothing = "\u200b"
    corpus = Corpus(["a b", nothing, "c d", "e"], ["a b", "c", nothing, "e"])
    build_shortlist(luong, corpus, ShortlistOptions(), lines.append)
    assert lines[0] == "shortlist: learning from 2 sentence pairs"

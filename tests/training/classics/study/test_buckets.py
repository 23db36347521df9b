"""Buckets of source lengths."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.classics.study.buckets import cut_buckets, joined_bucket, num_words


def sentences(*lengths: int) -> list[str]:
    return [" ".join(["wort"] * length) for length in lengths]


def test_lengths_are_cut_evenly() -> None:
    buckets = cut_buckets(sentences(1, 6, 5, 10, 2, 11), words=5, min_sentences=1)
    assert [bucket.label for bucket in buckets] == ["1 to 5", "6 to 10", "11"]
    assert [bucket.numbers for bucket in buckets] == [(0, 2, 4), (1, 3), (5,)]


def test_a_small_bucket_joins_the_next_and_the_last_the_one_before() -> None:
    buckets = cut_buckets(sentences(1, 6, 7, 11, 12, 30), words=5, min_sentences=2)
    assert [bucket.label for bucket in buckets] == ["1 to 7", "11 to 30"]


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=80),
    words=st.integers(1, 10),
    min_sentences=st.integers(1, 20),
)
def test_every_sentence_is_in_one_bucket_and_no_bucket_is_too_small(
    lengths: list[int], words: int, min_sentences: int
) -> None:
    sources = sentences(*lengths)
    if len(sources) < min_sentences:
        with pytest.raises(ValueError, match="lower --bucket-sentences"):
            cut_buckets(sources, words=words, min_sentences=min_sentences)
        return
    buckets = cut_buckets(sources, words=words, min_sentences=min_sentences)
    assert sorted(number for bucket in buckets for number in bucket.numbers) == list(range(len(sources)))
    assert all(len(bucket.numbers) >= min_sentences for bucket in buckets)
    for bucket in buckets:
        assert all(bucket.least <= num_words(sources[n]) <= bucket.most for n in bucket.numbers)
    assert all(one.most < other.least for one, other in pairwise(buckets))


def test_joined_sentences_are_a_bucket_that_says_so() -> None:
    sources = sentences(3, 4, 9, 12)
    bucket = joined_bucket(sources, [2, 3], min_sentences=2)
    assert (bucket.label, bucket.numbers, bucket.joined) == ("9 to 12, joined", (2, 3), True)
    with pytest.raises(ValueError, match=r"have 3 sentences, but joined there are only 2: lower --join"):
        joined_bucket(sources, [2, 3], min_sentences=3)

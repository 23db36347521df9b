"""The test set, long sentences made of its own, and buckets of source lengths."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.training.classics.study.made_findings import made_set

from dragoman_training.classics.study.inputs import Bucket, StudySet, cut_buckets, num_words, read_study_set

SOURCES = ["Ein Mann geht.", "Zwei Hunde laufen .", "Was ruft?", "Die Frau singt.", "Nie!"]
REFERENCES = ["A man walks.", "Two dogs run .", "What calls?", "The woman sings.", "Never!"]


def read(folder: Path, join: int, sentences: str | None = None) -> StudySet:
    for side, lines in (("de", SOURCES), ("en", REFERENCES)):
        (folder / f"test.{side}").write_text("".join(f"{line}\n" for line in lines))
    return read_study_set(folder / "test.de", folder / "test.en", sentences, join=join)


def test_joined_sentences_stand_behind_the_test_sets_own_in_both_languages(tmp_path: Path) -> None:
    test_set = read(tmp_path, 2)
    assert [test_set.sources[number] for number in test_set.own] == SOURCES
    assert [test_set.references[number] for number in test_set.own] == REFERENCES
    assert [test_set.sources[number] for number in test_set.joined] == [
        "Ein Mann geht, zwei Hunde laufen .",
        "Was ruft, die Frau singt.",
    ]
    assert [test_set.references[number] for number in test_set.joined] == [
        "A man walks, two dogs run .",
        "What calls, the woman sings.",
    ]
    assert test_set.join == 2


def sentences(*lengths: int) -> list[str]:
    return [" ".join(["wort"] * length) for length in lengths]


def cut(sources: list[str], *, words: int = 5, min_sentences: int) -> list[Bucket]:
    return cut_buckets(made_set(sources, sources), words=words, min_sentences=min_sentences)


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
            cut(sources, words=words, min_sentences=min_sentences)
        return
    buckets = cut(sources, words=words, min_sentences=min_sentences)
    assert sorted(number for bucket in buckets for number in bucket.numbers) == list(range(len(sources)))
    assert all(len(bucket.numbers) >= min_sentences for bucket in buckets)
    for bucket in buckets:
        assert all(bucket.least <= num_words(sources[n]) <= bucket.most for n in bucket.numbers)
    assert all(one.most < other.least for one, other in pairwise(buckets))


def test_joined_sentences_are_a_bucket_that_says_so() -> None:
    sources = sentences(3, 4, 9, 12)
    test_set = made_set(sources, sources, num_sentences=2, join=2)
    own, joined = cut_buckets(test_set, words=5, min_sentences=2)
    assert (own.label, own.numbers, own.joined) == ("3 to 4", (0, 1), False)
    assert (joined.label, joined.numbers, joined.joined) == ("9 to 12, joined", (2, 3), True)
    test_set = made_set(sources, sources, num_sentences=3, join=2)
    with pytest.raises(ValueError, match=r"have 2 sentences, but joined there are only 1: lower --join"):
        cut_buckets(test_set, words=5, min_sentences=2)

"""A vocabulary beside a sentencepiece model gives the ids, or is refused with the reason."""

import json
import random

import pytest
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer
from tests.pieces import train_pieces

IDS = SpecialIds(pad=5, unk=1, bos=5, eos=0)
VOCABULARY = {"</s>": 0, "<unk>": 1, "b": 2, "▁": 3, "a": 4, "<pad>": 5, ">>xx<<": 7}


@pytest.fixture(scope="module")
def model() -> bytes:
    return train_pieces(["abc"], 7)


def make(
    model: bytes, vocabulary: object, size: int = 9, language_token: str | None = None
) -> VocabularyTokenizer:
    return VocabularyTokenizer(
        model, json.dumps(vocabulary).encode(), size=size, ids=IDS, language_token=language_token
    )


def test_ids_are_those_of_the_vocabulary_there_and_back(model: bytes) -> None:
    tokenizer = make(model, VOCABULARY)
    assert tokenizer.encode_ids(["ab a", "abc"]) == [[3, 4, 2, 3, 4], [3, 4, 2, 1]]
    tokenized = tokenizer.encode("ab a")
    assert tokenized.ids == [3, 4, 2, 3, 4]
    assert tokenized.spans == [(0, 0), (0, 1), (1, 2), (2, 3), (3, 4)]
    assert tokenizer.decode(tokenized.ids).text == tokenizer.decode_text(tokenized.ids) == "ab a"
    assert (tokenizer.vocabulary_size, tokenizer.bos_id, tokenizer.eos_id) == (9, 5, 0)


def test_a_text_is_the_same_with_spans_and_without(model: bytes) -> None:
    """Of any tokens, also of some that the sentencepiece model does not know, and of none."""
    tokenizer = make(model, VOCABULARY | {"▁zz": 6, "▁": 3, "z▁z": 8})
    chance = random.Random(1)
    for _ in range(300):
        ids = [chance.randrange(tokenizer.vocabulary_size) for _ in range(chance.randrange(9))]
        assert tokenizer.decode_text(ids) == tokenizer.decode(ids).text


def test_a_text_may_begin_with_a_language_token(model: bytes) -> None:
    tokenizer = make(model, VOCABULARY)
    assert tokenizer.encode_ids([">>xx<<a"]) == [[7, 3, 4]]
    assert tokenizer.encode(">>xx<<a").spans == [(0, 6), (6, 6), (6, 7)]
    assert 7 not in tokenizer.encode_ids([">>xx"])[0]


def test_every_text_begins_with_the_tokenizers_own_language_token(model: bytes) -> None:
    tokenizer = make(model, VOCABULARY | {">>yy<<": 8}, language_token=">>yy<<")
    assert tokenizer.encode_ids(["a", ">>xx<<a", "", " "]) == [[8, 3, 4], [7, 3, 4], [], []]
    assert tokenizer.encode_ids(["a"] * 200) == [[8, 3, 4]] * 200
    for text in ("a", ">>xx<<a", ""):
        assert tokenizer.encode(text).ids == tokenizer.encode_ids([text])[0]
    # It covers nothing of the text.
    assert tokenizer.encode("a").spans == [(0, 0), (0, 0), (0, 1)]


def test_what_it_has_hardly_seen_is_found_once_for_all_languages(model: bytes) -> None:
    tokenizer = make(model, {"▁zzš": 2, "▁š": 3, "đ": 6, "я": 8, ">>xx<<": 7, ">>yy<<": 5})
    copies = [tokenizer.beginning_with(language) for language in (">>xx<<", ">>yy<<")]
    assert copies[0].unreadable_ids == {tokenizer.unk_id, 6}
    assert copies[1].unreadable_ids is copies[0].unreadable_ids


def test_a_language_token_that_the_vocabulary_lacks_is_refused_with_those_it_has(model: bytes) -> None:
    with pytest.raises(ValueError, match="has no language token '>>zz<<'; it has >>xx<<, >>yy<<"):
        make(model, VOCABULARY | {">>yy<<": 8}, language_token=">>zz<<")


def test_a_quotation_in_guillemets_is_text(model: bytes) -> None:
    tokenizer = make(model, VOCABULARY | {">>": 6})
    assert tokenizer.encode_ids([">>ab<<, a"]) == [[3, 6, 4, 2, 1, 3, 4]]
    tokenized = tokenizer.encode(">>ab<<, a")
    assert tokenized.ids == [3, 6, 4, 2, 1, 3, 4]
    assert "".join(tokenized.text[start:end] for start, end in tokenized.spans) == ">>ab<<, a"
    assert tokenizer.encode_ids([">>"]) == [[3, 6]]


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        (VOCABULARY | {"c": 4}, "pieces 'a' and 'c' both have the id 4"),
        (VOCABULARY | {"c": 9}, "piece 'c' has the id 9; there are 9"),
        (VOCABULARY | {"c": True}, "a whole number for each piece"),
        (["a"], "must be a JSON object"),
    ],
)
def test_vocabulary_that_cannot_be_is_refused(model: bytes, vocabulary: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(model, vocabulary)


def test_special_id_beyond_the_vocabulary_is_refused(model: bytes) -> None:
    with pytest.raises(ValueError, match="the pad id is 5; there are 5"):
        make(model, {"a": 4}, size=5)

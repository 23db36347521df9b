"""Ids of many texts: the same whichever way they are asked for, and threads only where they pay."""

import random
from typing import Any

import pytest
from dragoman_bundle.tokenizers.tokenizer import MIN_TEXTS_FOR_THREADS, Tokenizer

TEXTS = ["der hund", "", "the bird sees", "x"]


@pytest.mark.parametrize("count", [0, 1, len(TEXTS), 2 * MIN_TEXTS_FOR_THREADS])
def test_ids_of_many_texts_are_those_of_each(tokenizer_model: bytes, count: int) -> None:
    tokenizer = Tokenizer(tokenizer_model)
    texts = [TEXTS[number % len(TEXTS)] for number in range(count)]
    assert tokenizer.encode_ids(texts) == [tokenizer.encode(text).ids for text in texts]


def test_few_texts_start_no_threads(tokenizer_model: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer(tokenizer_model)
    encode = tokenizer._processor.encode
    given: list[object] = []

    def recorded(texts: object, **options: Any) -> object:
        given.append(texts)
        return encode(texts, **options)

    monkeypatch.setattr(tokenizer._processor, "encode", recorded)
    tokenizer.encode_ids(["hund"] * (MIN_TEXTS_FOR_THREADS - 1))
    tokenizer.encode_ids([])
    assert given == ["hund"] * (MIN_TEXTS_FOR_THREADS - 1)
    tokenizer.encode_ids(["hund"] * MIN_TEXTS_FOR_THREADS)
    assert given[-1] == ["hund"] * MIN_TEXTS_FOR_THREADS


def test_a_text_is_the_same_with_spans_and_without(tokenizer_model: bytes) -> None:
    tokenizer = Tokenizer(tokenizer_model)
    chance = random.Random(1)
    for _ in range(300):
        # Any tokens, the special ones too, and none.
        ids = [chance.randrange(tokenizer.vocabulary_size) for _ in range(chance.randrange(9))]
        assert tokenizer.decode_text(ids) == tokenizer.decode(ids).text

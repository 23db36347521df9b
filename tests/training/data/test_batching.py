"""Batches hold every pair once, within the budget, with padding where it belongs."""

import re
from pathlib import Path
from typing import Literal

import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.files import read_lines
from dragoman_training.data.vocabulary import VocabularyError, train_tokenizers
from dragoman_training.recipe.data import VocabularyConfig


@pytest.fixture(scope="module")
def corpus(toy_folder: Path) -> Corpus:
    return Corpus(
        list(read_lines(toy_folder / "train.de"))[:300], list(read_lines(toy_folder / "train.en"))[:300]
    )


@pytest.fixture(scope="module")
def tokenizer(corpus: Corpus) -> Tokenizer:
    return train_tokenizers(corpus, VocabularyConfig(size=90, model_type="bpe"))[0]


def test_an_epoch_holds_every_pair_once_within_the_budget(corpus: Corpus, tokenizer: Tokenizer) -> None:
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=None)
    plan = pairs.plan(400, seed=1)
    assert sorted(number for numbers in plan for number in numbers) == list(range(300))
    for numbers in plan:
        batch = pairs.batch(numbers)
        assert batch.source_ST.numel() <= 400
        assert batch.target_output_SU.numel() <= 400


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own(corpus: Corpus, tokenizer: Tokenizer) -> None:
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=None)
    assert [len(numbers) for numbers in pairs.plan(1, seed=1)] == [1] * len(pairs)


def test_inputs_begin_with_bos_and_outputs_end_with_eos(corpus: Corpus, tokenizer: Tokenizer) -> None:
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=None)
    batch = pairs.batch([0, 1, 2])
    for number in range(3):
        target = tokenizer.encode_ids([corpus.targets[number]])[0]
        source = tokenizer.encode_ids([corpus.sources[number]])[0]
        length = len(target) + 1
        assert batch.target_input_SU[number, :length].tolist() == [tokenizer.bos_id, *target]
        assert batch.target_output_SU[number, :length].tolist() == [*target, tokenizer.eos_id]
        assert batch.target_output_SU[number, length:].eq(tokenizer.pad_id).all()
        assert batch.counted[number].sum() == length
        assert batch.source_length_S[number] == len(source) + 1
        assert batch.source_ST[number, : len(source) + 1].tolist() == [*source, tokenizer.eos_id]


def test_pairs_with_a_side_too_long_are_left_out_and_counted(corpus: Corpus, tokenizer: Tokenizer) -> None:
    everything = Pairs(corpus, tokenizer, tokenizer, max_tokens=None)
    short = Pairs(corpus, tokenizer, tokenizer, max_tokens=12)
    assert 0 < short.left_out["too long"] < 300
    assert len(short) + short.left_out["too long"] == len(everything)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_too_large_for_the_corpus_is_refused_with_the_largest(
    corpus: Corpus, model_type: Literal["unigram", "bpe"]
) -> None:
    with pytest.raises(VocabularyError, match=r"vocabulary\.size is 5000.*at most \d+ pieces") as caught:
        train_tokenizers(corpus, VocabularyConfig(size=5000, model_type=model_type))
    (most,) = re.findall(r"at most (\d+)", str(caught.value))
    source, _ = train_tokenizers(corpus, VocabularyConfig(size=int(most), model_type=model_type))
    assert source.vocabulary_size == int(most)
    with pytest.raises(VocabularyError, match=f"at most {most} pieces"):
        train_tokenizers(corpus, VocabularyConfig(size=int(most) + 1, model_type=model_type))

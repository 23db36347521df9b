"""What is likely not meant about a corpus is told; what is usual is not."""

from pathlib import Path

import pytest

from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.data.batching import Pairs, warnings_about
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.files import read_corpus


@pytest.fixture
def corpora(toy_folder: Path, toy_checkpoint: Path) -> tuple[Corpus, Corpus]:
    data = load_checkpoint(toy_checkpoint).recipe.data
    train, valid = (read_corpus(data, split, toy_folder) for split in ("train", "valid"))
    seen = set(zip(train.sources, train.targets, strict=True))
    new = [pair for pair in zip(valid.sources, valid.targets, strict=True) if pair not in seen]
    return train, Corpus([source for source, _ in new], [target for _, target in new])


def warnings_of(train: Corpus, valid: Corpus, checkpoint: Path) -> list[str]:
    loaded = load_checkpoint(checkpoint)
    pairs = Pairs(train, loaded.source_tokenizer, loaded.target_tokenizer, max_tokens=None)
    return warnings_about(pairs, valid)


def test_an_ordinary_corpus_has_none(corpora: tuple[Corpus, Corpus], toy_checkpoint: Path) -> None:
    assert warnings_of(*corpora, toy_checkpoint) == []


def test_validation_pairs_among_those_of_training_are_told(
    corpora: tuple[Corpus, Corpus], toy_checkpoint: Path
) -> None:
    train, valid = corpora
    mixed = Corpus(valid.sources + train.sources[:5], valid.targets + train.targets[:5])
    (warning,) = warnings_of(train, mixed, toy_checkpoint)
    assert f"5 of {len(mixed)} validation pairs are training pairs too" in warning


def test_one_side_twice_is_told(corpora: tuple[Corpus, Corpus], toy_checkpoint: Path) -> None:
    train, valid = corpora
    (warning,) = warnings_of(Corpus(train.sources, train.sources), valid, toy_checkpoint)
    assert "the same text on both sides" in warning


def test_a_script_that_the_vocabulary_lacks_is_told(
    corpora: tuple[Corpus, Corpus], toy_checkpoint: Path
) -> None:
    train, valid = corpora
    (warning,) = warnings_of(Corpus(train.sources, ["Здравствуй, мир"] * len(train)), valid, toy_checkpoint)
    assert "of the target tokens are unknown" in warning

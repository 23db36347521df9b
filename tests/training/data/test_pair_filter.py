"""Which pairs a recipe leaves out, how often the others come, and what is said of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.training.toy_pairs import toy_tokenizer

from dragoman_training.checkpoint import load_checkpoint, provenances
from dragoman_training.cli import train
from dragoman_training.data.batch_plan import draw_pairs, shuffler_of
from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.pair_filter import filtered, reasons_to_leave_out, show_left_out
from dragoman_training.data.tokenizing import tokenize
from dragoman_training.models import LanguageModelConfig
from dragoman_training.recipe.data import DataConfig, FilterConfig, RecipeError
from dragoman_training.recipe.settings import Recipe, TrainingConfig


@pytest.mark.parametrize(
    ("settings", "source", "target", "reason"),
    [
        ({}, "x" * 1000, "x", None),
        ({"max_characters": 10}, "x" * 10, "y", None),
        ({"max_characters": 10}, "y", "x" * 11, "of too many characters"),
        ({"max_length_ratio": 2.0}, "x" * 30, "y" * 15, None),
        ({"max_length_ratio": 2.0}, "x" * 14, "y" * 29, "of too unequal lengths"),
        ({"max_length_ratio": 2.0}, "Oui.", "Yes, I would like to", None),
        ({"leave_out_copies": True}, "OK 5", "ok 5", "with the same text on both sides"),
        ({"leave_out_copies": True}, "OK 5", "ok 6", None),
        ({"source_language": "de", "target_language": "en"}, "Ich mag die Berge.", "I like mountains.", None),
        ({"source_language": "de-AT"}, "ICH MAG DIE BERGE.", "", None),
        ({"source_language": "de"}, "Tom!", "", None),
        ({"source_language": "de"}, "I like the mountains.", "", "whose source side is in another language"),
        ({"target_language": "en"}, "", "Ich mag die Berge.", "whose target side is in another language"),
    ],
)
def test_a_pair_is_left_out_for_a_reason_that_is_reported(
    settings: dict[str, Any], source: str, target: str, reason: str | None
) -> None:
    assert reasons_to_leave_out([source], [target], FilterConfig(**settings)) == [reason]
    assert not reason or show_left_out({reason: 1_200}) == f"1,200 {reason}"


def test_of_equal_pairs_the_first_is_used() -> None:
    tokenizer = toy_tokenizer()
    corpus = Corpus(
        ["der hund", "ein mann", "der hund", "der hund"], ["the dog", "a man", "a dog", "the dog"]
    )
    pair_filter = FilterConfig(leave_out_duplicates=True)
    found = tokenize(corpus, (tokenizer, tokenizer), max_tokens=None, pair_filter=pair_filter)
    assert [own.tolist() for own in map(found.sides[1].__getitem__, range(3))] == tokenizer.encode_ids(
        ["the dog", "a man", "a dog"]
    )
    assert show_left_out(found.left_out) == "1 there already"
    assert found.texts is not None
    assert found.texts[1] == filtered(corpus, pair_filter).targets == ["the dog", "a man", "a dog"]


def test_pairs_come_as_often_as_their_weight_says() -> None:
    shares = [(100, 1.0), (1000, 0.25), (10, 2.5)]
    epochs = [Counter(draw_pairs(shares, shuffler_of(seed)).tolist()) for seed in (1, 2)]
    for epoch in epochs:
        assert [epoch[number] for number in range(100)] == [1] * 100
        assert sum(epoch[number] for number in range(100, 1100)) == 250
        assert max(epoch[number] for number in range(100, 1100)) == 1
        assert sorted(epoch[number] for number in range(1100, 1110)) == [2] * 5 + [3] * 5
    assert epochs[0] != epochs[1]
    assert draw_pairs(shares, shuffler_of(1)).tolist() == draw_pairs(shares, shuffler_of(1)).tolist()


def test_validation_pairs_among_many_are_counted() -> None:
    """Each as often as it stands there, whatever the order."""
    tokenizer, count = toy_tokenizer(), 3000
    numbers = np.random.default_rng(1).permutation(count)
    corpus = Corpus([f"hund {number}" for number in numbers], [f"dog {number}" for number in numbers])
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=None)
    valid = Corpus(
        ["hund 7", "hund 7", "hund 8", "hund 2999", "x"], ["dog 7", "dog 7", "dog 9", "dog 2999", "x"]
    )
    assert pairs.count_seen(valid) == 3


def data_of(**settings: Any) -> DataConfig:
    return DataConfig(**{"source_language": "de", "target_language": "en", "valid_tsv": ("v",), **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_tsv": ("a", "b"), "train_weights": (1.0,)}, "has 1 numbers, but there are 2"),
        ({"train_tsv": ("a",), "train_weights": (0.0,)}, "has 0, but each must be above 0"),
        ({"train_tsv": ("a",), "train_weights": (2000.0,)}, "has 2000, but each must be .* at most 1000"),
        ({"train_tsv": ("a",), "train_weights": (float("nan"),)}, "has nan, but each"),
    ],
)
def test_weights_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=rf"data\.train_weights {message}"):
        data_of(**settings)


def test_a_filter_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"filter\.max_length_ratio is 0\.5, .* at least 1"):
        FilterConfig(max_length_ratio=0.5)
    with pytest.raises(ValueError, match=r"filter\.max_characters is -1, .* at least 0"):
        FilterConfig(max_characters=-1)
    with pytest.raises(ValueError, match=r"filter\.leave_out_copies .* model\.family is lm"):
        Recipe(
            name="lm",
            data=DataConfig(target_language="en", train_target=("t",), valid_target=("v",)),
            model=LanguageModelConfig(),
            training=TrainingConfig(early_stopping="loss"),
            filter=FilterConfig(leave_out_copies=True),
        )


def test_what_was_left_out_is_said_and_kept_and_on_the_card(toy_folder: Path, tmp_path: Path) -> None:
    for side in ("de", "en"):
        lines = (toy_folder / f"train.{side}").read_text().splitlines()[:200]
        (tmp_path / f"train.{side}").write_text("".join(f"{line}\n" for line in [*lines, *lines[:7], "OK"]))
        (tmp_path / f"valid.{side}").write_bytes((toy_folder / f"valid.{side}").read_bytes())
    (tmp_path / "toy.toml").write_bytes((toy_folder / "toy.toml").read_bytes())
    options = ["--set", "filter.leave_out_copies=true", "filter.leave_out_duplicates=true"]
    options += ["vocabulary.size=100", "training.max_epochs=1", "data.train_weights=2", "--out"]
    arguments = [str(tmp_path / "toy.toml"), *options, str(tmp_path / "run")]
    done = CliRunner().invoke(train, arguments)
    assert done.exit_code == 0, done.output
    assert "(1 with the same text on both sides, " in " ".join(done.output.split())
    checkpoint = load_checkpoint(tmp_path / "run" / "best.safetensors")
    left_out = checkpoint.progress["left_out"]
    assert left_out["with the same text on both sides"] == 1
    assert left_out["there already"] >= 7
    (own,) = provenances(checkpoint.recipe, checkpoint.progress)
    assert f"pairs (left out: {show_left_out(left_out)})" in own.data
    for changed in ("filter.leave_out_copies=false", "data.train_weights=3"):
        key = changed.split("=")[0]
        others = [each for each in arguments if not each.startswith(key)]
        refused = CliRunner().invoke(train, [*others, "--resume", "--set", changed])
        assert f"{key} was" in str(refused.exception)

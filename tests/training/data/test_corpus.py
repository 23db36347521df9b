"""Sentence pairs: from files, left out or come more often, warned of, and found again for a checkpoint."""

import gzip
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.training.toy_pairs import (
    DATA,
    part_of_toy,
    refusal,
    run_training,
    toy_corpus,
    toy_model,
    toy_tokenizer,
)

from dragoman_training.checkpoint import Checkpoint, load_checkpoint, provenances
from dragoman_training.data.batch_plan import draw_pairs, shuffler_of
from dragoman_training.data.batching import Pairs, warnings_about
from dragoman_training.data.corpus import Corpus, CorpusError
from dragoman_training.data.files import Part, read_corpus, read_lines
from dragoman_training.data.pair_filter import filtered, reasons_to_leave_out, show_left_out
from dragoman_training.data.survey import survey
from dragoman_training.data.tokenizing import tokenize
from dragoman_training.data.training_corpus import TrainingCorpusError, read_training_corpus
from dragoman_training.models import PlainConfig
from dragoman_training.recipe.data import DataConfig, FilterConfig
from dragoman_training.recipe.settings import Recipe


def config(**files: Any) -> DataConfig:
    return DataConfig(source_language="de", target_language="en", **{"valid_tsv": ("v",), **files})


def test_parallel_files_are_read_in_order_and_gzip_too(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "b.de.gz").write_bytes(gzip.compress(b"drei\r\n"))
    (tmp_path / "b.en.gz").write_bytes(gzip.compress(b"three"))
    data = config(train_source=("a.de", "b.de.gz"), train_target=("a.en", "b.en.gz"))
    corpus = read_corpus(data, "train", tmp_path)
    assert corpus.sources == ["eins", "zwei", "drei"]
    assert corpus.targets == ["one", "two", "three"]


def test_pairs_with_an_empty_side_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("eins\tone\n\nzwei\t \ndrei\tthree\tcomment\n")
    corpus = read_corpus(config(train_tsv=("a.tsv",)), "train", tmp_path)
    assert list(zip(corpus.sources, corpus.targets, strict=True)) == [("eins", "one"), ("drei", "three")]
    assert corpus.num_one_sided == 1


def test_a_byte_order_mark_is_no_part_of_the_first_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfeins\n")
    assert list(read_lines(tmp_path / "a")) == ["eins"]


def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    (tmp_path / "a.en").write_text("one\n")
    with pytest.raises(CorpusError, match=r"a\.de has 2 lines, but .*a\.en has 1"):
        read_corpus(config(train_source=("a.de",), train_target=("a.en",)), "train", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"eins\tone\nzw\xffei\ttwo\n", r"a\.tsv, line 2: not UTF-8"),
        (b"eins\tone\nzwei two\n", r"a\.tsv, line 2: no tab"),
        (b"\n", "no sentence pair"),
    ],
)
def test_lines_that_are_no_pairs_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.tsv").write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        read_corpus(config(train_tsv=("a.tsv",)), "train", tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gz", gzip.compress(b"eins\n" * 1000)[:40]),
        ("a.xz", lzma.compress(b"eins\n" * 1000)[:40]),
        ("a.xz", b"eins\n" * 1000),
    ],
    ids=["gz cut off", "xz cut off", "no xz"],
)
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for read in (lambda: list(read_lines(path)), lambda: survey([Part(kind="target", paths=(path,))])):
        with pytest.raises(CorpusError, match=rf"{name}: can't be read"):
            read()


def test_a_fingerprint_is_that_of_the_text_and_its_order() -> None:
    corpus = Corpus(["eins", "zwei"], ["one", "two"])
    assert corpus.fingerprint() == Corpus(["eins", "zwei"], ["one", "two"]).fingerprint()
    others = [
        Corpus(["zwei", "eins"], ["two", "one"]),
        Corpus(["eins", "zwei"], ["one", "twö"]),
        Corpus(["einsz", "wei"], ["one", "two"]),
        Corpus(["eins"], ["one"]),
    ]
    assert corpus.fingerprint() not in [other.fingerprint() for other in others]
    assert corpus.fingerprint().startswith("2 pairs, checksum ")


def test_what_is_likely_not_meant_is_warned_of_and_what_is_usual_is_not(tokenizer: Tokenizer) -> None:
    train, valid = toy_corpus(), Corpus(["der mann ruft."], ["the man calls."])

    def warnings(train: Corpus, valid: Corpus = valid) -> list[str]:
        return warnings_about(Pairs(train, tokenizer, tokenizer, max_tokens=None), valid)

    assert warnings(train) == []
    mixed = Corpus(valid.sources + train.sources[:5], valid.targets + train.targets[:5])
    (warning,) = warnings(train, mixed)
    assert "5 of 6 validation pairs are training pairs too" in warning
    (warning,) = warnings(Corpus(train.sources, train.sources))
    assert "the same text on both sides" in warning
    (warning,) = warnings(Corpus(train.sources, ["Здравствуй, мир"] * len(train)))
    assert "of the target tokens are unknown" in warning


def trained(progress: dict[str, Any]) -> Checkpoint:
    tokenizer, model = toy_tokenizer(), PlainConfig(embedding_size=8, layers=1, units=6)
    return Checkpoint(
        recipe=Recipe(name="toy", data=DATA, model=model),
        model=toy_model(model, tokenizer),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        progress=progress,
    )


def test_where_the_data_was_is_remembered(tmp_path: Path) -> None:
    for side in ("de", "en"):
        (tmp_path / f"train.{side}").write_text("a b\nc d\n")
    folders = tmp_path, tmp_path / "elsewhere"
    here, elsewhere = (trained({"data_folder": str(folder)}) for folder in folders)
    assert len(read_training_corpus(here)) == 2
    with pytest.raises(TrainingCorpusError, match=r"training/recipes/train\.de.*--recipe-folder"):
        read_training_corpus(trained({}))
    # A checkpoint of another machine: its folder is not here, and may not be asked for.
    message = r"training/recipes/train\.de.*they did at .*elsewhere, which"
    with pytest.raises(TrainingCorpusError, match=message):
        read_training_corpus(elsewhere)
    with pytest.raises(TrainingCorpusError, match=r"moved/train\.de.*--recipe-folder"):
        read_training_corpus(here, tmp_path / "moved")

    # Other pairs than the model was trained on are refused.
    checkpoint = trained({"corpus": Corpus(["a b", "c d"], ["a b", "c d"]).fingerprint()})
    assert len(read_training_corpus(checkpoint, tmp_path)) == 2
    (tmp_path / "train.en").write_text("a b\nc e\n")
    with pytest.raises(TrainingCorpusError, match=r"hold other pairs.*--recipe-folder"):
        read_training_corpus(checkpoint, tmp_path)


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
    targets = ["the dog", "a man", "a dog"]
    corpus = Corpus(["der hund", "ein mann", "der hund", "der hund"], [*targets, "the dog"])
    pair_filter = FilterConfig(leave_out_duplicates=True)
    found = tokenize(corpus, (tokenizer, tokenizer), max_tokens=None, pair_filter=pair_filter)
    assert [found.sides[1][number].tolist() for number in range(3)] == tokenizer.encode_ids(targets)
    assert show_left_out(found.left_out) == "1 there already"
    assert found.texts is not None
    assert found.texts[1] == filtered(corpus, pair_filter).targets == targets


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
    seen = [("hund 7", "dog 7"), ("hund 7", "dog 7"), ("hund 2999", "dog 2999")]
    valid = zip(*seen, ("hund 8", "dog 9"), ("x", "x"), strict=True)
    assert pairs.count_seen(Corpus(*map(list, valid))) == 3


def test_what_was_left_out_is_said_and_kept_and_on_the_card(toy_folder: Path, tmp_path: Path) -> None:
    recipe = part_of_toy(toy_folder, tmp_path, 200, 60)
    for side in ("de", "en"):
        lines = (tmp_path / f"train.{side}").read_text().splitlines()
        (tmp_path / f"train.{side}").write_text("".join(f"{line}\n" for line in [*lines, *lines[:7], "OK"]))
    options = ["--set", "filter.leave_out_copies=true", "filter.leave_out_duplicates=true"]
    options += ["vocabulary.size=100", "training.max_epochs=1", "data.train_weights=2", "--out"]
    arguments = [str(recipe), *options, str(tmp_path / "run")]
    assert "(1 with the same text on both sides, " in " ".join(run_training(*arguments).split())
    checkpoint = load_checkpoint(tmp_path / "run" / "best.safetensors")
    left_out = checkpoint.progress["left_out"]
    assert left_out["with the same text on both sides"] == 1
    assert left_out["there already"] >= 7
    (own,) = provenances(checkpoint.recipe, checkpoint.progress)
    assert f"pairs (left out: {show_left_out(left_out)})" in own.data
    for changed in ("filter.leave_out_copies=false", "data.train_weights=3"):
        key = changed.split("=")[0]
        others = [each for each in arguments if not each.startswith(key)]
        assert f"{key} was" in refusal(*others, "--resume", "--set", changed)

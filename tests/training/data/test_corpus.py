"""Sentence pairs from files, what is refused or warned of, and the pairs that a checkpoint was trained on."""

import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.training.toy_pairs import toy_corpus, toy_model, toy_tokenizer

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.batching import Pairs, warnings_about
from dragoman_training.data.corpus import Corpus, CorpusError
from dragoman_training.data.files import Part, read_corpus, read_lines
from dragoman_training.data.survey import survey
from dragoman_training.data.training_corpus import TrainingCorpusError, read_training_corpus
from dragoman_training.models import PlainConfig
from dragoman_training.recipe.data import DataConfig
from dragoman_training.recipe.settings import Recipe


def config(**files: tuple[str, ...]) -> DataConfig:
    return DataConfig(source_language="de", target_language="en", **{"valid_tsv": ("v",), **files})  # type: ignore[arg-type]


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


FILES: dict[str, Any] = {
    "train_source": ("train.de",),
    "train_target": ("train.en",),
    "valid_source": ("val.de",),
    "valid_target": ("val.en",),
}


def trained_on(progress: dict[str, Any], **files: Any) -> Checkpoint:
    tokenizer, model = toy_tokenizer(), PlainConfig(embedding_size=8, layers=1, units=6)
    data = DataConfig(source_language="de", target_language="en", **files)
    return Checkpoint(
        recipe=Recipe(name="toy", data=data, model=model),
        model=toy_model(model, tokenizer),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        progress=progress,
    )


def test_where_the_data_was_is_remembered(tmp_path: Path) -> None:
    for side in ("de", "en"):
        (tmp_path / f"train.{side}").write_text("a b\nc d\n")
    assert len(read_training_corpus(trained_on({"data_folder": str(tmp_path)}, **FILES))) == 2
    with pytest.raises(TrainingCorpusError, match=r"training/recipes/train\.de.*--recipe-folder"):
        read_training_corpus(trained_on({}, **FILES))
    # A checkpoint of another machine: its folder is not here, and may not be asked for.
    message = r"training/recipes/train\.de.*they did at .*elsewhere, which"
    with pytest.raises(TrainingCorpusError, match=message):
        read_training_corpus(trained_on({"data_folder": str(tmp_path / "elsewhere")}, **FILES))
    with pytest.raises(TrainingCorpusError, match=r"moved/train\.de.*--recipe-folder"):
        read_training_corpus(trained_on({"data_folder": str(tmp_path)}, **FILES), tmp_path / "moved")

    # Other pairs than the model was trained on are refused.
    trained = Corpus(["a b", "c d"], ["a b", "c d"]).fingerprint()
    checkpoint = trained_on({"corpus": trained}, **FILES)
    assert len(read_training_corpus(checkpoint, tmp_path)) == 2
    (tmp_path / "train.en").write_text("a b\nc e\n")
    with pytest.raises(TrainingCorpusError, match=r"hold other pairs.*--recipe-folder"):
        read_training_corpus(checkpoint, tmp_path)

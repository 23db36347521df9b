"""Sentence pairs from files, and what is said of files that can't be used."""

import gzip
import lzma
from pathlib import Path

import pytest

from dragoman_training.data.corpus import Corpus, CorpusError
from dragoman_training.data.files import Part, read_corpus, read_lines
from dragoman_training.data.survey import survey
from dragoman_training.recipe.data import DataConfig


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


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"eins\tone\n" + b"zw\xffei\ttwo\n")
    with pytest.raises(CorpusError, match=r"a\.tsv, line 2: not UTF-8"):
        read_corpus(config(train_tsv=("a.tsv",)), "train", tmp_path)


def test_a_line_without_a_tab_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("eins\tone\nzwei two\n")
    with pytest.raises(CorpusError, match=r"a\.tsv, line 2: no tab"):
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


def test_files_without_a_pair_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("\n")
    with pytest.raises(CorpusError, match="no sentence pair"):
        read_corpus(config(train_tsv=("a.tsv",)), "train", tmp_path)


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

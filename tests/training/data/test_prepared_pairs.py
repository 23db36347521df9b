"""Training pairs in files: read in blocks, tokenized by several processes, kept on disk, found again."""

import fcntl
import gzip
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.full_disk import disk_with
from tests.training.toy_pairs import DATA, SOURCES, TARGETS

from dragoman_training.data import files, training_pairs
from dragoman_training.data.batching import Pairs
from dragoman_training.data.cache import CorpusCache, CorpusCacheError
from dragoman_training.data.corpus import Corpus, CorpusError
from dragoman_training.data.files import read_corpus
from dragoman_training.data.token_ids import TokenizedCorpus
from dragoman_training.data.tokenizing import tokenize
from dragoman_training.data.training_pairs import FilePairs, open_training_pairs
from dragoman_training.data.vocabulary import make_samplers, train_tokenizers
from dragoman_training.models import LanguageModelConfig, LuongConfig
from dragoman_training.recipe.data import DataConfig, FilterConfig, SubwordSamplingConfig, VocabularyConfig
from dragoman_training.recipe.settings import GuidedAlignmentConfig, Recipe, TrainingConfig
from dragoman_training.run.objective import load_linker

ODD = "\ufeffein hund\r\n\n  der Mann ruft.\u2028so \n\u200b\nnur hier\nein mann. \xa0\nein" + " hund" * 41
ODD_TARGET = "\ufeffa dog\r\nlost\nthe man calls.\x85so\n\u200b\n \na man calls.\n" + "a dog " * 30
"""Marks of byte order, ends of lines of both kinds and what only looks like one, empty sides, and no end."""


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_LINES", 5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pairs of files, the second zipped."""
    (tmp_path / "a.de").write_text("".join(f"{line}\n" for line in SOURCES))
    (tmp_path / "a.en").write_text("".join(f"{line}\n" for line in TARGETS))
    (tmp_path / "b.de.gz").write_bytes(gzip.compress(ODD.encode()))
    (tmp_path / "b.en").write_text(ODD_TARGET, newline="")
    return tmp_path


def recipe_of(**tables: Any) -> Recipe:
    files = {"train_source": ("a.de", "b.de.gz"), "train_target": ("a.en", "b.en")}
    data = replace(DATA, **files, max_tokens=30)  # type: ignore[arg-type]
    settings = {"data": data, "vocabulary": VocabularyConfig(size=55)} | tables
    return Recipe(name="toy", model=LuongConfig(), **settings)


def opened(recipe: Recipe, folder: Path, said: list[str] | None = None) -> FilePairs:
    report = (lambda line: None) if said is None else said.append
    pairs = open_training_pairs(recipe, folder, folder / "cache", report, load_linker)
    assert isinstance(pairs, FilePairs)
    return pairs


def in_memory(recipe: Recipe, folder: Path, tokenizer: Tokenizer) -> TokenizedCorpus:
    """The same pairs as lists held them."""
    corpus = read_corpus(recipe.data, "train", folder)
    tokenizers = tokenizer, tokenizer
    return tokenize(corpus, tokenizers, max_tokens=recipe.data.max_tokens, pair_filter=recipe.filter)


def assert_same(one: TokenizedCorpus, other: TokenizedCorpus) -> None:
    assert len(one) == len(other) > 0
    for ours, theirs in zip(one.sides, other.sides, strict=True):
        ids, expected = ([side[n].tolist() for n in range(len(side))] for side in (ours, theirs))
        assert ids == expected
        assert ours.length_S.tolist() == theirs.length_S.tolist()
    assert np.array_equal(one.mark_P, other.mark_P)
    for name in ("num_read", "fingerprint", "num_unknown", "num_copies"):
        assert getattr(one, name) == getattr(other, name), name
    assert Counter(one.left_out) == Counter(other.left_out)


FILTERS = {
    "none": FilterConfig(),
    "all": FilterConfig(
        max_characters=60, max_length_ratio=1.5, leave_out_copies=True, leave_out_duplicates=True
    ),
}


@pytest.mark.parametrize("num_processes", [1, 2])
@pytest.mark.parametrize("wanted", FILTERS)
def test_what_is_on_disk_is_what_lists_held(
    folder: Path, tokenizer: Tokenizer, num_processes: int, wanted: str
) -> None:
    recipe = recipe_of(filter=FILTERS[wanted])
    found = opened(recipe, folder).tokenized((tokenizer, tokenizer), num_processes=num_processes)
    assert_same(found, in_memory(recipe, folder, tokenizer))
    assert sum(num_pairs for num_pairs, _ in found.shares) == len(found)


def test_tab_separated_files_and_a_language_models_text_too(folder: Path, tokenizer: Tokenizer) -> None:
    lines = [f"{source}\t{target}\tcomment\r\n" for source, target in zip(SOURCES, TARGETS, strict=True)]
    (folder / "a.tsv").write_text("".join([*lines, "\n", "\tlost\n", "\t\n", "ein hund\ta dog"]), newline="")
    pairs = DataConfig(source_language="de", target_language="en", train_tsv=("a.tsv",), valid_tsv=("v",))
    text = DataConfig(target_language="en", train_target=("a.en", "b.en"), valid_target=("v",))
    by_loss = TrainingConfig(early_stopping="loss")
    for recipe in (
        replace(recipe_of(), data=pairs),
        Recipe(name="toy", data=text, model=LanguageModelConfig(), training=by_loss),
    ):
        found = opened(recipe, folder).tokenized((tokenizer, tokenizer))
        assert_same(found, in_memory(recipe, folder, tokenizer))


def test_batches_and_segmentations_are_those_of_lists(folder: Path, tokenizer: Tokenizer) -> None:
    config = SubwordSamplingConfig(source=True, target=True, alpha=0.3)
    recipe = recipe_of(subword_sampling=config)
    corpora = [opened(recipe, folder).tokenized((tokenizer, tokenizer)), in_memory(recipe, folder, tokenizer)]
    batches = []
    for corpus in corpora:
        samplers = make_samplers((tokenizer, tokenizer), config, "unigram")
        pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=30, samplers=samplers)
        pairs.segment(7)
        batches.append([pairs.batch(numbers).source_ST.tolist() for numbers in pairs.plan(60, seed=3)])
    assert batches[0] == batches[1]
    assert len(batches[0]) > 3


def test_a_vocabulary_is_the_one_that_the_whole_corpus_gives(folder: Path) -> None:
    recipe, said = recipe_of(), []
    learnt, same = opened(recipe, folder, said).learn_vocabulary()
    assert learnt is same
    whole = read_corpus(recipe.data, "train", folder)
    assert learnt.model == train_tokenizers(whole, recipe.vocabulary)[0].model
    assert said == ["Training a vocabulary of 55 on 31 pairs."]


def test_what_is_made_once_is_found_again(folder: Path, tokenizer: Tokenizer) -> None:
    said: list[str] = []
    for _ in range(2):
        pairs = opened(recipe_of(), folder, said)
        pairs.learn_vocabulary()
        pairs.tokenized((tokenizer, tokenizer))
    assert [line.split()[0] for line in said] == ["Training", "Tokenizing"]


def entries(folder: Path) -> set[str]:
    return {path.name for path in (folder / "cache").iterdir() if path.is_dir()} - {"files"}


@pytest.mark.parametrize(
    "change", ["text", "max_tokens", "filter", "vocabulary", "order", "texts", "version"]
)
def test_what_is_made_of_something_else_is_another(
    folder: Path, tokenizer: Tokenizer, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of()
    opened(recipe, folder).tokenized((tokenizer, tokenizer))
    before, tokenizers = entries(folder), (tokenizer, tokenizer)
    match change:
        case "text":
            # The same size, and the same time of change.
            was = (folder / "a.en").stat()
            (folder / "a.en").write_text((folder / "a.en").read_text().replace("dog", "cat"))
            os.utime(folder / "a.en", ns=(was.st_atime_ns, was.st_mtime_ns))
        case "max_tokens":
            recipe = replace(recipe, data=replace(recipe.data, max_tokens=9))
        case "filter":
            recipe = replace(recipe, filter=FilterConfig(leave_out_copies=True))
        case "vocabulary":
            other = train_tokenizers(Corpus(SOURCES, TARGETS), VocabularyConfig(size=50))[0]
            tokenizers = other, other
        case "order":
            data = replace(recipe.data, train_source=("b.de.gz", "a.de"), train_target=("b.en", "a.en"))
            recipe = replace(recipe, data=data)
        case "texts":
            recipe = replace(recipe, subword_sampling=SubwordSamplingConfig(source=True))
        case "version":
            monkeypatch.setattr("dragoman_training.data.cache.FORMAT", 0)
    found = opened(recipe, folder).tokenized(tokenizers)
    assert len(entries(folder)) == len(before) + 1
    assert_same(found, in_memory(recipe, folder, tokenizers[0]))


def test_a_corpus_that_changes_meanwhile_is_refused_and_leaves_nothing(
    folder: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = opened(recipe_of(), folder)
    write = training_pairs.write_corpus

    def changing(*arguments: Any, **options: Any) -> None:
        write(*arguments, **options)
        (folder / "a.en").write_text((folder / "a.en").read_text().replace("dog", "cat"))

    monkeypatch.setattr(training_pairs, "write_corpus", changing)
    with pytest.raises(CorpusError, match=r"a\.en was changed while it was read"):
        pairs.tokenized((tokenizer, tokenizer))
    assert entries(folder) == set()


@pytest.mark.parametrize("num_processes", [1, 2])
def test_a_line_that_is_no_text_is_named_wherever_it_is(
    folder: Path, tokenizer: Tokenizer, num_processes: int
) -> None:
    (folder / "a.de").write_bytes(b"ein\n" * 17 + b"zw\xffei\n" + b"ein\n" * 6)
    pairs = opened(recipe_of(vocabulary=VocabularyConfig(size=40, max_pairs=30)), folder)
    tokenize_them = partial(pairs.tokenized, (tokenizer, tokenizer), num_processes=num_processes)
    for work in (tokenize_them, pairs.learn_vocabulary):
        with pytest.raises(CorpusError, match=r"a\.de, line 18: not UTF-8"):
            work()
    assert entries(folder) == set()


def test_files_of_unequal_length_are_refused_before_anything_is_made(folder: Path) -> None:
    (folder / "a.en").write_text("one\n" * 23 + "two")
    assert len(opened(recipe_of(), folder).parts) == 2
    (folder / "a.en").write_text("one\n")
    with pytest.raises(CorpusError, match=r"a\.de has 24 lines, but .*a\.en has 1"):
        opened(recipe_of(), folder)


def test_a_full_disk_is_told_with_the_way_out_and_leaves_nothing(folder: Path, tokenizer: Tokenizer) -> None:
    pairs = opened(recipe_of(), folder)
    message = r"cache \(File too large; .* GiB are free\).*--corpus-cache"
    with disk_with(200), pytest.raises(CorpusCacheError, match=message):
        pairs.tokenized((tokenizer, tokenizer))
    assert entries(folder) == set()


def test_a_damaged_entry_is_refused_with_its_name(folder: Path, tokenizer: Tokenizer) -> None:
    opened(recipe_of(), folder).tokenized((tokenizer, tokenizer))
    (entry,) = entries(folder)
    ids = folder / "cache" / entry / "target.ids"
    ids.write_bytes(ids.read_bytes()[:-2])
    with pytest.raises(CorpusCacheError, match=rf"target\.ids is damaged: .*delete the folder .*{entry}"):
        opened(recipe_of(), folder).tokenized((tokenizer, tokenizer))
    (folder / "cache" / entry / "summary.json").write_text("{}")
    with pytest.raises(CorpusCacheError, match=rf"{entry} is damaged.*delete it"):
        opened(recipe_of(), folder).tokenized((tokenizer, tokenizer))


def test_what_another_process_makes_is_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    cache = CorpusCache(tmp_path, said.append)
    path = cache.entry("thing", {"of": 1}, lambda part: None)
    shutil.rmtree(path)
    found: list[Path] = []

    def make_too() -> None:
        found.append(cache.entry("thing", {"of": 1}, lambda part: pytest.fail("it was made twice")))

    with path.with_name(f"{path.name}.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=make_too)
        waiting.start()
        while not said:
            time.sleep(0.01)
        # The other one is done.
        path.mkdir()
    waiting.join(30)
    assert found == [path]
    assert "Another process makes" in said[0]


def test_what_a_process_left_half_is_made_anew(tmp_path: Path) -> None:
    cache = CorpusCache(tmp_path, lambda line: None)

    def interrupted(part: Path) -> None:
        (part / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.entry("thing", {}, interrupted)
    (lock,) = tmp_path.iterdir()
    assert lock.suffix == ".lock"
    # One that had no time to tidy up.
    lock.with_suffix(".part").mkdir()
    (lock.with_suffix(".part") / "half").touch()
    path = cache.entry("thing", {}, lambda part: (part / "whole").touch())
    assert sorted(each.name for each in path.iterdir()) == ["made-of.json", "whole"]


def test_links_of_tokens_are_those_of_lists_and_made_once(folder: Path, tokenizer: Tokenizer) -> None:
    said: list[str] = []
    recipe = recipe_of(guided_alignment=GuidedAlignmentConfig(weight=0.1))
    tokenizers = tokenizer, tokenizer
    expected = Pairs(in_memory(recipe, folder, tokenizer), *tokenizers, max_tokens=30)
    assert not expected.is_guided
    expected.guide(load_linker(), max_pairs=1000)
    expected_SUT = expected.batch(range(len(expected))).guide_SUT
    assert expected_SUT is not None
    assert float(expected_SUT.sum()) > len(expected)
    for _ in range(2):
        found = Pairs(opened(recipe, folder, said).tokenized(tokenizers), *tokenizers, max_tokens=30)
        assert found.is_guided
        assert torch.equal(found.batch(range(len(found))).guide_SUT, expected_SUT)
    # Each is done once. How far it is, "Tokenized 5 of 10", is said only where it takes long.
    begun = [line for line in said if not line.startswith(("Tokenized", "Linked"))]
    assert [line.split()[0] for line in begun] == ["Tokenizing", "Linking"]


def test_files_that_were_just_changed_are_read_again(folder: Path) -> None:
    """A change within the clock's grain would not be seen in their times."""
    opened(recipe_of(), folder)
    assert not (folder / "cache" / "files").exists()


def test_processes_that_tokenize_have_no_pytorch() -> None:
    """Each of them would hold it once more, and begin seconds later."""
    code = "import sys, dragoman_training.data.tokenizing; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

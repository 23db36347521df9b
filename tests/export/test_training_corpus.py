"""The pairs that a checkpoint was trained on, found again."""

import dataclasses
from pathlib import Path

import pytest

from dragoman_export.training_corpus import TrainingCorpusError, read_training_corpus
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.corpus import Corpus
from dragoman_training.recipe import DataConfig


def test_a_data_set_that_cannot_be_loaded_is_a_corpus_that_is_not_there(
    luong: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text("{")
    data = DataConfig(source_language="de", target_language="en", hugging_face="set")
    checkpoint = dataclasses.replace(luong, recipe=dataclasses.replace(luong.recipe, data=data))
    with pytest.raises(TrainingCorpusError, match=r"set: can't be loaded.*--recipe-folder"):
        read_training_corpus(checkpoint, tmp_path)


def test_other_pairs_than_the_model_was_trained_on_are_refused(luong: Checkpoint, tmp_path: Path) -> None:
    for side in ("de", "en"):
        (tmp_path / f"train.{side}").write_text("a b\nc d\n")
    trained = Corpus(["a b", "c d"], ["a b", "c d"]).fingerprint()
    checkpoint = dataclasses.replace(luong, progress={**luong.progress, "corpus": trained})
    assert len(read_training_corpus(checkpoint, tmp_path)) == 2
    (tmp_path / "train.en").write_text("a b\nc e\n")
    with pytest.raises(TrainingCorpusError, match=r"hold other pairs.*--recipe-folder"):
        read_training_corpus(checkpoint, tmp_path)

"""The pairs that a checkpoint was trained on, found again."""

from pathlib import Path
from typing import Any

import pytest
from tests.training.toy_pairs import toy_model, toy_tokenizer

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.training_corpus import TrainingCorpusError, read_training_corpus
from dragoman_training.models import PlainConfig
from dragoman_training.recipe.data import DataConfig
from dragoman_training.recipe.settings import Recipe

FILES: dict[str, Any] = {
    "train_source": ("train.de",),
    "train_target": ("train.en",),
    "valid_source": ("val.de",),
    "valid_target": ("val.en",),
}


def trained_on(progress: dict[str, Any], **data: Any) -> Checkpoint:
    tokenizer, model = toy_tokenizer(), PlainConfig(embedding_size=8, layers=1, units=6)
    return Checkpoint(
        recipe=Recipe(
            name="toy", data=DataConfig(source_language="de", target_language="en", **data), model=model
        ),
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
    with pytest.raises(
        TrainingCorpusError, match=r"training/recipes/train\.de.*they did at .*elsewhere, which"
    ):
        read_training_corpus(trained_on({"data_folder": str(tmp_path / "elsewhere")}, **FILES))
    with pytest.raises(TrainingCorpusError, match=r"moved/train\.de.*--recipe-folder"):
        read_training_corpus(trained_on({"data_folder": str(tmp_path)}, **FILES), tmp_path / "moved")


def test_other_pairs_than_the_model_was_trained_on_are_refused(tmp_path: Path) -> None:
    for side in ("de", "en"):
        (tmp_path / f"train.{side}").write_text("a b\nc d\n")
    trained = Corpus(["a b", "c d"], ["a b", "c d"]).fingerprint()
    checkpoint = trained_on({"corpus": trained}, **FILES)
    assert len(read_training_corpus(checkpoint, tmp_path)) == 2
    (tmp_path / "train.en").write_text("a b\nc e\n")
    with pytest.raises(TrainingCorpusError, match=r"hold other pairs.*--recipe-folder"):
        read_training_corpus(checkpoint, tmp_path)

"""Releases of OPUS-MT on Hugging Face hold other files in other years, and all of them are read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.export.foreign.imported import assert_same, imported
from tests.export.marian_checkpoint import SOURCE_TEXT, their_tokenizer, write_marian

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.hf import load_checkpoint
from dragoman_export.importers.reading import Reading


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "opus-mt-de-en"
    write_marian(folder)
    return folder


@pytest.fixture
def older(checkpoint: Path, tmp_path: Path) -> Path:
    """As of 2020: how to generate stands in config.json, languages in metadata.json, weights in a pickle."""
    from transformers import MarianMTModel

    folder = shutil.copytree(checkpoint, tmp_path / "older")
    model = MarianMTModel.from_pretrained(folder)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items() if "lm_head" not in name}
    torch.save(weights, folder / "pytorch_model.bin")
    for file in ("model.safetensors", "generation_config.json"):
        (folder / file).unlink()
    config = json.loads((folder / "config.json").read_text())
    for key in ("decoder_vocab_size", "share_encoder_decoder_embeddings", "tie_word_embeddings"):
        config.pop(key, None)
    config |= {
        "add_bias_logits": False,
        "bad_words_ids": [[config["pad_token_id"]]],
        "bos_token_id": 0,
        "forced_eos_token_id": 0,
        "max_length": 40,
        "normalize_embedding": False,
        "num_beams": 6,
        "static_position_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    write_metadata(folder)
    return folder


def write_metadata(folder: Path, **changes: Any) -> None:
    metadata = {
        "hf_name": "deu-eng",
        "source_languages": "deu",
        "target_languages": "eng",
        "languages": ["de", "en"],
        "src_constituents": ["deu"],
        "src_alpha2": "de",
        "tgt_alpha2": "en",
        "train_date": "2020-06-17",
        **changes,
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))


def write_newer_tokenizer(folder: Path) -> None:
    """As since 2022, where the tokenizer was saved by its library: each mark stands in several files."""
    vocabulary = json.loads((folder / "vocab.json").read_text())
    marks = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    (folder / "special_tokens_map.json").write_text(json.dumps(marks))
    config: dict[str, Any] = {
        **marks,
        "added_tokens_decoder": {
            str(vocabulary[mark]): {"content": mark, "lstrip": False, "special": True}
            for mark in marks.values()
        },
        "additional_special_tokens": [],
        "model_max_length": 512,
        "name_or_path": "marian-models/opusTCv20210807",
        "separate_vocabs": False,
        "source_lang": "deu",
        "sp_model_kwargs": {},
        "special_tokens_map_file": None,
        "target_lang": "eng",
        "tokenizer_class": "MarianTokenizer",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "benchmark_results.txt").write_text("deu-eng flores101 0.5 20.1\n")
    (folder / "README.md").write_text("---\nlanguage:\n- de\n- en\nlicense: cc-by-4.0\n---\n")


def test_an_older_release_is_the_model_that_a_newer_one_is(checkpoint: Path, older: Path) -> None:
    newer = shutil.copytree(checkpoint, older.parent / "newer")
    write_newer_tokenizer(newer)
    found, expected = load_checkpoint(older), load_checkpoint(newer)
    assert_same(imported(found), imported(expected))
    tokenizers = their_tokenizer(newer), their_tokenizer(older)
    both = (found.source_tokenizer, expected.source_tokenizer)
    ours = [[[*ids, 0] for ids in each.encode_ids(SOURCE_TEXT)] for each in both]
    theirs = [[tokenizer(text)["input_ids"] for text in SOURCE_TEXT] for tokenizer in tokenizers]
    assert ours[0] == ours[1] == theirs[0] == theirs[1]
    assert (found.source_language, found.target_language) == ("de", "en")
    assert (expected.source_language, expected.target_language) == ("deu", "eng")
    assert expected.card.licence == "cc-by-4.0"
    # Its longest output counts the token that decoding starts with.
    assert (found.decoding.beam_size, found.decoding.max_output_tokens) == (6, 39)


@pytest.mark.parametrize(
    ("changes", "languages"),
    [
        ({}, ("de", "en")),
        ({"src_alpha2": "", "tgt_alpha2": None}, ("deu", "eng")),
        ({"source_languages": "gmw", "src_alpha2": None}, ("gmw", "en")),
    ],
)
def test_languages_are_those_of_metadata_json(
    checkpoint: Path, tmp_path: Path, changes: dict[str, Any], languages: tuple[str, str]
) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    (folder / "tokenizer_config.json").unlink()
    write_metadata(folder, **changes)
    subject = load_checkpoint(folder)
    assert (subject.source_language, subject.target_language) == languages


def test_several_languages_are_none(checkpoint: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    (folder / "tokenizer_config.json").unlink()
    write_metadata(folder, source_languages="de,nl", src_alpha2=["de", "nl"])
    with pytest.raises(FormatError, match="names one source language; give it with --source-language"):
        load_checkpoint(folder)
    assert load_checkpoint(folder, Reading(source_language="nl")).source_language == "nl"

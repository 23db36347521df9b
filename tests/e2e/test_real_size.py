"""A whole checkpoint of the size that people have: exported, checked, served and called."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from dragoman_bundle import Bundle, open_bundle
from dragoman_bundle.search import beam_search
from tests.conftest import toy_pairs
from tests.export.marian_checkpoint import number, pieces_of, train_spm
from tests.server.server_process import COMMAND, ServerProcess
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from dragoman_export.importers.hf import load_checkpoint
from dragoman_export.reference.model import ReferenceStepper

VOCABULARY = 65_001
DEVIATION = 0.05
"""Of the weights. Such a model is surer of itself than one that begins to learn, at 0.02."""


def write_real_size(folder: Path) -> None:
    """Writes the files that such a checkpoint has, the same ones each time."""
    pairs = toy_pairs(300, seed=4)
    models = [train_spm([pair[side] for pair in pairs], 120) for side in (0, 1)]
    pieces = sorted({piece for model in models for piece in pieces_of(model)})
    # As many words as it takes, of which the tokenizers know nothing.
    made_up = [f"▁word{place}" for place in range(VOCABULARY - len(pieces) - 3)]
    vocabulary = number([*pieces, *made_up])
    pad = vocabulary["<pad>"]
    assert pad == VOCABULARY - 1
    torch.manual_seed(6)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        decoder_vocab_size=VOCABULARY,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=512,
        init_std=DEVIATION,
        eos_token_id=0,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
    )
    model = MarianMTModel(config).eval()
    torch.nn.init.normal_(model.final_logits_bias, std=0.5)
    model.generation_config = GenerationConfig(
        max_length=512,
        num_beams=4,
        bad_words_ids=[[pad]],
        eos_token_id=0,
        forced_eos_token_id=0,
        pad_token_id=pad,
        decoder_start_token_id=pad,
    )
    model.save_pretrained(folder)
    for side, content in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(content)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"source_lang": "de", "target_lang": "en", "separate_vocabs": False})
    )


pytestmark = pytest.mark.long
MAX_PEAK_BYTES = 3 << 30
SENTENCES = ["ein hund sieht der vogel.", "der alter mann ruft heute."]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "opus-mt-de-en"
    folder.mkdir()
    write_real_size(folder)
    return folder


@pytest.fixture(scope="module")
def models(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of bundles with the checkpoint's, by the command, in no more memory than is promised."""
    folder = tmp_path_factory.mktemp("models")
    text = checkpoint.parent / "check.de"
    text.write_text("".join(f"{source}\n" for source, _ in toy_pairs(40, seed=5)))
    command = [*COMMAND, "get", checkpoint, "--out", folder / "opus" / "1", "--precisions", "fp32,int8"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, "--check-text", text, "--threads", "2"], stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    said = (folder / "log").read_text()
    (folder / "log").unlink()
    assert process.returncode == 0, said
    assert "[7/7] int8: decoding with onnxruntime" in said.splitlines()
    assert usage.ru_maxrss * 1024 < MAX_PEAK_BYTES, f"{usage.ru_maxrss / 1024**2:.2f} GiB"
    return folder


@pytest.fixture(scope="module")
def bundle(models: Path) -> Bundle:
    return open_bundle(models / "opus" / "1")


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(models, "--precision", "fp32") as running:
        yield running
        assert running.stop()[0] == 0


def test_both_precisions_passed_the_gate_and_the_card_tells_by_how_much(bundle: Bundle) -> None:
    assert bundle.manifest.precisions == ("fp32", "int8")
    assert bundle.manifest.target_vocabulary == VOCABULARY
    card = (bundle.path / "README.md").read_text()
    assert "sentences of `check.de`" in card
    assert "| int8 | " in card


def test_what_is_served_is_what_its_reference_decodes(
    checkpoint: Path, bundle: Bundle, server: ServerProcess
) -> None:
    subject = load_checkpoint(checkpoint)
    source, target = subject.source_tokenizer, subject.target_tokenizer
    stepper = ReferenceStepper(subject.model.reference(), source_pad_id=source.pad_id, eos_id=target.eos_id)
    sources = [[*ids, source.eos_id] for ids in source.encode_ids(SENTENCES)]
    expected = [
        target.decode_text(list(hypotheses[0].tokens))
        for hypotheses in beam_search(stepper, sources, subject.decoding)
    ]
    command = [*COMMAND, "translate", "--server", server.address, "--from", "de", "--to", "en"]
    done = subprocess.run([*command, *SENTENCES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
    assert all(expected)

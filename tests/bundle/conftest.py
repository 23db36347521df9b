"""A bundle small enough to be broken in every way: the graphs compute nothing, the tokenizers are real."""

import io
from pathlib import Path

import pytest
import sentencepiece
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import (
    FORMAT_VERSION,
    Architecture,
    Manifest,
    Quality,
    SpecialIds,
    TensorContract,
    TensorSpec,
)
from dragoman_bundle.writer import seal, staged_bundle
from onnx import helper

GRAPH = helper.make_model(helper.make_graph([], "nothing", [], [])).SerializeToString()
"""A graph that names no file."""
IDS = SpecialIds(pad=0, unk=1, bos=2, eos=3)


def train_tokenizer(vocabulary: int) -> bytes:
    """A serialised sentencepiece model of that many tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["der kleine hund sieht den vogel", "the small dog sees the bird"] * 8),
        model_writer=model,
        model_type="char",
        vocab_size=vocabulary,
        pad_id=IDS.pad,
        unk_id=IDS.unk,
        bos_id=IDS.bos,
        eos_id=IDS.eos,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.fixture(scope="session")
def tokenizer_model() -> bytes:
    return train_tokenizer(16)


@pytest.fixture(scope="session")
def other_tokenizer_model() -> bytes:
    return train_tokenizer(15)


@pytest.fixture
def manifest() -> Manifest:
    return Manifest(
        format_version=FORMAT_VERSION,
        name="de-en",
        version="1",
        source_language="de",
        target_language="en",
        architecture=Architecture(family="luong", parameters=1234, description="one layer of 8"),
        source_vocabulary=16,
        target_vocabulary=16,
        source_ids=IDS,
        target_ids=IDS,
        source_tokenizer="shared.spm",
        target_tokenizer="shared.spm",
        contract=TensorContract(
            memory=(
                TensorSpec(
                    name="memory.keys",
                    dtype={"fp32": "float32", "int8": "float32"},
                    shape=("S", "T", 8),
                    growth_axis=None,
                ),
            ),
            state=(
                TensorSpec(
                    name="state.hidden",
                    dtype={"fp32": "float32", "int8": "float32"},
                    shape=("P", 8),
                    growth_axis=None,
                ),
            ),
        ),
        decoding=DecodingDefaults(
            beam_size=5,
            length_penalty=1.0,
            max_source_tokens=100,
            max_output_tokens=256,
            max_output_ratio=2.0,
            max_output_margin=10,
        ),
        precisions=("fp32", "int8"),
        quality=(
            Quality(
                test_set="tatoeba-de-en/val",
                metric="BLEU",
                score=45.5,
                signature="nrefs:1|case:mixed",
                precision="int8",
                beam_size=5,
            ),
        ),
        licence="CC BY 2.0 FR",
        credit="Tatoeba — sentences by its contributors",
        files={},
    )


@pytest.fixture
def bundle_folder(tmp_path: Path, manifest: Manifest, tokenizer_model: bytes) -> Path:
    destination = tmp_path / "models" / "de-en" / "1"
    with staged_bundle(destination) as folder:
        for precision in manifest.precisions:
            (folder / precision).mkdir()
            for graph in ("encoder", "decoder_step"):
                (folder / precision / f"{graph}.onnx").write_bytes(GRAPH)
        (folder / "shared.spm").write_bytes(tokenizer_model)
        (folder / "README.md").write_text("# de-en\n")
        seal(folder, manifest)
    return destination

"""A bundle small enough to be broken in every way: the graphs compute nothing, the tokenizers are real."""

from dataclasses import replace
from pathlib import Path

import pytest
from dragoman_bundle import read_manifest
from dragoman_bundle.manifest import Manifest, TensorContract, TensorSpec
from dragoman_bundle.writer import seal, staged_bundle
from onnx import helper
from tests.pieces import BESIDE_PAD, train_pieces
from tests.server.copying_bundle import MANIFEST

GRAPH = helper.make_model(helper.make_graph([], "nothing", [], [])).SerializeToString()
"""A graph that names no file."""


def train_tokenizer(vocabulary: int) -> bytes:
    """A serialised sentencepiece model of that many tokens."""
    lines = ["der kleine hund sieht den vogel", "the small dog sees the bird"] * 8
    return train_pieces(lines, vocabulary, **BESIDE_PAD)


@pytest.fixture(scope="session")
def tokenizer_model() -> bytes:
    return train_tokenizer(16)


@pytest.fixture(scope="session")
def other_tokenizer_model() -> bytes:
    return train_tokenizer(15)


def reseal(folder: Path, **changes: object) -> None:
    """Lists the files that a bundle has now, with their checksums, in its manifest."""
    seal(folder, replace(read_manifest(folder), **changes))


def spec(name: str, *shape: str | int) -> TensorSpec:
    return TensorSpec(name=name, dtype={"fp32": "float32", "int8": "float32"}, shape=shape, growth_axis=None)


@pytest.fixture
def manifest() -> Manifest:
    return replace(
        MANIFEST,
        contract=TensorContract(
            memory=(spec("memory.keys", "S", "T", 8),), state=(spec("state.hidden", "P", 8),)
        ),
        precisions=("fp32", "int8"),
        quality=(replace(MANIFEST.quality[0], precision="int8"),),
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

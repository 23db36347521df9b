"""Toy checkpoints and their graphs, made once."""

from dataclasses import replace
from pathlib import Path

import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export import toy_checkpoint as toy

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Graphs
from dragoman_export.parity.gate import Parity, ParityGate
from dragoman_export.parity.onnx_stepper import OnnxStepper
from dragoman_export.parity.torch_reference import TorchReference
from dragoman_training.checkpoint import Checkpoint, as_one


@pytest.fixture(scope="session", autouse=True)
def _remembered_traces(remembered_traces: None) -> None:
    """For every test here."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return toy.train_tokenizer(40)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(name, marks=[pytest.mark.long] if name in toy.ALIKE else [])
        for name in (*toy.CONFIGS, "ensemble", "deep-ensemble")
    ],
)
def checkpoint(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Checkpoint:
    """A checkpoint of each family, with a shared vocabulary; an ensemble as its first member's."""
    members = toy.make_members(request.param, tokenizer)
    return replace(members[0], model=as_one(members))


@pytest.fixture(scope="session")
def luong(tokenizer: Tokenizer) -> Checkpoint:
    return toy.make_checkpoint(toy.CONFIGS["luong"], tokenizer, tokenizer)


@pytest.fixture(scope="session")
def luong_file(luong: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.save(luong, tmp_path_factory.mktemp("run") / "best.safetensors")


@pytest.fixture(scope="session")
def graphs(checkpoint: Checkpoint) -> dict[str, Graphs]:
    """The checkpoint's graphs in fp32 and int8."""
    return toy.make_graphs(checkpoint.model, ["fp32", "int8"])


@pytest.fixture(scope="session")
def graphs_folder(graphs: dict[str, Graphs], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as files, a folder each."""
    folder = tmp_path_factory.mktemp("graphs")
    for precision, each in graphs.items():
        write_graphs(each, folder / precision)
    return folder


@pytest.fixture(scope="session")
def luong_graphs(luong: Checkpoint) -> dict[str, Graphs]:
    """One checkpoint's graphs in every precision."""
    return toy.make_graphs(luong.model, ["fp32", "int8", "fp16"])


@pytest.fixture(scope="session")
def luong_gate(luong: Checkpoint) -> ParityGate:
    return toy.open_gate(TorchReference(luong.model, 2), luong.recipe.decoding)


@pytest.fixture
def check_luong(luong: Checkpoint, luong_gate: ParityGate, tmp_path: Path) -> toy.Check:
    """Writes graphs and holds them against that one, stepped by a stepper of a kind."""

    def check(graphs: Graphs, precision: str, kind: type[OnnxStepper] = OnnxStepper) -> Parity:
        write_graphs(graphs, tmp_path / precision)
        stepper = kind.between(luong.source_tokenizer, luong.target_tokenizer, tmp_path / precision)
        return luong_gate.check(stepper, precision)

    return check

"""Graphs of 4 layers pass the gate in fp32 and int8 if they are the model's, and no others do."""

from pathlib import Path

import pytest
import torch
from tests.export.mutations import BOS, EOS, MUTATIONS, PAD, VOCABULARY, make_deep, mutated
from tests.export.toy_checkpoint import change_weight, make_graphs, open_gate

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Graphs
from dragoman_export.parity.gate import ParityGate
from dragoman_export.parity.loss import ParityError
from dragoman_export.parity.onnx_stepper import OnnxStepper
from dragoman_export.parity.torch_reference import TorchReference
from dragoman_training.models import Transformer
from dragoman_training.recipe.settings import DecodingConfig

# fp16 is written as fp32 is; other tests hold it.
PRECISIONS = ("fp32", "int8")
pytestmark = pytest.mark.long
DECODING = DecodingConfig(max_source_tokens=100, max_output_tokens=24, beam_size=4)


def open_gate_of(model: Transformer) -> ParityGate:
    return open_gate(TorchReference(model, BOS), DECODING, VOCABULARY)


def open_graphs(folder: Path) -> OnnxStepper:
    return OnnxStepper(folder, vocabulary_size=VOCABULARY, source_pad_id=PAD, bos_id=BOS, eos_id=EOS)


@pytest.fixture(scope="module")
def model() -> Transformer:
    return make_deep(4, "post")


@pytest.fixture(scope="module")
def graphs(model: Transformer) -> dict[str, Graphs]:
    return make_graphs(model, PRECISIONS)


@pytest.fixture(scope="module")
def folder(graphs: dict[str, Graphs], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deep")
    for precision, each in graphs.items():
        write_graphs(each, folder / precision)
    return folder


@pytest.fixture(scope="module")
def gate(model: Transformer) -> ParityGate:
    return open_gate_of(model)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_sound_graphs_pass(gate: ParityGate, folder: Path, precision: str) -> None:
    parity = gate.check(open_graphs(folder / precision), precision)
    if precision == "fp32":
        assert parity.num_identical == parity.num_sentences
        assert parity.max_error < 1e-4
    elif precision == "int8":
        # What PyTorch does by itself is what the graphs do, whatever 4 layers make of it.
        assert parity.loss == pytest.approx(parity.rounded_loss, rel=0.5)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_graphs_of_a_model_with_one_thing_otherwise_are_refused(
    model: Transformer, folder: Path, mutation: str
) -> None:
    """It is the model that is mutated here, and not the graphs: they are as far from each other."""
    with torch.inference_mode():
        gate = open_gate_of(mutated(model, mutation))
    for precision in PRECISIONS:
        with pytest.raises(ParityError, match=f"the {precision} graphs"):
            gate.check(open_graphs(folder / precision), precision)


@pytest.mark.parametrize("zero_point", [0, 120])
def test_a_wrong_zero_point_is_refused(
    gate: ParityGate, graphs: dict[str, Graphs], tmp_path: Path, zero_point: int
) -> None:
    wrong = Graphs(graphs["int8"].encoder.clone(), graphs["int8"].decoder_step.clone())
    for each in (wrong.encoder, wrong.decoder_step):
        change_weight(each, "int8.zero_point", lambda array: array.fill(zero_point))
    write_graphs(wrong, tmp_path / "int8")
    with pytest.raises(ParityError, match="the int8 graphs are too far from the reference"):
        gate.check(open_graphs(tmp_path / "int8"), "int8")

"""The gate lets graphs through that decode as their reference does, and no others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle.search import Ids, Scores
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import (
    Check,
    change_weight,
    make_graphs,
    make_members,
    open_gate,
    open_stepper,
)

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Graphs
from dragoman_export.parity.gate import ParityGate
from dragoman_export.parity.loss import ParityError
from dragoman_export.parity.onnx_stepper import Arrays, Context, OnnxStepper
from dragoman_export.parity.torch_reference import TorchReference
from dragoman_training.checkpoint import Checkpoint, as_one


def open_gate_of(checkpoint: Checkpoint) -> ParityGate:
    return open_gate(TorchReference(checkpoint.model, 2), checkpoint.recipe.decoding)


@pytest.fixture(scope="session")
def gate(checkpoint: Checkpoint) -> ParityGate:
    return open_gate_of(checkpoint)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_sound_graphs_pass(
    checkpoint: Checkpoint, gate: ParityGate, graphs_folder: Path, precision: str
) -> None:
    parity = gate.check(open_stepper(graphs_folder / precision, checkpoint), precision)
    assert parity.num_tokens >= parity.num_sentences == 25
    if precision == "fp32":
        assert parity.num_identical == parity.num_sentences
        assert parity.max_error < 1e-4


@pytest.mark.long
@pytest.mark.parametrize("family", ["lm-span", "ensemble"])
def test_sound_fp16_graphs_pass(family: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    members = make_members(family, tokenizer)
    checkpoint = replace(members[0], model=as_one(members))
    gate = open_gate_of(checkpoint)
    write_graphs(make_graphs(checkpoint.model, ["fp16"])["fp16"], tmp_path / "fp16")
    parity = gate.check(open_stepper(tmp_path / "fp16", checkpoint), "fp16")
    assert 0 < parity.loss < 0.25 * parity.rounded_loss + 1e-6


Change = Callable[[np.ndarray], None]


def tampered(graphs: Graphs, name: str, change: Change) -> Graphs:
    """The graphs with a weight of that name changed wherever it occurs."""
    graphs = Graphs(graphs.encoder.clone(), graphs.decoder_step.clone())
    found = [each for each in (graphs.encoder, graphs.decoder_step) if name in each.graph.initializers]
    assert found
    for model in found:
        change_weight(model, name, change)
    return graphs


def add_half_to_one_weight(array: np.ndarray) -> None:
    array.reshape(-1)[0] += 0.5


def make_one_weight_no_number(array: np.ndarray) -> None:
    array.reshape(-1)[0] = np.nan


@pytest.mark.parametrize("change", [add_half_to_one_weight, make_one_weight_no_number])
@pytest.mark.parametrize(
    "name", ["model.encoder.layers.0.recurrent_weight", "model.bridge.bias", "model.combine.weight"]
)
def test_one_wrong_weight_in_fp32_is_refused_saying_where(
    check_luong: Check, luong_graphs: dict[str, Graphs], name: str, change: Change
) -> None:
    where = r"the fp32 graphs do not .* as the reference does: .*batch of \d+, source of \d+ tokens"
    with pytest.raises(ParityError, match=where):
        check_luong(tampered(luong_graphs["fp32"], name, change), "fp32")


class FirstParents(OnnxStepper):
    """Takes all rows of a sentence on from the first one's parent."""

    def run_step(
        self, context: Context, token_SK: Ids, parent_SK: Ids, score_SK: Scores, *, forced_SK: Ids
    ) -> tuple[Arrays, Context]:
        first_SK = np.repeat(parent_SK[:, :1], parent_SK.shape[1], axis=1)
        return super().run_step(context, token_SK, first_SK, score_SK, forced_SK=forced_SK)


class EvenAttention(OnnxStepper):
    """Says that every step looked at all positions alike."""

    def run_step(
        self, context: Context, token_SK: Ids, parent_SK: Ids, score_SK: Scores, *, forced_SK: Ids
    ) -> tuple[Arrays, Context]:
        outputs, context = super().run_step(context, token_SK, parent_SK, score_SK, forced_SK=forced_SK)
        outputs["attention"] = np.full_like(outputs["attention"], 1 / outputs["attention"].shape[-1])
        return outputs, context


@pytest.mark.parametrize(
    ("precision", "wrong", "told"),
    [
        ("fp32", EvenAttention, "do not step as the reference does: attention differs"),
        ("fp32", FirstParents, "do not decode as the reference does"),
        ("int8", EvenAttention, "are too far .*: a token's attention"),
        ("int8", FirstParents, "do not decode a beam as its rows alone"),
        ("fp16", EvenAttention, "are too far .*: a token's attention"),
        ("fp16", FirstParents, "do not decode a beam as its rows alone"),
    ],
)
def test_wrong_attention_and_wrong_parents_are_refused(
    check_luong: Check, luong_graphs: dict[str, Graphs], precision: str, wrong: type[OnnxStepper], told: str
) -> None:
    with pytest.raises(ParityError, match=f"the {precision} graphs {told}"):
        check_luong(luong_graphs[precision], precision, wrong)


def negate(array: np.ndarray) -> None:
    np.negative(array, out=array)


def enlarge_by_a_third(array: np.ndarray) -> None:
    array *= array.dtype.type(4 / 3)


@pytest.mark.parametrize(
    ("precision", "name", "change"),
    [
        ("int8", "model.combine.weight.part_0_of_20_14.rows.codes", negate),
        ("int8", "model.combine.weight.part_1_of_20_14.rows.scale", enlarge_by_a_third),
        ("fp16", "model.combine.weight", negate),
        ("fp16", "model.combine.weight", enlarge_by_a_third),
    ],
)
def test_one_wrong_matrix_in_a_lower_precision_is_refused_saying_how_far_it_is(
    check_luong: Check, luong_graphs: dict[str, Graphs], precision: str, name: str, change: Change
) -> None:
    with pytest.raises(ParityError, match=f"the {precision} graphs are too far from the reference: .* nats"):
        check_luong(tampered(luong_graphs[precision], name, change), precision)

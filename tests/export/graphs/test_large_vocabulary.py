"""Every family is exported at the size of vocabulary that users bring, of which small models show nothing.

Exporters treat constants of many elements otherwise than those of few. So the vocabularies are real, and all
else is as small as can be.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from tests.export.toy_checkpoint import CONFIGS, make_graphs, random_sources

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Nodes, constant_array
from dragoman_export.graphs.trace import fold_all_constants
from dragoman_export.model import KeptTo
from dragoman_export.parity.loss import Words
from dragoman_export.parity.onnx_stepper import OnnxStepper, ShortlistStepper
from dragoman_export.parity.torch_reference import TorchReference
from dragoman_export.shortlist.graphs import make_shortlist_graphs
from dragoman_training.models import Seq2Seq, TransformerConfig, VocabularyShape, build_model
from dragoman_training.models.ensemble import Ensemble

SMALLER, LARGER = 32_001, 65_001
MODELS = [
    ("luong-local-p", ["fp32", "int8"], LARGER, SMALLER),
    ("transformer", ["int8"], LARGER, LARGER),
]
"""Name, precisions, source and target pieces; one vocabulary where these are equal. Each takes a trace, which
takes seconds."""
ALIKE = [
    ("transformer", ["fp32"], SMALLER, SMALLER),
    ("plain", ["fp32", "int8"], SMALLER, LARGER),
    ("luong", ["fp16"], LARGER, SMALLER),
    ("luong", ["fp32", "int8"], LARGER, LARGER),
    ("bahdanau-gru", ["fp32", "int8"], LARGER, LARGER),
    ("multi-head", ["fp32", "int8"], SMALLER, SMALLER),
    ("structured", ["fp32", "int8"], SMALLER, LARGER),
    ("plain", ["fp16"], LARGER, LARGER),
    ("lm", ["fp32", "int8"], LARGER, LARGER),
    ("ensemble", ["fp32", "int8"], LARGER, SMALLER),
]
"""The others, whose embeddings and output layer are the modules of those above."""
MEMBERS = ("luong-scaled", "plain")
SPECIAL = (0, 1, 2)
LARGEST_ERROR = {"fp32": 1e-4, "int8": 0.05, "fp16": 0.05}
"""In the mean, in nats; of an output layer that is wrong it is more than 1."""


def make_model(name: str, source: int, target: int) -> Seq2Seq:
    """A family's toy, or an ensemble, of so many pieces."""
    shape = VocabularyShape(
        source_size=source, target_size=target, shared=source == target, bos=2, never_produced=SPECIAL
    )
    if name == "ensemble":
        return Ensemble([make_model(each, source, target) for each in MEMBERS], shape).eval()
    config = CONFIGS[name]
    if isinstance(config, TransformerConfig):
        config = replace(config, encoder_layers=1, decoder_layers=1)
    torch.manual_seed(7)
    model = build_model(config, shape).eval()
    with torch.no_grad():
        # So that a bias which is lost, or is another piece's, shows.
        model.output.bias.normal_()
    return model


def check_graphs(model: Seq2Seq, folder: Path, source: int, target: int) -> None:
    """Steps the graphs in the folder beside PyTorch, with a shortlist and without."""
    steppers = [
        stepper(folder, vocabulary_size=target, source_pad_id=0, bos_id=2, eos_id=3)
        for stepper in (OnnxStepper, ShortlistStepper)
    ]
    sources = random_sources([2, 7, 3], source, eos_id=3)
    targets = random_sources([3, 2, 4], target, eos_id=3)
    generator = np.random.default_rng(3)
    candidates = [np.union1d(generator.integers(3, target, 40), tokens) for tokens in targets]
    reference = TorchReference(model, 2)
    for stepper, kept in zip(steppers, (None, candidates), strict=True):
        asked = reference if kept is None else KeptTo(reference, kept)
        found = Words(asked, sources, targets, pad_id=0, eos_id=3).loss_of_graphs(stepper, kept)
        for differences in (found.drawn_N, found.candidates_N):
            assert differences.mean() < LARGEST_ERROR[folder.name]


@pytest.mark.parametrize(
    ("name", "precisions", "source", "target"),
    [
        pytest.param(*each, id=f"{each[0]}-{each[1][-1]}-{each[2]}-{each[3]}", marks=marks)
        for models, marks in ((MODELS, ()), (ALIKE, pytest.mark.long))
        for each in models
    ],
)
def test_a_model_of_many_pieces_decodes_as_pytorch_does(
    name: str, precisions: list[str], source: int, target: int, tmp_path: Path
) -> None:
    model = make_model(name, source, target)
    for precision, graphs in make_graphs(model, precisions).items():
        write_graphs(graphs, tmp_path / precision, make_shortlist_graphs(graphs))
        check_graphs(model, tmp_path / precision, source, target)


def test_what_follows_from_constants_is_constant_whatever_its_size() -> None:
    """But for a transpose, whose matrix may be tied to another use."""
    model = ir.from_onnx_text(
        f"""<ir_version: 10, opset_import: ["" : 20]> graph (float[R,2] rows) => (float[R,{LARGER}] logits) {{
            transposed = Transpose <perm = [1, 0]> (matrix)
            product = MatMul (rows, transposed)
            total = Add (bias, never)
            logits = Add (product, total)
        }}"""
    )
    for name, shape in (("matrix", (LARGER, 2)), ("bias", (LARGER,)), ("never", (LARGER,))):
        given = filter(None, (each for node in model.graph for each in node.inputs))
        value = next(each for each in given if each.name == name)
        value.replace_all_uses_with(Nodes(model.graph).named(name, np.ones(shape, np.float32)))
    fold_all_constants(model)
    assert [node.op_type for node in model.graph] == ["Transpose", "MatMul", "Add"]
    folded = constant_array(model.graph[2].inputs[1])
    assert folded is not None
    assert folded.tolist() == [2] * LARGER

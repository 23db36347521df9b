"""Written graphs decode as the equations in NumPy do, in every variant, and others are refused."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dragoman_bundle.decoding import DecodingDefaults
from tests.export.foreign.imported import VOCABULARY, make_arrays
from tests.export.toy_checkpoint import open_gate

from dragoman_export.assembly import make_graphs
from dragoman_export.bundle_files import write_graphs
from dragoman_export.model import ImportedModel
from dragoman_export.parity.gate import ParityGate
from dragoman_export.parity.loss import ParityError
from dragoman_export.parity.onnx_stepper import OnnxStepper, ShortlistStepper, open_session, run_session
from dragoman_export.reference.imported import AlignmentHead, Name
from dragoman_export.shortlist.graphs import make_shortlist_graphs

DECODING = DecodingDefaults(
    beam_size=4,
    length_penalty=1.0,
    max_source_tokens=100,
    max_output_tokens=24,
    max_output_ratio=2.0,
    max_output_margin=10,
)
OPTIONS: dict[str, Any] = {"vocabulary_size": VOCABULARY, "source_pad_id": 0, "bos_id": 2, "eos_id": 3}


def open_gate_of(model: ImportedModel) -> ParityGate:
    return open_gate(model.reference(), DECODING, VOCABULARY)


@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "pre", "activation": "gelu-tanh", "embedding_scale": 4.0},
        {"activation": "swish", "alignment_head": AlignmentHead(layer=0, head=2)},
        {"past": "ssru", "activation": "gelu-sigmoid", "norm_epsilon": 1e-9},
        {"activation": "gelu", "past": "ssru", "norm": "pre"},
    ],
    ids=["before", "behind", "ssru", "ssru-before"],
)
def test_every_precision_passes_and_with_a_shortlist(settings: dict[str, Any], tmp_path: Path) -> None:
    model = ImportedModel(make_arrays(**settings))
    gate = open_gate_of(model)
    for precision, graphs in make_graphs(model, ["fp32", "int8", "fp16"]).items():
        write_graphs(graphs, tmp_path / precision, make_shortlist_graphs(graphs))
        parity = gate.check(OnnxStepper(tmp_path / precision, **OPTIONS), precision)
        assert precision != "fp32" or parity.num_identical == parity.num_sentences == 25
        gate.check_shortlist(ShortlistStepper(tmp_path / precision, **OPTIONS), precision)


def test_a_barred_token_is_left_out_after_probabilities_are_taken(tmp_path: Path) -> None:
    model = ImportedModel(make_arrays(barred=(1,)))
    write_graphs(model.graphs(), tmp_path / "fp32")
    assert open_gate_of(model).check(OnnxStepper(tmp_path / "fp32", **OPTIONS), "fp32").max_error < 1e-4


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_graphs_of_other_weights_are_refused(precision: str, tmp_path: Path) -> None:
    imported = make_arrays()
    other = {**imported.weights, Name.BIAS: np.roll(imported.weights[Name.BIAS], 1)}
    wrong = ImportedModel(replace(imported, weights=other))
    write_graphs(make_graphs(wrong, [precision])[precision], tmp_path / precision)
    with pytest.raises(ParityError, match=r"the reference"):
        open_gate_of(ImportedModel(imported)).check(OnnxStepper(tmp_path / precision, **OPTIONS), precision)


@pytest.mark.parametrize("past", ["self-attention", "ssru"])
def test_attention_that_nobody_wants_is_not_computed_and_all_else_is(past: str, tmp_path: Path) -> None:
    write_graphs(make_graphs(ImportedModel(make_arrays(past=past)), ["int8"])["int8"], tmp_path / "int8")
    context = OnnxStepper(tmp_path / "int8", **OPTIONS).encode([[4, 5, 3], [6, 3]])
    ids = np.array([[2, 4], [2, 5]])
    given = {"token": ids, "parent": np.array([[0, 0], [1, 1]]), "forced": ids}
    given |= {**context.memory, **context.state, "score": np.zeros(ids.shape, np.float32)}
    step = open_session(tmp_path / "int8" / "decoder_step.onnx")
    left_out = run_session(step, given)
    answers = ({"wants_attention": np.array(each)} for each in (True, False))
    wanted, unwanted = (run_session(step, given | answer) for answer in answers)
    np.testing.assert_allclose(left_out["attention"].sum(axis=2), 1, atol=1e-6)
    assert unwanted.pop("attention").size == 0
    for name, value in left_out.items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=name)
        np.testing.assert_array_equal(value, unwanted.get(name, value), err_msg=name)


def test_what_exports_models_from_elsewhere_loads_no_library_of_training() -> None:
    program = (
        "import sys, dragoman_export.assembly\n"
        "import dragoman_export.importers.hf, dragoman_export.importers.ctranslate2\n"
        "print(*{'torch', 'numba', 'llvmlite', 'transformers', 'onnxscript'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

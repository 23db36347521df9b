"""A checkpoint becomes a bundle that says what it is, or nothing at all."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from dragoman_bundle import Tokenizer
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint

from dragoman_export import assembly
from dragoman_export.exporter import export_bundle
from dragoman_export.graphs.builder import Graphs
from dragoman_export.parity.bounds import ParityError
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.recipe.reader import load_recipe


def export(
    checkpoint: Checkpoint, destination: Path, precisions: Sequence[str] = ("fp32", "int8")
) -> list[str]:
    """Exports and returns what was reported."""
    lines: list[str] = []
    export_bundle([checkpoint], destination, precisions=precisions, report=lines.append)
    return lines


@pytest.fixture(scope="module")
def exported(luong: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    destination = tmp_path_factory.mktemp("models") / "de-en" / "1"
    lines = export(luong, destination)
    assert any(line.startswith("fp32: same translation of 25 of 25 sentences") for line in lines)
    assert any(line.startswith("int8: same translation of ") for line in lines)
    return destination


def test_bundle_says_what_the_checkpoint_is(luong: Checkpoint, exported: Path) -> None:
    manifest = assembly.open_bundle(exported).manifest
    assert (manifest.name, manifest.version) == ("de-en", "1")
    assert (manifest.source_language, manifest.target_language) == ("de", "en")
    assert manifest.architecture.family == "luong"
    assert manifest.architecture.parameters == sum(p.numel() for p in luong.model.parameters())
    assert "encoder units 10" in manifest.architecture.description
    assert manifest.source_vocabulary == manifest.target_vocabulary == 40
    assert manifest.source_tokenizer == manifest.target_tokenizer == "shared.spm"
    assert manifest.decoding.beam_size == 4
    assert manifest.decoding.max_source_tokens == 60
    assert manifest.precisions == ("fp32", "int8")
    assert manifest.contract.memory[0].dtype == {"fp32": "float32", "int8": "float32"}
    assert (manifest.licence, manifest.credit) == ("CC0-1.0", 'Nobody, "really"')
    assert set(manifest.files) == {
        "README.md",
        "recipe.toml",
        "shared.spm",
        *(
            f"{precision}/{file}"
            for precision in ("fp32", "int8")
            for file in ("encoder.onnx", "decoder_step.onnx", "regroup.onnx", "weights.bin")
        ),
    }


def test_card_tells_data_licence_credit_and_parity(exported: Path) -> None:
    card = (exported / "README.md").read_text()
    for text in (
        "# de-en, version 1",
        "For tests | nothing else.",
        "| Training data | Nothing at all |",
        "| Licence | CC0-1.0 |",
        '| Credit | Nobody, "really" |',
        "Not measured yet.",
        "1,200 steps in 10 minutes",
        "| fp32 | ",
    ):
        assert text in card


def test_recipe_in_the_bundle_is_the_one_it_was_trained_with(luong: Checkpoint, exported: Path) -> None:
    assert load_recipe(exported / "recipe.toml") == luong.recipe


def test_a_language_model_continues_texts_in_its_own_language(tokenizer: Tokenizer, tmp_path: Path) -> None:
    checkpoint = make_checkpoint(CONFIGS["lm"], tokenizer, tokenizer)
    export(checkpoint, tmp_path / "1")
    manifest = assembly.open_bundle(tmp_path / "1").manifest
    assert (manifest.source_language, manifest.target_language) == ("en", "en")
    card = (tmp_path / "1" / "README.md").read_text()
    assert "Continues text in en: " in card
    assert "| Vocabulary | 40 pieces |" in card
    assert "ranslat" not in card
    assert load_recipe(tmp_path / "1" / "recipe.toml") == checkpoint.recipe


def test_two_vocabularies_make_two_tokenizers(
    tokenizer: Tokenizer, other_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(CONFIGS["bahdanau-gru"], tokenizer, other_tokenizer)
    export(checkpoint, tmp_path / "1")
    bundle = assembly.open_bundle(tmp_path / "1")
    assert bundle.source_tokenizer.vocabulary_size == 40
    assert bundle.target_tokenizer.vocabulary_size == 36
    assert (bundle.manifest.source_tokenizer, bundle.manifest.target_tokenizer) == (
        "source.spm",
        "target.spm",
    )


def test_graphs_that_differ_from_pytorch_leave_nothing_behind(
    tokenizer: Tokenizer, luong_graphs: dict[str, Graphs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_checkpoint(CONFIGS["luong"], tokenizer, tokenizer)
    other.model.get_parameter("bridge.bias").data.add_(1)
    monkeypatch.setattr(assembly, "make_graphs", lambda model, precisions, *rest: luong_graphs)
    with pytest.raises(ParityError) as raised:
        export(other, tmp_path / "de-en" / "1")
    # There is nothing else to export where fp32 is wrong.
    assert "--precisions" not in str(raised.value)
    assert list((tmp_path / "de-en").iterdir()) == []


@pytest.mark.parametrize(
    ("precisions", "told"),
    [
        (["fp32", "int8"], "fp32 passed: export with --precisions fp32"),
        (["fp32", "int8", "fp16"], "fp32 passed: export with --precisions fp32,fp16"),
        (["int8"], "fp32 rounds nothing: export with --precisions fp32"),
    ],
)
def test_where_a_precision_is_refused_the_error_says_what_to_export_instead(
    luong: Checkpoint,
    luong_graphs: dict[str, Graphs],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    precisions: list[str],
    told: str,
) -> None:
    int8 = Graphs(luong_graphs["int8"].encoder, luong_graphs["int8"].decoder_step.clone())
    for name, value in int8.decoder_step.graph.initializers.items():
        if value.dtype == ir.DataType.INT8:
            assert value.const_value is not None
            value.const_value = ir.tensor(np.zeros_like(value.const_value.numpy()), name=name)
    made = {**luong_graphs, "int8": int8}
    monkeypatch.setattr(
        assembly, "make_graphs", lambda model, precisions, *rest: {each: made[each] for each in precisions}
    )
    with pytest.raises(ParityError, match=rf"is allowed\. {told}$"):
        export(luong, tmp_path / "1", precisions)
    assert list(tmp_path.iterdir()) == []

"""A checkpoint becomes a bundle that says what it is, or nothing at all: memory or the disk may be small."""

from collections.abc import Sequence
from pathlib import Path

import onnx_ir as ir
import pytest
from dragoman_bundle import Tokenizer
from dragoman_bundle.machine import available_memory
from tests.export.commands import call
from tests.export.toy_checkpoint import CONFIGS, change_weight, make_checkpoint, train_tokenizer
from tests.full_disk import disk_with

from dragoman_export import assembly
from dragoman_export.cli import export as export_command
from dragoman_export.exporter import export_bundle
from dragoman_export.graphs.builder import Graphs
from dragoman_export.parity.loss import ParityError
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.recipe.reader import load_recipe

BOTH = ("fp32", "int8")


def export(checkpoint: Checkpoint, destination: Path, precisions: Sequence[str] = BOTH) -> list[str]:
    """Exports and returns what was reported."""
    lines: list[str] = []
    export_bundle([checkpoint], destination, precisions=precisions, report=lines.append)
    return lines


@pytest.fixture(scope="module")
def exported(luong: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    destination = tmp_path_factory.mktemp("models") / "de-en" / "1"
    said = "\n".join(export(luong, destination))
    assert "\nfp32: same translation of 25 of 25 sentences" in said
    assert "\nint8: same translation of " in said
    return destination


def test_bundle_says_what_the_checkpoint_is(luong: Checkpoint, exported: Path) -> None:
    manifest = assembly.open_bundle(exported).manifest
    assert (manifest.key, manifest.source_language, manifest.target_language) == ("de-en/1", "de", "en")
    assert manifest.architecture.family == "luong"
    assert manifest.architecture.parameters == sum(p.numel() for p in luong.model.parameters())
    assert "encoder units 10" in manifest.architecture.description
    assert manifest.source_vocabulary == manifest.target_vocabulary == 40
    assert manifest.source_tokenizer == manifest.target_tokenizer == "shared.spm"
    assert (manifest.decoding.beam_size, manifest.decoding.max_source_tokens) == (4, 60)
    assert manifest.precisions == ("fp32", "int8")
    assert manifest.contract.memory[0].dtype == {"fp32": "float32", "int8": "float32"}
    assert (manifest.licence, manifest.credit) == ("CC0-1.0", 'Nobody, "really"')
    assert set(manifest.files) == {
        "README.md",
        "recipe.toml",
        "shared.spm",
        *(
            f"{precision}/{file}"
            for precision in BOTH
            for file in ("encoder.onnx", "decoder_step.onnx", "regroup.onnx", "weights.bin")
        ),
    }
    assert load_recipe(exported / "recipe.toml") == luong.recipe


def test_card_tells_data_licence_credit_and_parity(exported: Path) -> None:
    card = (exported / "README.md").read_text()
    told = ("# de-en, version 1", "For tests | nothing else.", "Not measured yet.", "| fp32 | ")
    told += ("| Training data | Nothing at all |", "| Licence | CC0-1.0 |", '| Credit | Nobody, "really" |')
    assert [each for each in (*told, "1,200 steps in 10 minutes") if each not in card] == []


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


def test_two_vocabularies_make_two_tokenizers(tokenizer: Tokenizer, tmp_path: Path) -> None:
    export(make_checkpoint(CONFIGS["bahdanau-gru"], tokenizer, train_tokenizer(36)), tmp_path / "1")
    bundle = assembly.open_bundle(tmp_path / "1")
    assert (bundle.source_tokenizer.vocabulary_size, bundle.target_tokenizer.vocabulary_size) == (40, 36)
    tokenizers = (bundle.manifest.source_tokenizer, bundle.manifest.target_tokenizer)
    assert tokenizers == ("source.spm", "target.spm")


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
            change_weight(int8.decoder_step, name, lambda array: array.fill(0))
    made = {**luong_graphs, "int8": int8}
    monkeypatch.setattr(
        assembly, "make_graphs", lambda model, precisions, *rest: {each: made[each] for each in precisions}
    )
    with pytest.raises(ParityError, match=rf"is allowed\. {told}$"):
        export(luong, tmp_path / "1", precisions)
    assert list(tmp_path.iterdir()) == []


FIRST = {"memory/memory.limit_in_bytes": 900, "memory/memory.usage_in_bytes": 700}
"""Of a control group of version 1."""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 4000 * 1024),
        ({"memory.max": "max", "memory.current": 1, "memory.stat": "file 7"}, 4000 * 1024),
        ({"memory.max": 900, "memory.current": 700, "memory.stat": "inactive_file 50"}, 250),
        ({"memory.max": 900, "memory.current": 950, "memory.stat": "anon 50"}, 0),
        (FIRST | {"memory/memory.stat": "inactive_file 9\ntotal_inactive_file 50"}, 250),
        ({"memory/memory.limit_in_bytes": 2**63 - 4096}, 4000 * 1024),
    ],
    ids=["no group", "no limit", "limit", "full", "version 1", "not whole"],
)
def test_available_memory_is_the_machine_s_or_the_control_group_s(
    tmp_path: Path, files: dict[str, object], expected: int
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  8000 kB\nMemAvailable:  4000 kB\n")
    for name, value in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    assert available_memory(tmp_path / "cgroup", tmp_path / "meminfo") == expected


def test_a_checkpoint_that_memory_is_too_small_for_is_not_tried(luong_file: Path, tmp_path: Path) -> None:
    arguments = [luong_file, "--out", tmp_path / "de-en" / "1", "--precisions", "fp32"]
    code, output = call(export_command, *arguments, "--max-memory", 0.5)
    assert code == 1
    assert "0.5 GB are available" in output
    assert "reading the checkpoint" not in output
    assert not (tmp_path / "de-en").exists()


def test_a_disk_that_is_full_half_way_leaves_nothing_half_written(luong_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "de-en" / "1"
    arguments = [luong_file, "--out", out, "--precisions", "fp32,int8", "--no-shortlist"]
    with disk_with(6000):
        code, output = call(export_command, *arguments)
    assert code == 1
    assert "[4/7] fp32: decoding" not in output
    assert "File too large" in output
    assert "nothing was written" in output
    assert list(out.parent.iterdir()) == []
    assert call(export_command, *arguments)[0] == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with disk_with(6000):
        assert call(export_command, *arguments, "--force")[0] == 1
    assert [path.name for path in out.parent.iterdir()] == ["1"]
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before

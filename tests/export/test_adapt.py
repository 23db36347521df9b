"""A bundle's model goes on learning: its weights come back from its graphs, and a command trains them."""

import random
import string
from pathlib import Path

import pytest
from click.testing import CliRunner
from dragoman_bundle import Tokenizer, open_bundle
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint

from dragoman_export.adapt import adapt, start_checkpoint
from dragoman_export.exporter import export_bundle
from dragoman_training.checkpoint import Checkpoint, load_checkpoint

FAMILIES = ["transformer", "ssru", "transformer-post", "transformer-untied"]


def export(checkpoint: Checkpoint, folder: Path, precision: str) -> Path:
    export_bundle([checkpoint], folder, precisions=[precision], report=lambda line: None)
    return folder


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_bundles_weights_are_those_of_its_checkpoint(
    family: str, precision: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(CONFIGS[family], tokenizer, tokenizer)
    folder = export(checkpoint, tmp_path / "de-en" / "1", precision)
    assert start_checkpoint(open_bundle(folder), tmp_path / "start.safetensors") == checkpoint.recipe
    start = load_checkpoint(tmp_path / "start.safetensors")
    parameters = zip(checkpoint.model.named_parameters(), start.model.parameters(), strict=True)
    for (name, ours), theirs in parameters:
        # Half a step, where the largest code is 63 at least.
        bound = float(ours.detach().abs().max()) / 63 * 0.51 if precision == "int8" else 0.0
        assert float((ours - theirs).detach().abs().max()) <= bound, name
    with pytest.raises(ValueError, match=r"export best\.safetensors"):
        export(start, tmp_path / "de-en" / "2", precision)


def test_a_family_whose_graphs_are_traced_is_refused(luong: Checkpoint, tmp_path: Path) -> None:
    folder = export(luong, tmp_path / "de-en" / "1", "fp32")
    with pytest.raises(ValueError, match="train further from the checkpoint"):
        start_checkpoint(open_bundle(folder), tmp_path / "start.safetensors")
    assert not (tmp_path / "start.safetensors").exists()


@pytest.fixture
def pairs(tmp_path: Path) -> tuple[Path, Path]:
    """Words, and the same in capitals."""
    rng = random.Random(7)
    words = ["".join(rng.choices(string.ascii_lowercase[:10], k=rng.randint(2, 4))) for _ in range(400)]
    files = tmp_path / "our.de", tmp_path / "our.en"
    files[0].write_text("\n".join(words))
    files[1].write_text("\n".join(word.upper() for word in words))
    return files


def test_it_learns_ones_own_text_and_says_what_it_gained(
    tokenizer: Tokenizer, tmp_path: Path, pairs: tuple[Path, Path]
) -> None:
    folder = export(make_checkpoint(CONFIGS["ssru"], tokenizer, tokenizer), tmp_path / "de-en" / "1", "int8")
    out = tmp_path / "runs"
    arguments = (folder, *pairs, "--out", out, "--epochs", 12, "--learning-rate", 0.02, "--old", *pairs)
    result = CliRunner().invoke(adapt, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    held_out, old = result.output.splitlines()[-2:]
    assert held_out.startswith("held out: BLEU ")
    assert old.startswith("old: BLEU ")
    progress = load_checkpoint(out / "last.safetensors").progress
    perplexities = [each["perplexity"] for each in progress["validations"]]
    assert min(perplexities) < perplexities[0] / 2
    # What is held out is not trained on, however often it stands in the text.
    valid, train = ((out / f"{split}.source").read_text().split() for split in ("valid", "train"))
    assert len(valid) == 40
    assert train == [word for word in pairs[0].read_text().split() if word not in valid]


def test_too_few_pairs_are_refused(tokenizer: Tokenizer, tmp_path: Path, pairs: tuple[Path, Path]) -> None:
    folder = export(make_checkpoint(CONFIGS["ssru"], tokenizer, tokenizer), tmp_path / "de-en" / "1", "int8")
    for file in pairs:
        file.write_text("\n".join(file.read_text().split()[:60]))
    result = CliRunner().invoke(adapt, [str(folder), *map(str, pairs), "--out", str(tmp_path / "runs")])
    assert "there are 60 pairs; training takes 100 at the least" in str(result.exception)

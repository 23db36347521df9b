"""Several checkpoints become one bundle, which says what it is made of."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from dragoman_bundle import Bundle, Tokenizer, open_bundle
from tests.export.toy_checkpoint import make_members

from dragoman_export.cli import export
from dragoman_export.trained import subject_of
from dragoman_training.checkpoint import Checkpoint, write_checkpoint
from dragoman_training.recipe.reader import load_recipe
from dragoman_training.recipe.settings import CardConfig


@pytest.fixture(scope="module")
def members(tokenizer: Tokenizer) -> list[Checkpoint]:
    return make_members("ensemble", tokenizer)


@pytest.fixture(scope="module")
def files(members: list[Checkpoint], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for number, member in enumerate(members):
        paths.append(folder / f"{number}.safetensors")
        tensors = {f"model.{name}": value for name, value in member.model.named_parameters()}
        tokenizers = (member.source_tokenizer, member.target_tokenizer)
        write_checkpoint(paths[-1], member.recipe, tokenizers, tensors, member.progress)
    return paths


@pytest.fixture(scope="module")
def bundle(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """In fp32, with a shortlist: its trace is one that other tests have, too."""
    corpus = tmp_path_factory.mktemp("corpus")
    for name in ("train.de", "train.en"):
        (corpus / name).write_text("abc def\nghi abc\n" * 20)
    out = tmp_path_factory.mktemp("models") / "all" / "1"
    arguments = [*files, "--out", out, "--precisions", "fp32", "--recipe-folder", corpus]
    result = CliRunner().invoke(export, [str(each) for each in (*arguments, "--shortlist")])
    assert result.exit_code == 0, result.output
    return open_bundle(out)


def test_the_manifest_says_what_the_members_are(bundle: Bundle, members: list[Checkpoint]) -> None:
    architecture = bundle.manifest.architecture
    assert architecture.family == "ensemble"
    assert architecture.parameters == sum(
        parameter.numel() for member in members for parameter in member.model.parameters()
    )
    told = architecture.description.split("; ")
    assert [each.split(":")[0] for each in told] == ["luong", "transformer", "plain"]
    assert "feed forward 20" in told[1]


def test_each_member_has_its_recipe(bundle: Bundle, members: list[Checkpoint]) -> None:
    for number, member in enumerate(members, start=1):
        assert load_recipe(bundle.path / f"recipe-{number}.toml") == member.recipe
    card = (bundle.path / "README.md").read_text()
    assert "An ensemble" in card
    assert "dragoman train recipe-3.toml --out runs/toy-3" in card
    assert " ".join(f"runs/toy-{number}/best.safetensors" for number in (1, 2, 3)) in card


def test_no_length_is_beyond_what_a_member_is_trusted_with(members: list[Checkpoint]) -> None:
    first, *others = members
    recipe = others[0].recipe
    lengths = {"max_source_tokens": 60, "max_output_tokens": 9, "length_penalty": 3.0}
    short = replace(others[0], recipe=replace(recipe, decoding=replace(recipe.decoding, **lengths)))
    expected = replace(first.recipe.decoding, max_source_tokens=60, max_output_tokens=9)
    assert subject_of([first, short]).decoding == expected


def test_what_every_member_owes_is_on_the_card(members: list[Checkpoint]) -> None:
    licences = ["CC0", "CC BY 2.0", "CC0"]
    owing = [
        replace(member, recipe=replace(member.recipe, card=replace(member.recipe.card, licence=licence)))
        for member, licence in zip(members, licences, strict=True)
    ]
    card = subject_of(owing).card
    assert card.licence == "CC0; CC BY 2.0"
    assert card.data == members[0].recipe.card.data
    owing[1] = replace(members[1], recipe=replace(members[1].recipe, card=CardConfig()))
    card = subject_of(owing).card
    assert card.licence == "CC0; not stated"
    assert card.data == f"{members[0].recipe.card.data}; `train.de`, `train.en`"

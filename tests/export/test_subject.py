"""What a bundle says of its members, data and training: what is owed, and what makes the model again."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from dragoman_bundle import Bundle, Tokenizer, open_bundle
from tests.export.commands import call
from tests.export.toy_checkpoint import PROGRESS, make_members, save

from dragoman_export.cli import export
from dragoman_export.trained import AGAIN, AGAIN_IF_ENDED, ALIKE, subject_of, training_text
from dragoman_training.checkpoint import Checkpoint, provenances
from dragoman_training.recipe.reader import load_recipe
from dragoman_training.recipe.settings import CardConfig

OURS = CardConfig(data="Our letters", licence="Ours alone", credit="Nobody")


def changed(checkpoint: Checkpoint, card: CardConfig, start_from: str = "", **progress: Any) -> Checkpoint:
    training = replace(checkpoint.recipe.training, start_from=start_from)
    recipe = replace(checkpoint.recipe, card=card, training=training)
    return replace(checkpoint, recipe=recipe, progress={**PROGRESS, **progress})


def test_pairs_are_counted_by_the_run_and_what_is_not_stated_is_named_by_its_files(luong: Checkpoint) -> None:
    counted = subject_of([changed(luong, luong.recipe.card, num_pairs=29_000)]).card
    assert counted.data == "Nothing at all: 29,000 sentence pairs"
    assert subject_of([luong]).card.data == "Nothing at all"
    card = subject_of([changed(luong, CardConfig(), num_pairs=300)]).card
    assert card.data == "`train.de`, `train.en`: 300 sentence pairs"
    assert card.licence == card.credit == ""


def test_what_the_checkpoint_owes_that_it_was_begun_with_is_owed_still(luong: Checkpoint) -> None:
    first = changed(luong, replace(luong.recipe.card, licence="CC BY 2.0"), num_pairs=29_000)
    owed = [asdict(each) for each in provenances(first.recipe, first.progress)]
    second = changed(luong, OURS, "general/best.safetensors", num_pairs=300, begun_with=owed)
    card = subject_of([second]).card
    assert card.data == "Nothing at all: 29,000 sentence pairs; Our letters: 300 sentence pairs"
    assert card.licence == "CC BY 2.0; Ours alone"
    assert card.credit == 'Nobody, "really"; Nobody'
    owed = [asdict(each) for each in provenances(second.recipe, second.progress)]
    third = changed(luong, CardConfig(data="More"), "ours/best.safetensors", begun_with=owed)
    assert subject_of([third]).card.licence == "CC BY 2.0; Ours alone; not stated"


def test_what_a_checkpoint_does_not_say_of_its_beginning_is_not_stated(luong: Checkpoint) -> None:
    card = subject_of([changed(luong, OURS, "../runs/general/best.safetensors")]).card
    assert card.data == "that of the checkpoint general/best.safetensors; Our letters"
    assert card.licence == "not stated; Ours alone"


ENDED = {"stale": 0, "epoch": 20, "best_step": 900}


def text_of(checkpoint: Checkpoint, progress: dict[str, Any], **training: Any) -> str:
    recipe = replace(checkpoint.recipe, training=replace(checkpoint.recipe.training, **training))
    return training_text([replace(checkpoint, progress={**PROGRESS, **progress}, recipe=recipe)])


@pytest.mark.parametrize(
    ("progress", "training", "file", "promise"),
    [
        ({"best_step": 1200}, {}, "best", AGAIN_IF_ENDED),
        (ENDED, {}, "last", AGAIN),
        ({"best_step": 900, "stale": 5}, {"patience": 5}, "last", AGAIN),
    ],
)
def test_what_comes_to_the_same_model_is_said_to(
    luong: Checkpoint, progress: dict[str, Any], training: dict[str, Any], file: str, promise: str
) -> None:
    text = text_of(luong, progress, **training)
    assert f"{promise}:" in text
    assert f"dragoman export runs/toy/{file}.safetensors" in text


@pytest.mark.parametrize(
    ("progress", "training"),
    [
        ({"best_step": 900, "stale": 1}, {}),
        ({"best_step": 900, "stale": 5}, {"patience": 0}),
        ({"best_step": 1200}, {"max_minutes": 10.0}),
        ({"averaged": [800, 1200]}, {"keep_validated": 1}),
        ({"best_step": 1200, "changed": True}, {}),
        ({"best_step": 1200, "device": "cuda"}, {}),
        ({"best_step": 1200, "precision": None}, {}),
    ],
)
def test_what_may_not_come_to_the_same_model_is_not_said_to(
    luong: Checkpoint, progress: dict[str, Any], training: dict[str, Any]
) -> None:
    text = text_of(luong, progress, **training)
    assert AGAIN not in text
    assert ALIKE in text
    assert "dragoman export runs/toy/best.safetensors" in text


def test_a_mean_is_made_by_the_command_that_makes_it(luong: Checkpoint) -> None:
    text = text_of(luong, {"averaged": [800, 1000, 1200]}, keep_validated=3)
    assert "1,200 steps in 10 minutes, the mean of the models after 800, 1,000 and 1,200 steps" in text
    assert AGAIN not in text  # The run may have gone on, and then would not have kept these.
    command = """dragoman average \\
  runs/toy/step-*.safetensors \\
  --out runs/toy/average.safetensors
dragoman export runs/toy/average.safetensors"""
    assert command in text


def test_several_processes_train_it_again(luong: Checkpoint) -> None:
    text = text_of(luong, {"processes": 2})
    assert "1,200 steps in 10 minutes by 2 processes" in text
    assert "torchrun --nproc-per-node 2 -m dragoman_training recipe.toml --out runs/toy" in text
    assert "dragoman train recipe.toml --out runs/toy" in text_of(luong, {"processes": 1})


@pytest.fixture(scope="module")
def members(tokenizer: Tokenizer) -> list[Checkpoint]:
    return make_members("ensemble", tokenizer)


@pytest.fixture(scope="module")
def files(members: list[Checkpoint], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [save(member, folder / f"{number}.safetensors") for number, member in enumerate(members)]


@pytest.fixture(scope="module")
def bundle(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """In fp32, with a shortlist: its trace is one that other tests have, too."""
    folder = tmp_path_factory.mktemp("ensemble")
    for name in ("train.de", "train.en"):
        (folder / name).write_text("abc def\nghi abc\n" * 20)
    out = folder / "all" / "1"
    arguments = [*files, "--out", out, "--precisions", "fp32", "--recipe-folder", folder, "--shortlist"]
    code, said = call(export, *arguments)
    assert code == 0, said
    return open_bundle(out)


def test_the_manifest_says_what_the_members_are_and_each_has_its_recipe(
    bundle: Bundle, members: list[Checkpoint]
) -> None:
    architecture = bundle.manifest.architecture
    assert architecture.family == "ensemble"
    assert architecture.parameters == sum(
        parameter.numel() for member in members for parameter in member.model.parameters()
    )
    told = architecture.description.split("; ")
    assert [each.split(":")[0] for each in told] == ["luong", "transformer", "plain"]
    assert "feed forward 20" in told[1]
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

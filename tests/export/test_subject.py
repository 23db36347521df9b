"""What is owed for a model's data is on its card: that of every member, and of what each was begun with."""

from dataclasses import asdict, replace
from typing import Any

from tests.export.toy_checkpoint import PROGRESS

from dragoman_export.trained import subject_of
from dragoman_training.checkpoint import Checkpoint, provenances
from dragoman_training.recipe.settings import CardConfig

OURS = CardConfig(data="Our letters", licence="Ours alone", credit="Nobody")


def changed(checkpoint: Checkpoint, card: CardConfig, start_from: str = "", **progress: Any) -> Checkpoint:
    recipe = checkpoint.recipe
    training = replace(recipe.training, start_from=start_from)
    return replace(
        checkpoint,
        recipe=replace(recipe, card=card, training=training),
        progress={**PROGRESS, **progress},
    )


def test_pairs_are_counted_by_the_run(luong: Checkpoint) -> None:
    card = luong.recipe.card
    assert subject_of([changed(luong, card, num_pairs=29_000)]).card.data == (
        "Nothing at all: 29,000 sentence pairs"
    )
    assert subject_of([luong]).card.data == "Nothing at all"


def test_data_of_which_nothing_is_stated_is_named_by_its_files(luong: Checkpoint) -> None:
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

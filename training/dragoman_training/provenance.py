"""What a model was trained on, and what is owed for it: its own data, and that of what it was begun with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from dragoman_training.data.tokenized_corpus import show_left_out
from dragoman_training.recipe.settings import Recipe


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """One training's data; what is not stated is empty."""

    data: str
    """As its recipe's card says, or else its files; and how many pairs."""
    licence: str
    """Licence of a model trained on it."""
    credit: str
    """Credit owed to the makers of the data."""


def provenances(recipe: Recipe, progress: Mapping[str, Any]) -> list[Provenance]:
    """The data of each training that led to a model, the first one first."""
    before = [Provenance(**entry) for entry in progress.get("begun_with") or []]
    if not before and recipe.training.start_from:
        # Of a checkpoint that does not yet say so itself.
        origin = f"that of the checkpoint {path_tail(recipe.training.start_from, 2)}"
        before = [Provenance(data=origin, licence="", credit="")]
    card = recipe.card
    provenance = Provenance(data=_own_data(recipe, progress), licence=card.licence, credit=card.credit)
    return [*before, provenance]


def path_tail(path: str, num_parts: int) -> str:
    """The last parts of a path, those that name nothing left out."""
    return "/".join([part for part in PurePath(path).parts if part not in ("..", "/")][-num_parts:])


def _own_data(recipe: Recipe, progress: Mapping[str, Any]) -> str:
    description, num_pairs = recipe.card.data, progress.get("num_pairs")
    if not description:
        data = recipe.data
        files = [*data.train_source, *data.train_target, *data.train_tsv]
        description = ", ".join(f"`{path_tail(file, 1)}`" for file in files)
    counted = "sentence pairs" if recipe.data.has_source else "sentences"
    left_out = show_left_out(progress.get("left_out") or {})
    without = f" (left out: {left_out})" if left_out else ""
    return f"{description}: {num_pairs:,} {counted}{without}" if num_pairs else description

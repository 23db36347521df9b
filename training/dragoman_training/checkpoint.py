"""Checkpoints: one safetensors file with a model and, where training goes on, all it needs for that.

Also how several decode together, and what one says of the data that it was trained on.

Nothing is pickled. Tensor names: `model.*` the parameters, `average.*` their moving average, `optimizer.*`
Adam's moments, `tokenizer.*` sentencepiece models as bytes. Recipe and progress are metadata in JSON.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from dragoman_training.data.pair_filter import show_left_out
from dragoman_training.data.vocabulary import Tokenizers
from dragoman_training.models import Seq2Seq, VocabularyShape, build_model
from dragoman_training.models.ensemble import Ensemble
from dragoman_training.recipe.data import RecipeError
from dragoman_training.recipe.reader import recipe_from_table
from dragoman_training.recipe.settings import DecodingConfig, Recipe

FORMAT = "dragoman checkpoint 1"


class CheckpointError(ValueError):
    """A file that is not a checkpoint of this program, or not of this version."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A trained model and what belongs to it."""

    recipe: Recipe
    model: Seq2Seq
    """The model in evaluation mode: the moving average, where training kept one."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    progress: dict[str, Any]
    """Steps, epochs, seconds, and the validations so far."""

    def has_vocabulary_of(self, other: "Checkpoint") -> bool:
        """Whether both sides have the very tokenizers of the other's."""
        sides = "source_tokenizer", "target_tokenizer"
        return all(getattr(self, side).model == getattr(other, side).model for side in sides)


def write_checkpoint(
    path: Path,
    recipe: Recipe,
    tokenizers: Tokenizers,
    tensors: Mapping[str, Tensor],
    progress: Mapping[str, Any],
) -> None:
    """Writes a checkpoint in one stroke: the file is the old one or the new one, never part of one.

    Raises OSError, naming the file, where it can't be written; nothing is left of the new one.
    """
    source, target = tokenizers
    contents = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    contents["tokenizer.source"] = _bytes_tensor(source.model)
    if target is not source:
        contents["tokenizer.target"] = _bytes_tensor(target.model)
    metadata = {"format": FORMAT, "recipe": json.dumps(asdict(recipe)), "progress": json.dumps(progress)}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    try:
        with open(temporary, "wb") as stream:
            stream.write(save(contents, metadata))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        # What was there before still is.
        raise OSError(error.errno, f"can't be written ({error.strerror})", str(path)) from error


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], Recipe, dict[str, Any]]:
    """Tensors, recipe and progress. Raises CheckpointError for any other file, OSError for none."""
    if path.is_dir():
        best = path / "best.safetensors"
        raise CheckpointError(f"{path} is a folder; a checkpoint is a file such as {best}")
    try:
        with safe_open(path, framework="pt") as stream:
            metadata = stream.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise CheckpointError(
                    f"{path}: is not a {FORMAT}, but {metadata.get('format', 'something else')}; "
                    "this version of the program reads no other"
                )
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise CheckpointError(f"{path}: is damaged or no checkpoint: {error}") from error
    try:
        table, progress = json.loads(metadata["recipe"]), json.loads(metadata["progress"])
    except (KeyError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path}: is damaged: its recipe or progress can't be read") from error
    try:
        recipe = recipe_from_table(table)
    except RecipeError as error:
        reason = f"its recipe is not one of this version of the program: {error}"
        raise CheckpointError(f"{path}: {reason}") from error
    return tensors, recipe, progress


def load_checkpoint(path: Path) -> Checkpoint:
    """Reads a checkpoint to translate with or to export. Raises CheckpointError or OSError."""
    tensors, recipe, progress = read_checkpoint(path)
    prefix = "average." if any(name.startswith("average.") for name in tensors) else "model."
    try:
        source, target = stored_tokenizers(tensors)
        model = build_model(recipe.model, vocabulary_shape(source, target))
        load_parameters(model, tensors, prefix)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    return Checkpoint(
        recipe=recipe,
        # Nobody trains it, and the loss computes gradients for whatever wants one.
        model=model.eval().requires_grad_(False),
        source_tokenizer=source,
        target_tokenizer=target,
        progress=progress,
    )


def stored_tokenizers(tensors: Mapping[str, Tensor]) -> Tokenizers:
    """The tokenizers in a checkpoint's tensors; the same object where the vocabulary is shared.

    Raises CheckpointError where there is none.
    """
    if "tokenizer.source" not in tensors:
        raise CheckpointError("the checkpoint is damaged: it has no tokenizer")
    found = [tensors[name] for name in ("tokenizer.source", "tokenizer.target") if name in tensors]
    source, *other = (Tokenizer(tensor.numpy().tobytes()) for tensor in found)
    return source, other[0] if other else source


def load_parameters(model: Seq2Seq, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Fills a model from the tensors whose names begin with the prefix. Raises CheckpointError."""
    state = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    known, misfit = dict(model.named_parameters()), "the checkpoint does not fit its own recipe: parameter"
    if odd := sorted(state.keys() ^ known.keys()):
        raise CheckpointError(f'{misfit} "{odd[0]}" has no counterpart')
    with torch.no_grad():
        for name, parameter in known.items():
            found, wanted = tuple(state[name].shape), tuple(parameter.shape)
            if found != wanted:
                raise CheckpointError(f'{misfit} "{name}" is {found}, expected {wanted}')
            parameter.copy_(state[name])


def vocabulary_shape(source: Tokenizer, target: Tokenizer) -> VocabularyShape:
    """What a model must know of its vocabularies."""
    return VocabularyShape(
        source_size=source.vocabulary_size,
        target_size=target.vocabulary_size,
        shared=source is target,
        bos=target.bos_id,
        never_produced=(target.pad_id, target.unk_id, target.bos_id),
    )


def _bytes_tensor(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def load_members(paths: Sequence[Path]) -> list[Checkpoint]:
    """Reads checkpoints of one vocabulary and one pair of languages.

    Raises CheckpointError where one is no checkpoint or does not fit the first, OSError for none.
    """
    first, *others = members = [load_checkpoint(path) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        if not other.has_vocabulary_of(first):
            raise CheckpointError(
                f"{path} has another vocabulary than {paths[0]}: members of an ensemble are trained on one "
                "corpus, with one [vocabulary] in their recipes"
            )
        theirs, ours = other.recipe.data.direction, first.recipe.data.direction
        if theirs != ours:
            raise CheckpointError(f"{path} translates {theirs}, and {paths[0]} {ours}")
    if others and not first.recipe.data.has_source:
        raise CheckpointError(f"{paths[0]} is a language model, and no ensembles are made of these")
    return members


def as_one(members: Sequence[Checkpoint]) -> Seq2Seq:
    """The model of one checkpoint, or the ensemble of several, in evaluation mode."""
    first = members[0]
    if len(members) == 1:
        return first.model
    shape = vocabulary_shape(first.source_tokenizer, first.target_tokenizer)
    return Ensemble([member.model for member in members], shape).eval()


def decoding_of(members: Sequence[Checkpoint]) -> DecodingConfig:
    """How they decode together: as the first one says, within the lengths that all are trusted with."""
    ways = [member.recipe.decoding for member in members]
    return replace(
        ways[0],
        max_source_tokens=min(way.max_source_tokens for way in ways),
        max_output_tokens=min(way.max_output_tokens for way in ways),
    )


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """One training's data; what is not stated is empty."""

    data: str
    """The data as its recipe's card names it, or else its files; and how many pairs."""
    licence: str
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
    data, num_pairs = recipe.data, progress.get("num_pairs")
    files = [*data.train_source, *data.train_target, *data.train_tsv]
    description = recipe.card.data or ", ".join(f"`{path_tail(file, 1)}`" for file in files)
    counted = "sentence pairs" if data.has_source else "sentences"
    left_out = show_left_out(progress.get("left_out") or {})
    without = f" (left out: {left_out})" if left_out else ""
    return f"{description}: {num_pairs:,} {counted}{without}" if num_pairs else description

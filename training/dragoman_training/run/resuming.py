"""How a run begins with another's checkpoint, or goes on with its own: what may differ, and the tensors."""

import dataclasses
import operator
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman_training.checkpoint import Checkpoint, CheckpointError, load_checkpoint, load_parameters
from dragoman_training.models import Seq2Seq
from dragoman_training.recipe.settings import Recipe
from dragoman_training.run.optimizer import MovingAverage
from dragoman_training.run.validation import Progress

IN_ONE_STRETCH = "the numbers will not be those of a run in one stretch"
ON_THE_FORMER = "the best model so far was found on the former"
ENDED_ELSEWHERE = "where it ended first, it validated as a run in one stretch may not"


def check_same_run(saved: Progress, now: Progress) -> None:
    """Raises ValueError where the steps already done were on other pairs, or by more or fewer processes."""
    if saved.processes not in (None, now.processes):
        raise ValueError(
            f"the number of processes was {saved.processes} and can't become {now.processes} in a run that "
            f"is resumed: steps would get another size; start {saved.processes}, or train anew with --out"
        )
    if saved.corpus not in (None, now.corpus):
        raise ValueError(
            f"the run was begun on other training pairs ({saved.corpus}) than the recipe's files hold now "
            f"({now.corpus}); put the old ones back, or train anew with --out"
        )


def changed_around(saved: Progress, now: Progress) -> list[str]:
    """Warnings of a resumed run that goes on with other validation pairs, or in another precision."""
    changes = []
    if saved.valid_corpus not in (None, now.valid_corpus):
        held = (
            f"the validation files held other pairs ({saved.valid_corpus}) than they do ({now.valid_corpus})"
        )
        changes.append(f"{held}: {ON_THE_FORMER}")
    if saved.precision not in (None, now.precision):
        changes.append(f"it computed in {saved.precision} and computes in {now.precision}: {IN_ONE_STRETCH}")
    if saved.device not in (None, now.device):
        changes.append(f"it ran on {saved.device} and runs on {now.device}: {IN_ONE_STRETCH}")
    return changes


def changed_on_resuming(saved: Recipe, recipe: Recipe) -> list[str]:
    """Warnings of a resumed run that goes on in another way than it was begun: a sentence a change."""
    names = ["learning_rate", "warmup_steps", "decay"]
    if recipe.training.decay in ("linear", "cosine"):
        names.append("max_epochs")
    rows = [(name, getattr(saved.training, name), getattr(recipe.training, name)) for name in names]
    jumps = [f"training.{name} was {old} and is {new}" for name, old, new in rows if old != new]
    changes = []
    if jumps:
        changes = [f"{', '.join(jumps)} from here on: the learning rate jumps, and {IN_ONE_STRETCH}"]
    ends = ["max_minutes", "patience"] if jumps else ["max_minutes", "patience", "max_epochs"]
    stretched = "precision", "threads", "clip_norm", "adam_betas", "weight_decay"
    for key, consequence in (
        ("training.ema_decay", "the average is one of both"),
        ("training.label_smoothing", "losses before and after can't be compared"),
        *((f"training.{key}", IN_ONE_STRETCH) for key in stretched),
        *((key, IN_ONE_STRETCH) for key in ("scheduled_sampling", "guided_alignment")),
        *((f"training.{key}", ENDED_ELSEWHERE) for key in ends),
        ("training.validate_every_epochs", "the best model so far was chosen at other steps"),
        ("training.validate_sentences", "the best model so far was found on other sentences"),
        *((f"data.valid_{key}", ON_THE_FORMER) for key in ("source", "target", "tsv")),
        ("decoding", "the best model so far was found with other settings"),
    ):
        before, after = (operator.attrgetter(key)(compared) for compared in (saved, recipe))
        if before != after:
            changes.append(f"{key} was {before} and is {after} from here on: {consequence}")
    return changes


def fixed_differences(one: Recipe, other: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """Where two recipes of one family differ in what a run keeps from its first step to its last.

    Each is the key and both values.
    """
    names = "filter", "model", "vocabulary", "subword_sampling"
    tables = [f"{name}.{field.name}" for name in names for field in dataclasses.fields(getattr(one, name))]
    data = "source_language", "target_language", "max_tokens", "train_weights"
    steps = "batch_tokens", "accumulate_batches", "seed", "optimizer", "early_stopping", "start_from"
    for key in (*tables, *(f"data.{name}" for name in data), *(f"training.{name}" for name in steps)):
        ours, theirs = (operator.attrgetter(key)(compared) for compared in (one, other))
        if ours != theirs:
            yield key, ours, theirs


def check_resumable(saved: Recipe, recipe: Recipe) -> None:
    """Raises ValueError where a recipe changes what the steps already done rest on."""
    if saved.model.family != recipe.model.family:
        raise ValueError(
            f'the checkpoint is of the family "{saved.model.family}", but the recipe of '
            f'"{recipe.model.family}"; resume with its own recipe, or train anew with --out'
        )
    for key, before, after in fixed_differences(saved, recipe):
        raise ValueError(
            f"{key} was {before!r} and can't become {after!r} in a run that is resumed; resume with the "
            "settings that it was begun with, or train anew with --out"
        )


def load_start(recipe: Recipe, folder: Path) -> Checkpoint | None:
    """The checkpoint that `training.start_from` names, from `folder` on where it is relative; or None.

    Raises CheckpointError where its languages, model or vocabulary are not the recipe's, dropout aside, and
    OSError where it is not there.
    """
    if not recipe.training.start_from:
        return None
    path = folder / recipe.training.start_from
    start = load_checkpoint(path)
    theirs, ours = start.recipe.data.direction, recipe.data.direction
    if theirs != ours:
        raise CheckpointError(f"training.start_from: {path} translates {theirs}, the recipe {ours}")
    for table in ("model", "vocabulary"):
        begun, wanted = (dataclasses.asdict(getattr(compared, table)) for compared in (start.recipe, recipe))
        for key in (*begun, *wanted):
            if begun.get(key) != wanted.get(key) and key not in ("dropout", "max_pairs"):
                raise CheckpointError(
                    f"training.start_from: {path} has {table}.{key} {begun.get(key)!r}, the recipe "
                    f"{wanted.get(key)!r}; take its [model] and [vocabulary], where only dropout may differ"
                )
    return start


def state_tensors(
    model: Seq2Seq, average: MovingAverage, optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    """Parameters, their average and the optimizer's moments, named as `checkpoint` says."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = parameter
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}.{key}"] = value
    return tensors | {f"average.{name}": parameter for name, parameter in average.model.named_parameters()}


def restore_state(
    tensors: Mapping[str, Tensor],
    model: Seq2Seq,
    average: MovingAverage,
    optimizer: torch.optim.Optimizer,
    *,
    num_steps: int,
    is_scaled: bool,
) -> None:
    """Takes up what `state_tensors` gave after so many steps, of a loss that was scaled or was not.

    Raises CheckpointError where it is of another model, or not whole.
    """
    if not any(name.startswith("average.") for name in tensors):
        raise CheckpointError(
            "the checkpoint can't be resumed from: it holds a model alone, as best.safetensors does; "
            "last.safetensors holds the rest"
        )
    load_parameters(model, tensors, "model.")
    load_parameters(average.model, tensors, "average.")
    # Where the loss is scaled, all steps so far may have overflowed, and taught the optimizer nothing.
    is_fresh = num_steps == 0 or (is_scaled and not any(key.startswith("optimizer.") for key in tensors))
    for name, parameter in model.named_parameters():
        keys = [key for key in tensors if key.startswith(f"optimizer.{name}.")]
        if not is_fresh and not keys:
            missing = f'the optimizer\'s state of "{name}" is missing'
            raise CheckpointError(f"the checkpoint can't be resumed from: {missing}")
        optimizer.state[parameter] = {
            # Adam keeps its count of steps, which has no axis, on the CPU.
            key.rsplit(".", 1)[1]: value.to(parameter.device if value.ndim else "cpu", copy=True)
            for key, value in ((key, tensors[key]) for key in keys)
        }

"""How far training has come, which validations count as better, and what a resumed run may change."""

import dataclasses
import math
import operator
from collections.abc import Iterator
from typing import Any, Literal

from dragoman_training.recipe import Recipe
from dragoman_training.validation import Validation

LEAST_BLEU = 1.0
"""BLEU below this is noise; perplexity tells the better model there, as it does between equals."""


@dataclasses.dataclass(kw_only=True)
class Progress:
    """All that a resumed run must know beside tensors."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """Passes over the corpus that are complete."""
    batch: int = 0
    """Batches done of the pass under way; a step takes several where gradients are accumulated."""
    seconds: float = 0.0
    """Time spent training, validation included."""
    best_bleu: float = -1.0
    """BLEU of the best validation so far; -1 before one, and of a language model."""
    best_perplexity: float | None = None
    """Perplexity of the best validation so far."""
    best_step: int | None = None
    """The step of the best validation so far; None before one, and where a checkpoint does not say."""
    stale: int = 0
    """Validations since then."""
    loss_scale: float | None = None
    """What the loss is multiplied by in fp16."""
    loss_scale_age: int = 0
    """Steps since that last changed."""
    validations: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Step, seconds, perplexity and BLEU of each; a language model's BLEU is None."""
    averaged: list[int] = dataclasses.field(default_factory=list)
    """Steps of the checkpoints that `dragoman average` made this one of; empty for one that was trained."""
    processes: int | None = None
    """Processes that train together; None where a checkpoint does not say."""
    num_pairs: int | None = None
    """Training pairs, without those left out; None where a checkpoint does not say."""
    corpus: str | None = None
    """What `Corpus.fingerprint` says of the training pairs; None where a checkpoint does not."""
    valid_corpus: str | None = None
    """The same of the validation pairs."""

    def take_in(self, result: Validation, measure: Literal["bleu", "loss"]) -> bool:
        """Takes in a validation at the present step; returns whether it is the best so far."""
        self.validations.append(
            {
                "step": self.step,
                "seconds": round(self.seconds, 1),
                "perplexity": result.perplexity,
                "bleu": result.bleu,
            }
        )
        best = math.inf if self.best_perplexity is None else self.best_perplexity
        better = result.perplexity < best
        if measure == "bleu":
            assert result.bleu is not None
            says_something = max(result.bleu, self.best_bleu) >= LEAST_BLEU
            if says_something and result.bleu != self.best_bleu:
                better = result.bleu > self.best_bleu
        self.stale = 0 if better else self.stale + 1
        if better:
            self.best_bleu = -1.0 if result.bleu is None else result.bleu
            self.best_perplexity = result.perplexity
            self.best_step = self.step
        return better


IN_ONE_STRETCH = "the numbers will not be those of a run in one stretch"


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


def _rate_jump(saved: Recipe, recipe: Recipe) -> list[str]:
    """What to tell of a resumed run whose learning rate does not go on where it was."""
    names = ["learning_rate", "warmup_steps", "decay"]
    if recipe.training.decay in ("linear", "cosine"):
        names.append("max_epochs")
    changes = [
        f"training.{name} was {before} and is {after}"
        for name in names
        if (before := getattr(saved.training, name)) != (after := getattr(recipe.training, name))
    ]
    if not changes:
        return []
    return [f"{', '.join(changes)} from here on: the learning rate jumps, and {IN_ONE_STRETCH}"]


def changed_on_resuming(saved: Recipe, recipe: Recipe) -> list[str]:
    """What to tell of a resumed run that goes on in another way than it was begun: a sentence a change."""
    changes = _rate_jump(saved, recipe)
    for key, consequence in (
        ("training.ema_decay", "the average is one of both"),
        ("training.label_smoothing", "losses before and after can't be compared"),
        *((f"training.{key}", IN_ONE_STRETCH) for key in ("precision", "threads")),
        *((f"training.{key}", IN_ONE_STRETCH) for key in ("clip_norm", "adam_betas", "weight_decay")),
        ("scheduled_sampling", IN_ONE_STRETCH),
        ("training.validate_sentences", "the best model so far was found on other sentences"),
        ("data.valid_source", "the best model so far was found on the former"),
        ("data.valid_target", "the best model so far was found on the former"),
        ("data.valid_tsv", "the best model so far was found on the former"),
        ("decoding", "the best model so far was found with other settings"),
    ):
        before, after = (operator.attrgetter(key)(each) for each in (saved, recipe))
        if before != after:
            changes.append(f"{key} was {before} and is {after} from here on: {consequence}")
    return changes


def fixed_differences(one: Recipe, other: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """Where two recipes of one family differ in what a run keeps from its first step to its last.

    Each is the key and both values.
    """
    tables = [
        f"{table}.{field.name}"
        for table in ("model", "vocabulary", "subword_sampling")
        for field in dataclasses.fields(getattr(one, table))
    ]
    for key in (
        *tables,
        *("data.source_language", "data.target_language", "data.max_tokens"),
        *("training.batch_tokens", "training.accumulate_batches", "training.seed", "training.optimizer"),
        *("training.early_stopping", "training.start_from"),
    ):
        ours, theirs = (operator.attrgetter(key)(each) for each in (one, other))
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

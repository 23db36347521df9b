"""The training loop: one step, when to validate, when to stop, and how to go on after a stop."""

import dataclasses
import math
import random
import statistics
import time
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dragoman_training import checkpoint
from dragoman_training.checkpoint import Checkpoint, CheckpointError
from dragoman_training.data.batch_plan import BatchPlan
from dragoman_training.data.batching import Pairs, warnings_about
from dragoman_training.data.corpus import Corpus, CorpusError, spread
from dragoman_training.data.pair_filter import ONE_SIDED, TOO_LONG, show_left_out
from dragoman_training.data.token_ids import TokenizedCorpus
from dragoman_training.data.vocabulary import Tokenizers, make_samplers
from dragoman_training.decoding.translator import Translator
from dragoman_training.device import choose_dtype, precision_of
from dragoman_training.models import build_model
from dragoman_training.processes import Processes
from dragoman_training.recipe.settings import Recipe
from dragoman_training.run.objective import Objective, load_linker, teacher_forcing
from dragoman_training.run.optimizer import MovingAverage, build_optimizer, learning_rate
from dragoman_training.run.reporter import Reporter, StepReport
from dragoman_training.run.resuming import changed_around, check_same_run, restore_state, state_tensors
from dragoman_training.run.run_folder import StopRequest
from dragoman_training.run.validation import Progress, validate

SAVE_EVERY_SECONDS = 600.0
FIRST_LOSS_SCALE = 65536.0
LEAST_LOSS_SCALE = 2.0**-14
"""A scale below this means gradients overflow for another reason than fp16's narrow range."""


class DivergedError(ValueError):
    """The loss is no number any more; the message says at which step and what to go back to."""


class Trainer:
    """Trains one model by a recipe; on CPUs the same seed and recipe give the same parameters.

    What is random in a batch (segmentations, dropout, scheduled sampling) follows from the seed and the
    batch's place in the run alone. So a resumed run needs no generator's state, and several processes do to
    a step's batches what one would.
    """

    def __init__(
        self,
        recipe: Recipe,
        tokenizers: Tokenizers,
        train: Corpus | TokenizedCorpus,
        valid: Corpus,
        *,
        folder: Path,
        processes: Processes,
        reporter: Reporter | None,
        stop: StopRequest,
    ) -> None:
        """Builds the model, and tokenizes what is not yet; only the process that leads has a reporter.

        Raises CorpusError where no pair is left to train or validate on, ValueError for a wrong precision.
        """
        config = recipe.training
        self._dtype = choose_dtype(config.precision, processes.device)
        torch.manual_seed(config.seed)
        self.recipe = recipe
        self._tokenizers = tokenizers
        self._folder = folder
        self.last_path = folder / "last.safetensors"
        """Where the state to resume from is kept."""
        self.best_path = folder / "best.safetensors"
        """Where the best model so far is kept."""
        self._processes = processes
        self._device = processes.device
        self._reporter = reporter
        self._stop = stop
        samplers = make_samplers(tokenizers, recipe.subword_sampling, recipe.vocabulary.model_type)
        self._train = Pairs(train, *tokenizers, max_tokens=recipe.data.max_tokens, samplers=samplers)
        if not len(self._train):
            raise CorpusError(_nothing_left(self._train, recipe))
        self.progress = Progress(
            processes=processes.count,
            num_pairs=len(self._train),
            left_out=self._train.left_out,
            corpus=self._train.corpus.fingerprint,
            valid_corpus=valid.fingerprint(),
            precision=precision_of(self._dtype),
            device=processes.device.type,
        )
        processes.check_alike("training pairs", self._train.corpus.fingerprint)
        if recipe.guided_alignment.weight and not self._train.is_guided:
            self._train.guide(load_linker(), max_pairs=recipe.guided_alignment.max_pairs)
        self._valid_corpus = spread(valid, config.validate_sentences)
        self._valid = Pairs(self._valid_corpus, *tokenizers, max_tokens=None)
        if not len(self._valid):
            number = len(self._valid_corpus)
            raise CorpusError(
                f"the vocabulary's normalization leaves nothing of the {number} validation pairs"
            )
        self._model = build_model(recipe.model, checkpoint.vocabulary_shape(*tokenizers)).to(self._device)
        self._average = MovingAverage(self._model, config.ema_decay)
        self._optimizer = build_optimizer(config, self._model)
        self._scaler = self._loss_scaler()
        objective = Objective(
            self._model,
            label_smoothing=config.label_smoothing,
            dtype=self._dtype,
            own_token=recipe.scheduled_sampling.token,
            guided_weight=recipe.guided_alignment.weight,
        )
        self._objective = processes.wrap(objective)
        self._over = self._is_trained = False
        self._planned: tuple[int, BatchPlan] | None = None
        batches_per_epoch = len(self._plan(0))
        self._batches_per_step = config.accumulate_batches * processes.count
        self.steps_per_epoch = math.ceil(batches_per_epoch / self._batches_per_step)
        self._total_steps = self.steps_per_epoch * config.max_epochs
        self._validate_every = max(1, round(config.validate_every_epochs * self.steps_per_epoch))
        if reporter:
            reporter.describe(self._model, self._train, batches_per_epoch, processes)
            for warning in warnings_about(self._train, valid):
                reporter.warn(warning)
            if config.warmup_steps >= self._total_steps:
                reporter.warn(
                    f"training.warmup_steps is {config.warmup_steps:,}, but training.max_epochs allows "
                    f"{self._total_steps:,} steps, so that the learning rate rises to the end; lower the one "
                    "or raise the other"
                )

    def begin_with(self, start: Checkpoint) -> None:
        """Begins with the parameters of a model of the same sizes, instead of random ones.

        It is validated before the first step: only what is better than it becomes the best.
        """
        self._is_trained = True
        owed = checkpoint.provenances(start.recipe, start.progress)
        self.progress.begun_with = [dataclasses.asdict(provenance) for provenance in owed]
        with torch.no_grad():
            for ours in (self._model, self._average.model):
                for parameter, theirs in zip(ours.parameters(), start.model.parameters(), strict=True):
                    parameter.copy_(theirs)

    def run(self) -> str:
        """Trains until the recipe says stop, and returns why it did.

        When a stop is requested it finishes the step or validation it is in, saves, and raises
        KeyboardInterrupt. Raises DivergedError.
        """
        self._began = time.monotonic() - self.progress.seconds
        saved = time.monotonic()
        self._stop_requested()  # Of a run that goes on the time may be over.
        if self._is_trained and not self.progress.validations:
            self._validate()
        while (reason := self._reason_to_end()) is None:
            plan = self._plan(self.progress.epoch)
            # Another segmentation has another number of batches.
            num_left = math.ceil((len(plan) - self.progress.batch) / self._batches_per_step)
            later_epochs = self.recipe.training.max_epochs - self.progress.epoch - 1
            self._total_steps = self.progress.step + num_left + later_epochs * self.steps_per_epoch
            for start in range(self.progress.batch, len(plan), self._batches_per_step):
                report = self._step(plan[start : start + self._batches_per_step])
                if self._reporter:
                    self._reporter.step(report)
                if self.progress.step % self._validate_every == 0:
                    self._validate()
                if self._stop_requested():
                    self.save()
                    raise KeyboardInterrupt
                if self._reason_to_end() is not None:
                    break
                if time.monotonic() - saved > SAVE_EVERY_SECONDS:
                    self.save()
                    saved = time.monotonic()
            else:
                self.progress.epoch += 1
                self.progress.batch = 0
        if not self.progress.validations or self.progress.validations[-1]["step"] != self.progress.step:
            self._validate()
        else:
            self.save()  # Saved last before the epoch counted as complete.
        return reason

    def seconds_a_step(self, count: int) -> float:
        """Runs so many steps of the first epoch, and one before that makes ready what they use."""
        plan, ends = self._plan(0), []
        for number in range(count + 1):
            first = number * self._batches_per_step % len(plan)
            self._step(plan[first : first + self._batches_per_step])
            ends.append(time.monotonic())
        return statistics.median(end - before for before, end in pairwise(ends))

    def _plan(self, epoch: int) -> BatchPlan:
        """The epoch's batches, cut from its segmentations."""
        config = self.recipe.training
        if self._planned is None or self._planned[0] != epoch:
            self._planned = None
            self._train.segment(_draw(config.seed, "segmentation", epoch))
            seed = config.seed * 1_000_003 + epoch
            self._planned = epoch, self._train.plan(config.batch_tokens, seed=seed)
        return self._planned[1]

    def _stop_requested(self) -> bool:
        """Whether any process was told to stop. Settles for all of them, too, whether time is over."""
        limit = 60 * self.recipe.training.max_minutes
        over = self._processes.leads and 0 < limit <= time.monotonic() - self._began
        stops, overs = self._processes.sum([self._stop.requested, over])
        self._over = overs > 0
        return stops > 0

    def _reason_to_end(self) -> str | None:
        config = self.recipe.training
        if self.progress.epoch >= config.max_epochs:
            return f"{config.max_epochs} epochs are done"
        if 0 < config.patience <= self.progress.stale:
            measure = "better BLEU" if config.early_stopping == "bleu" else "lower loss"
            return f"{config.patience} validations brought no {measure}"
        if self._over:
            return f"{config.max_minutes:g} minutes are over"
        return None

    def _step(self, batches: list[list[int]]) -> StepReport:
        """One optimizer step over batches of pair numbers. The loss is a mean over their target tokens."""
        config = self.recipe.training
        num_tokens = sum(self._train.num_target_tokens(numbers) for numbers in batches)
        forced = teacher_forcing(self.recipe.scheduled_sampling, self.progress.step + 1)
        minimised_sum, plain_sum = self._add_gradients(batches, num_tokens, forced)
        minimised_sum, plain_sum = self._processes.sum([minimised_sum, plain_sum])
        if not math.isfinite(minimised_sum):
            raise self._diverged(f"the loss is {minimised_sum / num_tokens}")
        self._scaler.unscale_(self._optimizer)
        gradient_norm = float(nn.utils.clip_grad_norm_(self._model.parameters(), config.clip_norm))
        overflow_expected = self._scaler.is_enabled() and self._scaler.get_scale() > LEAST_LOSS_SCALE
        if not math.isfinite(gradient_norm) and not overflow_expected:
            raise self._diverged(f"the norm of the gradient is {gradient_norm}")
        rate = learning_rate(config, self.progress.step + 1, self._total_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._average.update(self._model)
        self.progress.step += 1
        self.progress.batch += len(batches)
        return StepReport(
            step=self.progress.step,
            total_steps=self._total_steps,
            epoch=self.progress.epoch,
            loss=plain_sum / num_tokens,
            num_tokens=num_tokens,
            gradient_norm=gradient_norm,
            learning_rate=rate,
            teacher_forcing=forced,
        )

    def _add_gradients(self, batches: list[list[int]], num_tokens: int, forced: float) -> tuple[float, float]:
        """Gradients of the mean over all the step's tokens; this process's sums of loss and cross-entropy."""
        config = self.recipe.training
        count = self._processes.count
        self._objective.train()
        self._optimizer.zero_grad(set_to_none=True)
        numbers = range(self._processes.number, len(batches), count)
        minimised_sum = plain_sum = 0.0
        # An epoch's last step may have fewer batches than processes; the rest run batch 0 with weight 0, so
        # that gradient reduction completes.
        for number in numbers or (0,):
            counts = 1.0 if numbers else 0.0
            batch = self._train.batch(batches[number]).to(self._device)
            torch.manual_seed(_draw(config.seed, "batch", self.progress.epoch, self.progress.batch + number))
            last = not numbers or number == numbers[-1]
            wait = isinstance(self._objective, DistributedDataParallel) and not last
            with self._objective.no_sync() if wait else nullcontext():  # type: ignore[operator]
                minimised, plain = self._objective(batch, forced)
                # Processes average their gradients; the loss wants their sum.
                self._scaler.scale(minimised * (counts * count / num_tokens)).backward()
            minimised_sum += counts * float(minimised.detach())
            plain_sum += counts * float(plain)
        return minimised_sum, plain_sum

    def _diverged(self, quantity: str) -> DivergedError:
        back = "start again: no checkpoint was written yet"
        if self.last_path.exists():
            back = f"resume from the last good state, {self.last_path}"
        return DivergedError(
            f"training diverged at step {self.progress.step + 1}, where {quantity}; "
            f"lower training.learning_rate and {back}"
        )

    def _check_finite(self) -> None:
        """Raises DivergedError, so that nothing is written that is no good to go on from."""
        for name, parameter in self._model.named_parameters():
            if not bool(parameter.isfinite().all()):
                raise self._diverged(f"{name} holds values that are no numbers")

    def _validate(self) -> None:
        """Measures the average where this process leads, keeps it where it is better, and saves."""
        self._check_finite()
        if self._processes.leads:
            assert self._reporter
            self._reporter.validating()
            model, has_source = self._average.model, self.recipe.data.has_source
            given = model, *self._tokenizers, self.recipe.decoding
            translator = Translator(*given) if has_source else None
            language = self.recipe.data.target_language
            result = validate(model, self._valid_corpus, self._valid, translator, target_language=language)
            if math.isnan(result.perplexity):
                raise self._diverged("the perplexity on validation is no number")
            self.progress.seconds = time.monotonic() - self._began
            better = self.progress.take_in(result, self.recipe.training.early_stopping)
            if better:
                self._write_model(self.best_path)
            if keep := self.recipe.training.keep_validated:
                self._write_model(self._folder / f"step-{self.progress.step}.safetensors")
                for old in self.progress.validations[:-keep]:
                    (self._folder / f"step-{old['step']}.safetensors").unlink(missing_ok=True)
            self._reporter.validation(self.progress.step, result, better=better)
        self.progress = self._processes.from_leader(self.progress)
        self.save()

    def _write_model(self, path: Path) -> None:
        tensors = {f"model.{name}": value for name, value in self._average.model.named_parameters()}
        given = self.recipe, self._tokenizers, tensors, dataclasses.asdict(self.progress)
        checkpoint.write_checkpoint(path, *given)

    def save(self) -> None:
        """Writes everything a resumed run needs, where this process leads. Raises DivergedError."""
        self._check_finite()
        if not self._processes.leads:
            return
        self.progress.seconds = time.monotonic() - self._began
        if self._scaler.is_enabled():
            scaler = self._scaler.state_dict()
            self.progress.loss_scale = scaler["scale"]
            self.progress.loss_scale_age = scaler["_growth_tracker"]
        state = state_tensors(self._model, self._average, self._optimizer)
        progress = dataclasses.asdict(self.progress)
        checkpoint.write_checkpoint(self.last_path, self.recipe, self._tokenizers, state, progress)

    def restore(
        self, tensors: dict[str, Tensor], progress: dict[str, Any], changes: Sequence[str] = ()
    ) -> None:
        """Goes on where `save` left off, on CPUs to the numbers that an uninterrupted run gives.

        `changes` of the recipe are reported, with those around it. Raises ValueError where that run had
        another corpus or another number of processes, or where a parameter is no number.
        """
        try:
            saved = Progress(**progress)
        except TypeError as error:
            raise CheckpointError(
                f"{self.last_path} can't be resumed from: another version of the program wrote it ({error})"
            ) from error
        check_same_run(saved, self.progress)
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                raise ValueError(
                    f"{self.last_path} can't be resumed from: its {name} holds values that are no numbers; "
                    f"the best model is still {self.best_path}, or train anew with --out"
                )
        parts, is_scaled = (self._model, self._average, self._optimizer), saved.loss_scale is not None
        restore_state(tensors, *parts, num_steps=saved.step, is_scaled=is_scaled)
        now = self.progress
        changes = [*changes, *changed_around(saved, now)]
        if self._reporter:
            for change in changes:
                self._reporter.warn(change)
        todays = ("processes", "num_pairs", "left_out", "corpus", "valid_corpus", "precision", "device")
        of_now = {name: getattr(now, name) for name in todays}
        self.progress = dataclasses.replace(saved, **of_now, changed=saved.changed or bool(changes))
        self._average.num_updates = self.progress.step
        self._scaler = self._loss_scaler()

    def _loss_scaler(self) -> torch.amp.GradScaler:
        """Scales the loss in fp16, from where progress left off; else it does nothing."""
        is_half = self._dtype == torch.float16
        scaler = torch.amp.GradScaler(self._device.type, init_scale=FIRST_LOSS_SCALE, enabled=is_half)
        if self.progress.loss_scale and scaler.is_enabled():
            state = {"scale": self.progress.loss_scale, "_growth_tracker": self.progress.loss_scale_age}
            scaler.load_state_dict({**scaler.state_dict(), **state})
        return scaler


def _nothing_left(pairs: Pairs, recipe: Recipe) -> str:
    """Why there is no pair to train on."""
    reason = "the vocabulary's normalization leaves"
    if TOO_LONG in pairs.left_out:
        reason = f"data.max_tokens is {recipe.data.max_tokens}, which leaves"
    elif set(pairs.left_out) - {ONE_SIDED}:
        reason = f"the recipe's filter ({show_left_out(pairs.left_out)}) leaves"
    return f"{reason} none of the {pairs.corpus.num_read} training pairs"


def _draw(*position: object) -> int:
    """A seed for a place in the run."""
    return random.Random(repr(position)).getrandbits(32)

"""The training loop: one step, when to validate, when to stop, and how to go on after a stop."""

import dataclasses
import math
import operator
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman_bundle.tokenizer import Tokenizer
from dragoman_training.batching import Batch, Pairs
from dragoman_training.checkpoint import load_parameters, vocabulary_shape, write_checkpoint
from dragoman_training.corpus import Corpus, CorpusError
from dragoman_training.device import multiplies_in_bf16
from dragoman_training.loss import linear_cross_entropy
from dragoman_training.models import build_model
from dragoman_training.optimizer import MovingAverage, learning_rate
from dragoman_training.recipe import Recipe
from dragoman_training.reporter import Reporter, StepReport
from dragoman_training.stop_request import StopRequest
from dragoman_training.translator import Translator
from dragoman_training.validation import Validation, spread, validate

SAVE_EVERY_SECONDS = 600.0


class DivergedError(ValueError):
    """The loss is no number any more; the message says at which step and what to go back to."""


@dataclasses.dataclass(kw_only=True)
class Progress:
    """How far training has come: all that a resumed run must know beside tensors."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """Passes over the corpus that are complete."""
    batch: int = 0
    """Batches done of the pass under way."""
    seconds: float = 0.0
    """Time spent training, validation included."""
    best_bleu: float = -1.0
    """Best validation BLEU so far."""
    stale: int = 0
    """Validations since then."""
    validations: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Step, seconds, perplexity and BLEU of each."""


def check_resumable(saved: Recipe, recipe: Recipe) -> None:
    """Raises ValueError where a recipe changes what the steps already done rest on."""
    for key in (
        *("model", "vocabulary", "data.source_language", "data.target_language", "data.max_tokens"),
        *("training.batch_tokens", "training.seed"),
    ):
        before, after = (operator.attrgetter(key)(each) for each in (saved, recipe))
        if before != after:
            raise ValueError(f"{key} was {before} and can't become {after} in a run that is resumed")


class Trainer:
    """Trains one model by a recipe; on one CPU the same seed and recipe give the same parameters."""

    def __init__(
        self,
        recipe: Recipe,
        tokenizers: tuple[Tokenizer, Tokenizer],
        train: Corpus,
        valid: Corpus,
        *,
        folder: Path,
        device: torch.device,
        reporter: Reporter,
        stop: StopRequest,
    ) -> None:
        """Tokenizes the corpora and builds the model. Raises CorpusError where every pair is too long."""
        torch.manual_seed(recipe.training.seed)
        self.recipe = recipe
        self.progress = Progress()
        self._tokenizers = tokenizers
        self._folder = folder
        self._device = device
        precision = recipe.training.precision
        self._mixed = precision == "bf16" or (precision == "auto" and multiplies_in_bf16(device))
        self._reporter = reporter
        self._stop = stop
        self._train = Pairs(train, *tokenizers, max_tokens=recipe.data.max_tokens)
        if not len(self._train):
            raise CorpusError(
                f"data.max_tokens is {recipe.data.max_tokens}, "
                f"which leaves none of the {len(train)} training pairs"
            )
        self._valid_corpus = spread(valid, recipe.training.validate_sentences)
        self._valid = Pairs(self._valid_corpus, *tokenizers, max_tokens=None)
        self._model = build_model(recipe.model, vocabulary_shape(*tokenizers)).to(device)
        self._average = MovingAverage(self._model, recipe.training.ema_decay)
        self._optimizer = torch.optim.Adam(
            self._model.parameters(), lr=0.0, betas=recipe.training.adam_betas, eps=1e-9
        )
        batches_per_epoch = len(self._plan(0))
        self._total_steps = batches_per_epoch * recipe.training.max_epochs
        self._validate_every = max(1, round(recipe.training.validate_every_epochs * batches_per_epoch))
        reporter.describe(self._model, self._train, batches_per_epoch, device)

    @property
    def last_path(self) -> Path:
        """Where the state to resume from is kept."""
        return self._folder / "last.safetensors"

    @property
    def best_path(self) -> Path:
        """Where the best model so far is kept."""
        return self._folder / "best.safetensors"

    def run(self) -> str:
        """Trains until the recipe says stop, and returns why it did.

        When a stop is requested it finishes the step or validation it is in, saves, and raises
        KeyboardInterrupt. Raises DivergedError.
        """
        self._began = time.monotonic() - self.progress.seconds
        saved = time.monotonic()
        while (reason := self._reason_to_end()) is None:
            for numbers in self._plan(self.progress.epoch)[self.progress.batch :]:
                self._reporter.step(self._step(self._train.batch(numbers)))
                if self.progress.step % self._validate_every == 0:
                    self._validate()
                if self._stop.requested:
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
        return reason

    def _plan(self, epoch: int) -> list[list[int]]:
        config = self.recipe.training
        return self._train.plan(config.batch_tokens, seed=config.seed * 1_000_003 + epoch)

    def _reason_to_end(self) -> str | None:
        config = self.recipe.training
        if self.progress.epoch >= config.max_epochs:
            return f"{config.max_epochs} epochs are done"
        if 0 < config.patience <= self.progress.stale:
            return f"{config.patience} validations brought no better BLEU"
        if 0 < 60 * config.max_minutes <= time.monotonic() - self._began:
            return f"{config.max_minutes:g} minutes are over"
        return None

    def _step(self, batch: Batch) -> StepReport:
        """One optimizer step. The loss is a mean over target tokens, in nats."""
        config = self.recipe.training
        num_tokens = int(self._train.counted(batch).sum())
        batch = batch.to(self._device)
        counted_SU = self._train.counted(batch)
        self._model.train()
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._mixed):
            features_SUD = self._model(batch.source_ST, batch.source_length_S, batch.target_input_SU)
        smoothed, plain = linear_cross_entropy(
            features_SUD[counted_SU],
            self._model.output.embedding.weight,
            self._model.output.bias,
            batch.target_output_SU[counted_SU],
            smoothing=config.label_smoothing,
            dtype=torch.bfloat16 if self._mixed else torch.float32,
        )
        self._optimizer.zero_grad(set_to_none=True)
        (smoothed / num_tokens).backward()
        gradient_norm = float(nn.utils.clip_grad_norm_(self._model.parameters(), config.clip_norm))
        if not math.isfinite(gradient_norm):
            raise DivergedError(
                f"the loss diverged at step {self.progress.step + 1}; lower training.learning_rate and "
                f"{self._way_back()}"
            )
        rate = learning_rate(config, self.progress.step + 1, self._total_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._average.update(self._model)
        self.progress.step += 1
        self.progress.batch += 1
        return StepReport(
            step=self.progress.step,
            total_steps=self._total_steps,
            epoch=self.progress.epoch,
            loss=float(plain) / num_tokens,
            num_tokens=num_tokens,
            gradient_norm=gradient_norm,
            learning_rate=rate,
        )

    def _way_back(self) -> str:
        if not self.last_path.exists():
            return "start again: no checkpoint was written yet"
        return f"resume from the last good state, {self.last_path}"

    def _validate(self) -> None:
        self._reporter.validating()
        model = self._average.model
        translator = Translator(model, *self._tokenizers, self.recipe.decoding)
        result: Validation = validate(model, self._valid_corpus, self._valid, translator)
        self.progress.seconds = time.monotonic() - self._began
        self.progress.validations.append(
            {
                "step": self.progress.step,
                "seconds": round(self.progress.seconds, 1),
                "perplexity": result.perplexity,
                "bleu": result.bleu,
            }
        )
        better = result.bleu > self.progress.best_bleu
        if better:
            self.progress.best_bleu = result.bleu
            self.progress.stale = 0
            tensors = {f"model.{name}": value for name, value in model.named_parameters()}
            write_checkpoint(
                self.best_path, self.recipe, self._tokenizers, tensors, dataclasses.asdict(self.progress)
            )
        else:
            self.progress.stale += 1
        self._reporter.validation(self.progress.step, result, better=better)
        self.save()

    def save(self) -> None:
        """Writes everything a resumed run needs."""
        self.progress.seconds = time.monotonic() - self._began
        tensors: dict[str, Tensor] = {"random.cpu": torch.get_rng_state()}
        if self._device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self._device)
        for name, parameter in self._model.named_parameters():
            tensors[f"model.{name}"] = parameter
            for key, value in self._optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}.{key}"] = value
        for name, parameter in self._average.model.named_parameters():
            tensors[f"average.{name}"] = parameter
        write_checkpoint(
            self.last_path, self.recipe, self._tokenizers, tensors, dataclasses.asdict(self.progress)
        )

    def restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        """Goes on where `save` left off, on a CPU to the numbers that an uninterrupted run gives."""
        load_parameters(self._model, tensors, "model.")
        load_parameters(self._average.model, tensors, "average.")
        for name, parameter in self._model.named_parameters():
            keys = [key for key in tensors if key.startswith(f"optimizer.{name}.")]
            self._optimizer.state[parameter] = {
                key.rsplit(".", 1)[1]: tensors[key].to(
                    self._device if tensors[key].ndim else torch.device("cpu"), copy=True
                )
                for key in keys
            }
        torch.set_rng_state(tensors["random.cpu"])
        if self._device.type == "cuda" and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"], self._device)
        self.progress = Progress(**progress)
        self._average.num_updates = self.progress.step

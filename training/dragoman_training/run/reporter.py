"""What a person sees of training: a progress bar or log lines, and TensorBoard."""

import time
from dataclasses import dataclass
from pathlib import Path

from rich import progress
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

from dragoman_training.data.batching import Pairs
from dragoman_training.data.pair_filter import show_left_out
from dragoman_training.models import Seq2Seq
from dragoman_training.processes import Processes
from dragoman_training.run.validation import Validation, show_perplexity

LOG_EVERY_SECONDS = 30.0
BOARD_EVERY_STEPS = 20


@dataclass(frozen=True, kw_only=True)
class StepReport:
    step: int
    total_steps: int
    epoch: int
    loss: float
    """Mean negative log-likelihood per target token, in nats, without smoothing."""
    num_tokens: int
    """Target tokens, eos included."""
    gradient_norm: float
    learning_rate: float
    teacher_forcing: float
    """Probability that the decoder read the reference's token."""


class Reporter:
    """Shows progress on a terminal, or writes a line now and then where there is none."""

    def __init__(self, folder: Path, *, first_step: int = 0) -> None:
        """Writes to `folder`; curves of an earlier run are kept up to `first_step`, that step's included."""
        self._console = Console()
        purge_step = first_step + 1 if first_step else None
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=purge_step)
        self._bar = progress.Progress(
            progress.TextColumn("epoch {task.fields[epoch]} {task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("loss {task.fields[loss]:.3f}"),
            progress.TextColumn("{task.fields[speed]:,.0f} tokens/s"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_interactive,
        )
        self._task = self._bar.add_task("", total=None, epoch=1, loss=0.0, speed=0.0)
        self._window: list[tuple[float, int, float]] = []
        self._logged = time.monotonic()

    def __enter__(self) -> "Reporter":
        self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.stop()
        self._board.close()

    def describe(self, model: Seq2Seq, pairs: Pairs, batches_per_epoch: int, processes: Processes) -> None:
        """Says what is about to be trained."""
        parameters = sum(parameter.numel() for parameter in model.parameters())
        left_out = show_left_out(pairs.left_out)
        self._print(
            f"{parameters:,} parameters; {len(pairs):,} pairs{f' ({left_out})' if left_out else ''}; "
            f"{batches_per_epoch:,} batches an epoch; on {processes.device}"
            f"{f' and {processes.count - 1} more' if processes.count > 1 else ''}"
        )

    def warn(self, text: str) -> None:
        """Says what is likely not meant."""
        self._print(f"Warning: {text}")

    def step(self, report: StepReport) -> None:
        now = time.monotonic()
        self._window = [*self._window[-99:], (now, report.num_tokens, report.loss)]
        tokens = sum(tokens for _, tokens, _ in self._window[1:])
        loss = sum(loss for _, _, loss in self._window) / len(self._window)
        speed = tokens / max(now - self._window[0][0], 1e-9)
        self._bar.update(self._task, completed=report.step, total=report.total_steps)
        self._bar.update(self._task, epoch=report.epoch + 1, loss=loss, speed=speed)
        if report.step % BOARD_EVERY_STEPS == 0:
            for name in ("loss", "gradient_norm", "learning_rate", "teacher_forcing"):
                self._board.add_scalar(f"train/{name}", getattr(report, name), report.step)
            self._board.add_scalar("train/tokens_per_second", speed, report.step)
        if self._bar.disable and now - self._logged >= LOG_EVERY_SECONDS and len(self._window) > 10:
            self._logged = now
            seconds_a_step = (now - self._window[0][0]) / (len(self._window) - 1)
            minutes_left = (report.total_steps - report.step) * seconds_a_step / 60
            self._print(
                f"epoch {report.epoch + 1}, step {report.step:,} of {report.total_steps:,}: "
                f"loss {loss:.3f}, {speed:,.0f} tokens/s, {minutes_left:.0f} min left"
            )

    def validating(self) -> None:
        """A validation begins: steps pause."""
        self._bar.update(self._task, description="validating")

    def validation(self, step: int, result: Validation, *, better: bool) -> None:
        self._board.add_scalar("valid/perplexity", result.perplexity, step)
        message = f"step {step:,}: perplexity {show_perplexity(result.perplexity)}"
        if result.bleu is not None:
            self._board.add_scalar("valid/bleu", result.bleu, step)
            message += f", BLEU {result.bleu:.2f}"
        message += " (best so far)" if better else ""
        if result.sample is not None:
            source, translation, reference = result.sample
            message += f"\n  {source}\n  > {translation}\n  = {reference}"
        self._print(message)
        self._bar.update(self._task, description="")
        self._window = []

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

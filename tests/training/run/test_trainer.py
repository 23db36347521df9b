"""Training: it learns, it resumes to the same numbers, and it stops when it must."""

import itertools
import json
import math
import os
import shutil
import signal
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tests.training.toy_pairs import invoke, long_but_for, opened, part_of_toy, refusal
from tests.training.toy_pairs import run_training as run
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from dragoman_training.checkpoint import load_checkpoint, read_checkpoint
from dragoman_training.cli import train
from dragoman_training.data.batching import Pairs
from dragoman_training.run import objective, trainer
from dragoman_training.run.objective import Objective
from dragoman_training.run.reporter import StepReport


def test_a_model_learns_the_toy_corpus(toy_folder: Path, toy_checkpoint: Path) -> None:
    sources, targets = ((toy_folder / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    with opened(toy_checkpoint) as system:
        translations = system.translate([*sources, ""])
        assert system.details["precision"] == "fp32"
        with pytest.warns(UserWarning, match=r"1 of 2 sentences have more tokens than the model takes"):
            system.translate([sources[0], "der mann sieht " * 300])
    right = sum(translation == target for translation, target in zip(translations, targets, strict=False))
    assert right >= 0.9 * len(targets)
    assert translations[-1] == ""


BAHDANAU = 'family="bahdanau", embedding_size=16, encoder_units=16, decoder_units=32, attention_units=16'
SIZES = "embedding_size=32, encoder_layers=1, encoder_units=32, decoder_layers=1, decoder_units=32"
TRANSFORMER = (
    'family="transformer", width=32, heads=2, feed_forward=48, encoder_layers=1, decoder_layers=1, '
    'positions="learned"'
)
FAMILIES = {
    "plain": 'family="plain", embedding_size=32, layers=2, units=32',
    "multi-head": f'family="multi-head", attention_units=32, heads=2, {SIZES}',
    "local-m": f'family="luong", attention="local-m", window=2, {SIZES}',
    "local-p": f'family="luong", attention="local-p", window=2, {SIZES}',
    "lm": 'family="lm", embedding_size=32, units=32, attention_units=16',
    "bahdanau gru": f'cell="gru", {BAHDANAU}',
    "bahdanau lstm": f'cell="lstm", {BAHDANAU}',
    "structured": f'family="structured", annotations=3, annotation_units=16, {SIZES}',
    "transformer": TRANSFORMER,
}
ONE_EPOCH, TWO_EPOCHS = (
    ["--set", "training.batch_tokens=1200", f"training.max_epochs={epochs}"] for epochs in (1, 2)
)
FP16 = ["--set", 'training.precision="fp16"']
VARIANTS = {
    "luong, all sampled": [
        *("--set", "scheduled_sampling.decay=inverse_sigmoid", "scheduled_sampling.pace=30"),
        *("scheduled_sampling.token=sampled", "vocabulary.model_type=unigram", "vocabulary.size=60"),
        *("subword_sampling.source=true", "subword_sampling.target=true", "training.accumulate_batches=2"),
    ],
    "luong with AdamW": [
        *("--set", "training.optimizer=adamw", "training.weight_decay=0.01"),
        *("training.early_stopping=loss", "training.decay=cosine"),
    ],
    "luong in fp16": FP16,
    "transformer, in fp16": FP16,
    "luong in bf16": ["--set", 'training.precision="bf16"'],
    "bahdanau gru, two vocabularies": ["--set", "vocabulary.shared=false", "--set", "vocabulary.size=100"],
    "bahdanau lstm": [],
    "structured": [],
    "transformer": [],
    "plain": [],
    "multi-head": [],
    "local-m": [],
    "local-p": [],
    "lm": ["--set", "training.early_stopping=loss"],
}


def allow_fp16_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets training scale its loss here too; a CPU is refused because it is slow, not because it can't.

    Where CPUs multiply in fp16 oneDNN takes LSTMs on, and has none that trains in it: do without oneDNN.
    """
    monkeypatch.setattr(trainer, "choose_dtype", lambda precision, device: torch.float16)
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)


def variant_recipe(toy_folder: Path, folder: Path, variant: str, *, num_train: int = 400) -> Path:
    """The toy recipe with that family and a part of the corpus, elsewhere."""
    path = part_of_toy(toy_folder, folder, num_train, 20)
    text = path.read_text()
    if family := FAMILIES.get(variant.split(",")[0]):
        head, tail = text.split('family = "luong"')[0], text.split("dropout = 0.1")[1]
        text = "\n".join([head, *family.split(", "), "dropout = 0.1", tail])
    if variant == "lm":
        # It has no source side.
        text = "".join(line for line in text.splitlines(keepends=True) if "source" not in line)
    path.write_text(text)
    return path


def stopped(
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    call: int,
    *arguments: object,
    by: signal.Signals = signal.SIGTERM,
) -> str:
    """What a training says that gets a signal in that call of a function."""
    original, calls = getattr(module, name), itertools.count(1)

    def interrupted(*arguments: Any, **options: Any) -> object:
        if next(calls) == call:
            os.kill(os.getpid(), by)
        return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, interrupted)
        result = invoke(train, *arguments)
    assert result.exit_code == 130, result.output
    return result.output


SOON = ("transformer", "transformer, in fp16", "luong, all sampled", "lm")


@pytest.mark.parametrize("variant", long_but_for(SOON, VARIANTS))
def test_a_stopped_and_resumed_run_ends_with_the_same_numbers(
    toy_folder: Path, tmp_path: Path, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signals are real, and come where a person's do: in the middle of a step, or of a validation."""
    in_a_validation = variant in ("transformer", "bahdanau lstm")
    if VARIANTS[variant] is FP16:
        allow_fp16_anywhere(monkeypatch)
        # So large that the first steps overflow, and that a run which begins with it again is seen.
        monkeypatch.setattr(trainer, "FIRST_LOSS_SCALE", 2.0**22)
    recipe = variant_recipe(toy_folder, tmp_path, variant)
    options = ["--set", "training.max_epochs=2", "training.validate_every_epochs=0.7"]
    options += ["training.batch_tokens=400", *VARIANTS[variant]]
    run(recipe, "--out", tmp_path / "whole", *options)

    arguments = (recipe, "--out", tmp_path / "parts", *options)
    if in_a_validation:
        said = stopped(monkeypatch, trainer, "validate", 1, *arguments, by=signal.SIGINT)
    else:
        said = stopped(monkeypatch, objective, "linear_cross_entropy", 15, *arguments)
    assert "--resume" in said
    assert read_checkpoint(tmp_path / "parts" / "last.safetensors")[2]["epoch"] < 2
    run(recipe, "--out", tmp_path / "parts", *options, "--resume")

    for file in ("last.safetensors", "best.safetensors"):
        whole, _, whole_progress = read_checkpoint(tmp_path / "whole" / file)
        parts, _, parts_progress = read_checkpoint(tmp_path / "parts" / file)
        assert whole.keys() == parts.keys()
        for tensor_name, value in whole.items():
            assert torch.equal(value, parts[tensor_name]), tensor_name
        drop_time = [{**entry, "seconds": 0} for entry in whole_progress["validations"]]
        assert drop_time == [{**entry, "seconds": 0} for entry in parts_progress["validations"]]
        if file == "last.safetensors":
            for key in ("loss_scale", "loss_scale_age"):
                assert whole_progress[key] == parts_progress[key]


def test_a_stop_before_anything_was_saved_promises_no_state(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two signals, the second at once: real ones, in the first step."""

    def interrupted_twice(*_: object, **__: object) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(objective, "linear_cross_entropy", interrupted_twice)
    result = invoke(train, toy_folder / "toy.toml", "--out", tmp_path)
    assert result.exit_code == 130
    assert "Stopped; nothing was saved yet." in result.output
    assert not (tmp_path / "last.safetensors").exists()


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("model.decoder_units=8", "model.decoder_units was 64 and can't become 8"),
        ("training.accumulate_batches=2", "training.accumulate_batches was 1 and can't become 2"),
        ("subword_sampling.source=true", "subword_sampling.source was False"),
        ("training.optimizer=adamw", "training.optimizer was 'adam' and can't become 'adamw'"),
        ("vocabulary.size=90", "vocabulary.size was 150"),
        ("training.batch_tokens=100", "training.batch_tokens was 300 and can't become 100"),
        ("training.seed=9", "training.seed was 1 and can't become 9"),
    ],
)
def test_resuming_with_what_would_change_the_steps_done_is_refused(
    toy_folder: Path, toy_checkpoint: Path, override: str, named: str
) -> None:
    arguments = (toy_folder / "toy.toml", "--out", toy_checkpoint.parent, "--resume", "--set", override)
    assert named in refusal(*arguments)


def test_resuming_nothing_or_another_family_or_on_other_pairs_is_refused(
    toy_folder: Path, toy_checkpoint: Path, tmp_path: Path, begun: Path
) -> None:
    assert "nothing to resume" in refusal(toy_folder / "toy.toml", "--out", tmp_path, "--resume")
    recipe = variant_recipe(toy_folder, tmp_path, "bahdanau gru")
    said = refusal(recipe, "--out", toy_checkpoint.parent, "--resume")
    assert 'the checkpoint is of the family "luong", but the recipe of "bahdanau"' in said
    recipe = variant_recipe(toy_folder, tmp_path, "luong", num_train=3000)
    lines = (tmp_path / "train.en").read_text().splitlines(keepends=True)
    (tmp_path / "train.en").write_text("".join([*lines[:-1], "the dog.\n"]))
    said = refusal(recipe, "--out", begun, "--resume", *TWO_EPOCHS)
    assert "the run was begun on other training pairs (3,000 pairs, checksum " in said


def test_a_warm_up_that_never_ends_is_warned_of(toy_folder: Path, tmp_path: Path) -> None:
    recipe = variant_recipe(toy_folder, tmp_path, "luong")
    said = {
        steps: run(recipe, "--out", tmp_path / steps, *ONE_EPOCH, f"training.warmup_steps={steps}")
        for steps in ("500", "1")
    }
    num_steps = read_checkpoint(tmp_path / "1" / "last.safetensors")[2]["step"]
    warning = f"Warning: training.warmup_steps is 500, but training.max_epochs allows {num_steps} steps"
    assert warning in said["500"]
    assert "training.warmup_steps" not in said["1"]


@pytest.mark.parametrize(
    ("device", "named"),
    [("gpu", 'no device "gpu"'), ("cuda:99", "CUDA devices here"), ("mps", '"mps" is no device to train on')],
)
def test_a_device_that_is_not_there_or_has_no_fp16_is_refused(
    toy_folder: Path, tmp_path: Path, device: str, named: str
) -> None:
    arguments = (toy_folder / "toy.toml", "--out", tmp_path, "--device")
    assert named in refusal(*arguments, device)
    assert not list(tmp_path.iterdir())
    needs_cuda = 'training.precision is "fp16", which needs a CUDA device'
    assert needs_cuda in refusal(*arguments, "cpu", *FP16)


def test_a_diverging_loss_stops_training_and_says_where(toy_folder: Path, tmp_path: Path) -> None:
    steep = ["--set", "training.learning_rate=1e36", "training.warmup_steps=1"]
    said = refusal(toy_folder / "toy.toml", "--out", tmp_path, *steep)
    assert "diverged at step" in said
    assert "no checkpoint was written yet" in said


@pytest.fixture(scope="module")
def finished(toy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of one epoch."""
    folder = tmp_path_factory.mktemp("finished")
    run(toy_folder / "toy.toml", "--out", folder, *ONE_EPOCH)
    return folder


@pytest.fixture
def begun(finished: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(finished, tmp_path / "begun"))


def test_what_changes_on_resuming_is_told(toy_folder: Path, begun: Path) -> None:
    resume = (toy_folder / "toy.toml", "--out", begun, "--resume")
    same = run(*resume, *ONE_EPOCH)
    assert "jumps" not in same
    assert "from here on" not in same
    assert "validation files" not in same
    said = run(*resume, *ONE_EPOCH, "training.ema_decay=0.5", "decoding.length_penalty=2")
    assert "training.ema_decay was" in " ".join(said.split())
    assert "the best model so far was found with other settings" in " ".join(said.split())
    said = run(*resume, *TWO_EPOCHS)
    told = "training.max_epochs was 1 and is 2 from here on: the learning rate jumps"
    assert told in " ".join(said.split())


def contents(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors and the metadata of a file."""
    with safe_open(path, framework="pt") as stream:
        return {name: stream.get_tensor(name) for name in list(stream.keys())}, stream.metadata()


def test_a_loss_that_is_no_number_stops_training_at_the_last_good_checkpoint(
    toy_folder: Path, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begun / "last.safetensors"
    step = read_checkpoint(path)[2]["step"]
    forward, calls = Objective.forward, itertools.count()

    def spoilt(self: Objective, *arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
        minimised, plain = forward(self, *arguments)
        return minimised * (math.nan if next(calls) == 1 else 1.0), plain

    monkeypatch.setattr(Objective, "forward", spoilt)
    said = refusal(toy_folder / "toy.toml", "--out", begun, "--resume", *TWO_EPOCHS)
    assert f"diverged at step {step + 2}, where the loss is nan" in said
    assert f"the last good state, {path}" in said
    assert all(bool(tensor.isfinite().all()) for tensor in contents(path)[0].values())


def test_a_state_that_is_not_whole_or_no_number_or_of_another_version_is_not_resumed(
    toy_folder: Path, begun: Path
) -> None:
    again = (toy_folder / "toy.toml", "--out", begun, "--resume", *TWO_EPOCHS)
    path = begun / "last.safetensors"
    tensors, metadata = contents(path)
    bias = tensors["model.output.bias"].clone()
    save_file(tensors | {"model.output.bias": bias.fill_(math.nan)}, path, metadata)
    said = refusal(*again)
    assert "last.safetensors can't be resumed from: its model.output.bias holds" in said
    assert "best.safetensors" in said
    kept = {name: value for name, value in tensors.items() if not name.startswith("optimizer.")}
    save_file(kept, path, metadata)
    assert "can't be resumed from: the optimizer's state of" in refusal(*again)
    path.write_bytes((begun / "best.safetensors").read_bytes())
    assert "can't be resumed from: it holds a model alone, as best.safetensors does" in refusal(*again)
    progress = json.loads(metadata["progress"]) | {"phase_of_the_moon": 1}
    save_file(tensors, path, metadata | {"progress": json.dumps(progress)})
    assert "another version of the program wrote it" in refusal(*again)


class SeenStep(NamedTuple):
    """What one step did, as seen around it: the loss's scale after it, and whether parameters are others."""

    loss: float
    gradient_norm: float
    scale: float
    changed: bool


@pytest.fixture
def seen_steps(monkeypatch: pytest.MonkeyPatch) -> list[SeenStep]:
    """The steps of trainings from here on."""
    seen: list[SeenStep] = []
    original = trainer.Trainer._step

    def step(self: trainer.Trainer, batches: list[list[int]]) -> StepReport:
        before = [parameter.detach().clone() for parameter in self._model.parameters()]
        report = original(self, batches)
        changed = not all(map(torch.equal, before, self._model.parameters()))
        seen.append(SeenStep(report.loss, report.gradient_norm, self._scaler.get_scale(), changed))
        return report

    monkeypatch.setattr(trainer.Trainer, "_step", step)
    return seen


SHORT_RUN = [
    *("--set", "training.max_epochs=1", "training.batch_tokens=150", "model.dropout=0"),
    *("training.warmup_steps=5", "training.decay=constant", "decoding.max_output_tokens=5"),
]
"""A few tens of steps over `variant_recipe`'s pairs."""


TWO_FAMILIES = pytest.mark.parametrize("family", long_but_for(["transformer"], ["luong", "transformer"]))


@TWO_FAMILIES
def test_a_model_learns_in_fp16_as_in_fp32(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen_steps: list[SeenStep], family: str
) -> None:
    recipe = variant_recipe(toy_folder, tmp_path, family)
    steps = [option.replace("max_epochs=1", "max_epochs=2") for option in SHORT_RUN]
    run(recipe, "--out", tmp_path / "fp32", *steps)
    fp32 = seen_steps.copy()
    seen_steps.clear()
    allow_fp16_anywhere(monkeypatch)
    types: set[torch.dtype] = set()

    def see_type(module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(module, nn.Linear) and module.training:
            types.add(output.dtype)

    hook = register_module_forward_hook(see_type)
    run(recipe, "--out", tmp_path / "fp16", *steps, *FP16)
    hook.remove()
    assert types == {torch.float16}
    assert len(seen_steps) > 20
    assert max(step.loss for step in seen_steps[-5:]) < 0.6 * seen_steps[0].loss
    assert all(step.changed for step in seen_steps)
    for one, other in zip(seen_steps, fp32, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=0.01)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=0.05)


@TWO_FAMILIES
def test_a_step_whose_gradients_overflow_in_fp16_is_skipped_and_halves_the_scale(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen_steps: list[SeenStep], family: str
) -> None:
    recipe = variant_recipe(toy_folder, tmp_path, family)
    allow_fp16_anywhere(monkeypatch)
    forward, calls = Objective.forward, itertools.count(1)

    def steep(self: Objective, *arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
        minimised, plain = forward(self, *arguments)
        return minimised * (1e9 if next(calls) == 10 else 1.0), plain

    monkeypatch.setattr(Objective, "forward", steep)
    run(recipe, "--out", tmp_path / "run", *SHORT_RUN, *FP16)
    assert [step.scale for step in seen_steps[:9]] == [2.0**16] * 9
    assert {step.scale for step in seen_steps[9:]} == {2.0**15}
    assert not math.isfinite(seen_steps[9].gradient_norm)
    assert [number for number, step in enumerate(seen_steps, 1) if not step.changed] == [10]
    assert seen_steps[-1].loss < 0.6 * seen_steps[0].loss


def test_a_run_whose_every_step_overflowed_goes_on(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = variant_recipe(toy_folder, tmp_path, "luong in fp16")
    allow_fp16_anywhere(monkeypatch)
    monkeypatch.setattr(trainer, "FIRST_LOSS_SCALE", 2.0**60)
    options = ["--set", "training.batch_tokens=1200", *FP16]
    arguments = (recipe, "--out", tmp_path / "run", *options)
    stopped(monkeypatch, objective, "linear_cross_entropy", 2, *arguments)
    tensors, _ = contents(tmp_path / "run" / "last.safetensors")
    assert not any(name.startswith("optimizer.") for name in tensors)
    run(*arguments, "--resume", "--set", "training.max_epochs=1")
    assert read_checkpoint(tmp_path / "run" / "last.safetensors")[2]["epoch"] == 1


def test_other_text_in_the_validation_files_is_told_on_resuming(
    toy_folder: Path, tmp_path: Path, begun: Path
) -> None:
    options = ["--out", begun, "--resume", *ONE_EPOCH]
    for side, language in (("source", "de"), ("target", "en")):
        path = tmp_path / f"valid.{language}"
        path.write_text("".join((toy_folder / path.name).read_text().splitlines(keepends=True)[1:]))
        options += ["--set", f"data.valid_{side}={path}"]
    said = " ".join(run(toy_folder / "toy.toml", *options).split())
    assert "the validation files held other pairs (60 pairs" in said


def test_accumulated_batches_give_the_gradients_of_one_large_batch_and_the_last_models_are_kept(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches a step, against batches that are joined beforehand."""
    options = ["--set", "model.dropout=0", "training.max_epochs=1", "training.batch_tokens=600"]
    options += ["training.validate_every_epochs=0.2"]
    recipe = variant_recipe(toy_folder, tmp_path, "luong", num_train=1200)
    accumulated = ("training.accumulate_batches=2", "training.keep_validated=2")
    run(recipe, "--out", tmp_path / "two", *options, *accumulated)
    cut = trainer.Pairs.plan

    def joined(pairs: Pairs, budget: int, *, seed: int | None) -> list[list[int]]:
        plan = cut(pairs, budget, seed=seed)
        if seed is None:
            return plan
        return [[*itertools.chain(*plan[place : place + 2])] for place in range(0, len(plan), 2)]

    monkeypatch.setattr(trainer.Pairs, "plan", joined)
    run(recipe, "--out", tmp_path / "one", *options)
    two, one = (read_checkpoint(tmp_path / name / "last.safetensors")[2] for name in ("two", "one"))
    assert two["step"] == one["step"]
    assert len(two["validations"]) >= 5
    for ours, theirs in zip(two["validations"], one["validations"], strict=True):
        assert ours["perplexity"] == pytest.approx(theirs["perplexity"], rel=1e-4)
    kept = {f"step-{entry['step']}.safetensors" for entry in two["validations"][-2:]}
    assert {path.name for path in (tmp_path / "two").glob("step-*")} == kept


@pytest.mark.parametrize("measure", ["bleu", "loss"])
def test_training_stops_when_validations_no_longer_get_better(
    toy_folder: Path, tmp_path: Path, measure: str
) -> None:
    recipe, out = variant_recipe(toy_folder, tmp_path, "luong", num_train=1000), tmp_path / "run"
    options = ["--set", "training.patience=2", f"training.early_stopping={measure}", "training.ema_decay=0"]
    options += ["training.learning_rate=1e-30", "training.validate_every_epochs=0.1"]
    said = run(recipe, "--out", out, *options)
    assert "2 validations brought no" in said
    validations = load_checkpoint(out / "last.safetensors").progress["validations"]
    assert len(validations) == 3


def test_a_time_limit_ends_training(toy_folder: Path, tmp_path: Path) -> None:
    limits = ["--set", "training.max_minutes=0.001", "training.validate_every_epochs=0.1"]
    run(toy_folder / "toy.toml", "--out", tmp_path, *limits)
    assert (tmp_path / "best.safetensors").exists()
    ended = load_checkpoint(tmp_path / "last.safetensors").progress
    assert ended["epoch"] == 0
    run(toy_folder / "toy.toml", "--out", tmp_path, *limits, "--resume")
    assert load_checkpoint(tmp_path / "last.safetensors").progress["step"] == ended["step"]

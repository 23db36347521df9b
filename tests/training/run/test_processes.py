"""Two processes train what one would, over gloo on this machine's CPU; and what a device is used for."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tests.training.toy_pairs import part_of_toy, refusal, run_training

from dragoman_training import device
from dragoman_training.checkpoint import read_checkpoint
from dragoman_training.device import choose_device, choose_dtype

OPTIONS = [
    *("--set", "training.decay=constant", "training.batch_tokens=600", "training.patience=0"),
    *("training.validate_every_epochs=0.2", "training.validate_sentences=8", "decoding.beam_size=1"),
]
PENALISED = (
    '{family = "structured", annotations = 3, annotation_units = 16, embedding_size = 32, '
    "encoder_layers = 1, encoder_units = 32, decoder_units = 32, dropout = 0.1}"
)
"""A model whose loss is not the cross-entropy alone."""


def run_two(*arguments: object) -> str:
    """Trains under torchrun in two processes, which warn of nothing."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
            *("-m", "dragoman_training", *map(str, arguments)),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


@pytest.mark.long
def test_two_processes_have_the_loss_curve_of_one_with_as_large_steps(
    toy_folder: Path, tmp_path: Path
) -> None:
    """Also when they are stopped after an epoch and resumed.

    Dropout is on: what it drops does not depend on the process. Sums in another order leave a difference of
    float32's last places, which Adam makes larger: perplexities agree to 0.1%.
    """
    recipe = toy_folder / "toy.toml"
    one = ["--set", "training.accumulate_batches=2", "training.max_epochs=2"]
    run_training(recipe, "--out", tmp_path / "one", *OPTIONS, *one)
    two = ["--out", tmp_path / "two", "--device", "cpu", *OPTIONS]
    said = run_two(recipe, *two, "--set", "training.max_epochs=1")
    assert said.count("Done:") == 1
    assert "the number of processes was 2 and can't become 1" in refusal(recipe, *two, "--resume")
    run_two(recipe, *two, "--set", "training.max_epochs=2", "--resume")

    ours, theirs = (read_checkpoint(tmp_path / name / "last.safetensors") for name in ("two", "one"))
    assert ours[2]["step"] == theirs[2]["step"]
    found, expected = (
        {one["step"]: one["perplexity"] for one in each[2]["validations"]} for each in (ours, theirs)
    )
    # The run that was stopped also validated then.
    assert len(expected) >= 10
    assert expected[ours[2]["step"]] < 0.5 * expected[min(expected)]
    assert {step: found[step] for step in expected} == pytest.approx(expected, rel=1e-3)
    for name, value in theirs[0].items():
        if name.startswith("model."):
            torch.testing.assert_close(ours[0][name], value, rtol=0.02, atol=2e-3, msg=name)


@pytest.mark.long
def test_two_processes_draw_the_same_segmentations_and_add_up_a_penalty(
    toy_folder: Path, tmp_path: Path
) -> None:
    """With the same segmentations they cut the same batches, in each epoch anew."""
    recipe = part_of_toy(toy_folder, tmp_path, 300, 8)
    options = [*OPTIONS, "vocabulary.model_type=unigram", "vocabulary.size=60", f"model={PENALISED}"]
    options += ["subword_sampling.source=true", "subword_sampling.target=true"]
    options += ["training.max_epochs=2", "training.warmup_steps=5"]
    run_training(recipe, "--out", tmp_path / "one", *options, "training.accumulate_batches=2")
    run_two(recipe, "--out", tmp_path / "two", "--device", "cpu", *options)
    ours, theirs = (read_checkpoint(tmp_path / name / "last.safetensors") for name in ("two", "one"))
    assert ours[2]["step"] == theirs[2]["step"]
    found, expected = ([each["perplexity"] for each in one[2]["validations"]] for one in (ours, theirs))
    assert found == pytest.approx(expected, rel=1e-3)
    # What the penalty moves: one that a process left out would hardly show in the perplexity.
    queries = "model.annotation.queries"
    torch.testing.assert_close(ours[0][queries], theirs[0][queries], rtol=0, atol=1e-3)


def run_on_two_machines(folders: Sequence[Path], *arguments: object) -> list[str]:
    """Trains in two processes, each in a folder of its own, as torchrun starts them on two machines."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "dragoman_training", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            | {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
        )
        for rank, folder in enumerate(folders)
    ]
    said = [process.communicate(timeout=300)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    return said


@pytest.mark.long
def test_machines_share_nothing_but_a_copy_of_the_corpus(toy_folder: Path, tmp_path: Path) -> None:
    """The checkpoint is the first one's alone, and the run goes on from it."""
    machines = [tmp_path / "one", tmp_path / "other"]
    for machine in machines:
        machine.mkdir()
        part_of_toy(toy_folder, machine, 120, 4)
    options = ["toy.toml", "--out", "run", "--device", "cpu", *OPTIONS, "--set", "training.warmup_steps=2"]
    run_on_two_machines(machines, *options, "--set", "training.max_epochs=1")
    assert (machines[0] / "run" / "last.safetensors").exists()
    assert not (machines[1] / "run").exists()
    first, other = run_on_two_machines(machines, *options, "--set", "training.max_epochs=2", "--resume")
    assert "Done:" in first
    assert "Done:" not in other
    assert read_checkpoint(machines[0] / "run" / "last.safetensors")[2]["epoch"] == 2


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["toy.toml", "--set", "training.max_epochs=1", "training.batch_tokens=3000"], 0, "Done:"),
        (["toy.toml", "--set", "vocabulary.size=3"], 1, "Error: "),
        (["toy.toml", "more"], 2, "'more' is no KEY=VALUE"),
    ],
)
def test_a_process_of_many_leaves_without_taking_python_down(
    toy_folder: Path, tmp_path: Path, arguments: list[str], status: int, said: str
) -> None:
    """With its status and all it said: what runs then is where PyTorch's threads would abort it."""
    code = (
        "import atexit, os, runpy; atexit.register(os.abort); "
        "runpy.run_module('dragoman_training', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        cwd=toy_folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"},
        timeout=300,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_attention_on_a_gpu_is_kept_from_plans_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("cpu")
    assert torch.backends.cuda.cudnn_sdp_enabled()
    choose_device("cuda")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.parametrize(
    ("amx", "avx512", "amd", "expected"),
    [
        (True, True, False, torch.bfloat16),
        (False, True, True, torch.bfloat16),
        (False, True, False, torch.float32),
        (False, False, True, torch.float32),
    ],
)
def test_auto_is_bf16_on_cpus_that_gain_by_it(
    monkeypatch: pytest.MonkeyPatch, amx: bool, avx512: bool, amd: bool, expected: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(device, "_is_amd", lambda: amd)

    assert choose_dtype("auto", torch.device("cpu")) == expected

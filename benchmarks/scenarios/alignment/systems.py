"""What aligns: our models through their command, and other toolkits in environments of their own."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

import numpy as np

from benchmarks.measuring import MeasurementError
from benchmarks.peers import make_environment
from benchmarks.scenarios.alignment.sets import Task
from dragoman_training.alignment.aligner import load_aligner
from dragoman_training.alignment.links import Link, Matrix, Method, read_links, symmetrize
from dragoman_training.data.files import read_pairs

METHODS: tuple[Method, ...] = ("forward", "backward", "grow-diag-final-and", "intersection")
Alignments = list[frozenset[Link]]
_OURS = "from dragoman_training.alignment.cli import align; align()"


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a process took."""

    seconds: float
    cpu_seconds: float
    """The seconds of all cores: what another load of the machine changes least."""
    mebibytes: float
    """The memory at its peak."""


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """Links of the scored sentence pairs, and what the training took."""

    links: Mapping[Method, Alignments]
    usage: Usage


class System(Protocol):
    """Aligns a task, with a folder for its files. Raises MeasurementError."""

    def __call__(self, task: Task, folder: Path) -> Aligned:
        """Trains and links."""
        ...


def measure(command: Sequence[str]) -> Usage:
    """Runs a process to its end. Raises MeasurementError with what it said where it fails."""
    began = time.perf_counter()
    with TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise MeasurementError(f"{' '.join(command)} failed:\n{errors.read()[-1500:]}")
    return Usage(
        seconds=time.perf_counter() - began,
        cpu_seconds=used.ru_utime + used.ru_stime,
        # Linux counts in KiB, macOS in bytes.
        mebibytes=used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
    )


def ours(model: str, task: Task, folder: Path) -> Aligned:
    """`dragoman align train`, as it is called by users."""
    out = folder / f"{task.name}-{model}"
    text = ("--source", str(task.source), "--target", str(task.target))
    usage = measure([sys.executable, "-c", _OURS, "train", *text, "--model", model, "--out", str(out)])
    aligner = load_aligner(out)
    pairs = [(one.split(), other.split()) for one, other in read_pairs(task.source, task.target)]
    scored = pairs[: len(task.gold)]
    links = {method: [_pairs(matrix) for matrix in aligner.align(scored, method)] for method in METHODS}
    return Aligned(links=links, usage=usage)


def eflomal(task: Task, folder: Path) -> Aligned:
    """Östling & Tiedemann 2016: Gibbs sampling of the HMM with fertility, in C."""
    python = make_environment("eflomal", ("eflomal==2.0.0",))
    forward, backward = folder / f"{task.name}.forward", folder / f"{task.name}.backward"
    command = [str(python), str(python.with_name("eflomal-align")), "-m", "3", "--overwrite"]
    usage = measure(
        [*command, "-s", str(task.source), "-t", str(task.target), "-f", str(forward), "-r", str(backward)]
    )
    return Aligned(links=_symmetrized(task, forward, backward), usage=usage)


PEERS: dict[str, System] = {"eflomal": eflomal}
"""The systems by name."""


def our_system(model: str) -> System:
    """One of our models."""
    return partial(ours, model)


def _symmetrized(task: Task, forward: Path, backward: Path) -> dict[Method, Alignments]:
    scored = list(read_pairs(task.source, task.target))[: len(task.gold)]
    # The files hold the links of the whole text.
    both = zip(read_links(forward), read_links(backward), strict=True)
    matrices = [
        (_matrix(one, pair), _matrix(other, pair)) for (one, other), pair in zip(both, scored, strict=False)
    ]
    return {method: [_pairs(symmetrize(one, other, method)) for one, other in matrices] for method in METHODS}


def _matrix(links: frozenset[Link], pair: tuple[str, str]) -> Matrix:
    matrix = np.zeros([len(side.split()) for side in pair], bool)
    for link in links:
        matrix[link] = True
    return matrix


def _pairs(matrix: Matrix) -> frozenset[Link]:
    return frozenset(zip(*(axis.tolist() for axis in matrix.nonzero()), strict=True))

"""Models 1 and 2 beside NLTK's, which are those of the textbook: the same links, how much sooner?"""

import subprocess
import time
from pathlib import Path

from benchmarks.alignment.sets import Task
from benchmarks.environment import PeerMissingError, make_environment
from benchmarks.report import Row
from dragoman_training.alignment.chain import ModelName
from dragoman_training.alignment.corpus.text import WordRule, read_pairs
from dragoman_training.alignment.lexicon import Smoothing
from dragoman_training.alignment.output.pharaoh import read_links
from dragoman_training.alignment.output.scoring import score_links
from dragoman_training.alignment.training import TrainingOptions, train_aligner

ITERATIONS = 5
CASES: list[tuple[ModelName, tuple[int, ...]]] = [
    ("ibm1", (ITERATIONS,)),
    # NLTK trains model 1 twice as often before.
    ("ibm2", (2 * ITERATIONS, ITERATIONS)),
]


def compare_with_nltk(task: Task, folder: Path) -> list[Row]:
    """A row for each model; ours trains both directions in its time, NLTK's one. Raises PeerMissingError."""
    python = make_environment("nltk", ("nltk==3.10.4", "numpy"))
    script = Path(__file__).with_name("nltk_worker.py")
    pairs = [(one.split(), other.split()) for one, other in read_pairs(task.source, task.target)]
    rows: list[Row] = []
    for model, iterations in CASES:
        options = TrainingOptions(
            model=model, iterations=iterations, agreement=False, smoothing=Smoothing(), spelling=0
        )
        # numba compiles in the first call.
        train_aligner(pairs[:10], options, WordRule())
        began = time.perf_counter()
        aligner = train_aligner(pairs, options, WordRule())
        seconds = time.perf_counter() - began
        links = [
            frozenset(zip(*(axis.tolist() for axis in matrix.nonzero()), strict=True))
            for matrix in aligner.align(pairs[: len(task.gold)], "forward")
        ]
        out = folder / f"{task.name}-{model}.nltk"
        command = [str(python), str(script), str(task.source), str(task.target), str(out), model]
        done = subprocess.run([*command, str(ITERATIONS)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise PeerMissingError(f"NLTK failed:\n{done.stderr[-1500:]}")
        theirs = read_links(out)[: len(task.gold)]
        rows.append(
            {
                "set": task.name,
                "model": model,
                "num_pairs": task.num_pairs,
                "aer": 100 * score_links(links, task.gold).aer,
                "nltk_aer": 100 * score_links(theirs, task.gold).aer,
                "seconds": seconds,
                "nltk_seconds": float(done.stdout),
                "ratio": float(done.stdout) / seconds,
            }
        )
    return rows

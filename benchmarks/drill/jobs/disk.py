"""A job whose disk is full: at whichever byte, it says so, and goes on to the same bytes with room."""

import random
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.drill.drill import Drill
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server

NUM_LINES = 200
LONGEST_SECONDS = 300


def run(drill: Drill) -> None:
    """No file of the job may grow beyond so many bytes, at random; then the same command has room."""
    generator = random.Random(1)
    source, calm = drill.folder / "in.txt", drill.folder / "calm.txt"
    source.write_text("".join(f"{line}\n" for line in make_sentences(NUM_LINES)))
    with Server("disk", drill.models, drill.folder) as server:
        first = _job(drill, server, source, calm, None)
        drill.check("the job is done where there is room", first.returncode == 0, first.stderr[-200:])
        expected = calm.read_bytes()
        until = time.monotonic() + drill.seconds
        tried, wrong = 0, []
        while not tried or time.monotonic() < until:
            tried += 1
            output = drill.folder / f"full-{tried}.txt"
            limit = generator.randrange(1, len(expected))
            full = _job(drill, server, source, output, limit)
            is_told = full.returncode == 1 and output.name in full.stderr and "Traceback" not in full.stderr
            if not is_told:
                wrong.append(f"{limit} bytes: exit {full.returncode}, {full.stderr[-300:]}")
            if output.exists():
                wrong.append(f"{limit} bytes: an output that is not complete has its name")
            again = _job(drill, server, source, output, None)
            if again.returncode != 0 or output.read_bytes() != expected:
                wrong.append(f"{limit} bytes: with room exit {again.returncode}, {again.stderr[-300:]}")
            left = sorted(path.name for path in drill.folder.glob(f"{output.name}.*"))
            if left:
                wrong.append(f"{limit} bytes: left behind {left}")
    drill.figure("jobs that ran out of room", tried)
    promise = "a job without room says which file, and goes on to the same bytes"
    drill.check(promise, not wrong, wrong[:3] or f"{tried} tried")


def _job(
    drill: Drill, server: Server, source: Path, output: Path, most_bytes: int | None
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "dragoman", "translate-file", "--server", server.address]
    command += ["--from", drill.source, "--to", drill.target, "--beam", "1", str(source), str(output)]
    limit = None
    if most_bytes is not None:
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return subprocess.run(
        command, preexec_fn=limit, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )

"""`python -m benchmarks.corpora`: memory of training and the time to its first step, by pairs."""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from benchmarks.corpora.pairs import write_pairs
from benchmarks.corpora.training import FIRST_STEP
from benchmarks.machine import describe_machine
from benchmarks.options import CONTEXT, command_line, json_option, markdown_option, whole_numbers
from benchmarks.report import Column, Report, Table
from dragoman_server.sizing.process_memory import memory_of

GIB = 2**30
FEW_PAIRS = 10_000
"""Those of a training whose memory is the model's and the program's."""
LOOK_EVERY_SECONDS = 0.3
RECIPE = """
name = "corpora"
[data]
source_language = "de"
target_language = "en"
train_source = "train.de"
train_target = "train.en"
valid_source = "valid.de"
valid_target = "valid.en"
[vocabulary]
size = {vocabulary}
[model]
family = "transformer"
width = 128
heads = 4
feed_forward = 256
encoder_layers = 1
decoder_layers = 1
[training]
precision = "fp32"
threads = 1
validate_sentences = 2
[decoding]
beam_size = 1
max_output_tokens = 5
"""
COLUMNS = (
    Column(key="pairs", header="pairs", format=",d"),
    Column(key="start", header="start"),
    Column(key="seconds", header="s to the first step", format=",.1f"),
    Column(key="processor_seconds", header="s of a core", format=",.1f"),
    Column(key="peak", header="peak PSS, GiB", format=".2f"),
    Column(key="beside", header="beside the model", format=".2f"),
    Column(key="own", header="of it no files", format=".2f"),
    Column(key="disk", header="on disk, GiB", format=".2f"),
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was seen of a training."""

    seconds: float
    """From its start to the end of its first step."""
    processor_seconds: float
    """Of all cores until then, of the process that leads and those that tokenized for it."""
    peak: int
    """Most bytes of all its processes (PSS)."""
    own: int
    """Most bytes that are no files."""


@click.command(context_settings=CONTEXT)
@click.option(
    "--pairs",
    default="2000000,20000000",
    show_default=True,
    callback=whole_numbers,
    help="How many, one after the other.",
)
@click.option(
    "--data",
    default=Path("data/tatoeba-de-en"),
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with train.de, train.en, val.de and val.en, which pairs are made of.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where pairs and token ids are kept meanwhile.  [default: a temporary folder]",
)
@click.option(
    "--vocabulary",
    default=8000,
    show_default=True,
    type=click.IntRange(min=8),
    help="Pieces of the vocabulary.",
)
@click.option(
    "--minutes",
    default=0.5,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="How long each training goes on.",
)
@click.option(
    "--processes",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Processes that train together, under torchrun.",
)
@json_option
@markdown_option
def main(
    pairs: list[int],
    data: Path,
    folder: Path | None,
    vocabulary: int,
    minutes: float,
    processes: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Measure what a corpus' size costs: memory, and time until training begins.

    Each corpus is trained on twice: a first time, which learns a vocabulary and tokenizes, and a second time,
    which finds both. A training on few pairs is what memory is compared with. Linux only.
    """
    console = Console(stderr=True, highlight=False)
    machine = describe_machine(("torch", "numpy", "sentencepiece"))
    rows: list[dict[str, object]] = []
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        base = 0, 0
        for count in [FEW_PAIRS, *pairs]:
            here = Path(temporary) / str(count)
            here.mkdir()
            for split in ("de", "en"):
                (here / f"valid.{split}").write_bytes((data / f"val.{split}").read_bytes())
            console.print(f"Making {count:,} pairs …")
            write_pairs(data / "train.de", data / "train.en", count, (here / "train.de", here / "train.en"))
            (here / "recipe.toml").write_text(RECIPE.format(vocabulary=vocabulary))
            for start in ("first", "second"):
                run = train(here, start, minutes, processes)
                console.print(f"{count:,} pairs, {start} start: {run}")
                if count == FEW_PAIRS:
                    base = run.peak, run.own
                row: dict[str, object] = {
                    "pairs": count,
                    "start": start,
                    "seconds": run.seconds,
                    "processor_seconds": run.processor_seconds,
                    "peak": run.peak / GIB,
                }
                size = sum(path.stat().st_size for path in (here / "corpus-cache").rglob("*"))
                row |= {"beside": (run.peak - base[0]) / GIB, "own": (run.own - base[1]) / GIB}
                rows.append(row | {"disk": size / GIB})
            for path in here.glob("train.*"):
                path.unlink()
    report = Report(
        command=command_line("benchmarks.corpora"),
        results={"machine": machine, "minutes": minutes, "processes": processes, "rows": rows},
        tables=[
            Table(
                title=f"Training on large corpora, {processes} process{'es' if processes > 1 else ''}",
                columns=COLUMNS,
                rows=rows,
                note=f"Beside the model: more than with {FEW_PAIRS:,} pairs. What is of files the system can "
                "take back.",
            )
        ],
    )
    report.publish(Console(), json_path=json_path, markdown_path=markdown_path)


def train(folder: Path, start: str, minutes: float, processes: int) -> Run:
    """A training in processes of its own, watched. Raises ClickException where it fails."""
    launcher = ["-m"]
    if processes > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m"]
    options = [f"training.max_minutes={minutes}", "--device", "cpu", "--out", str(folder / start)]
    log = folder / f"{start}.log"
    began = time.time()
    with log.open("w") as stream:
        running = subprocess.Popen(
            [sys.executable, *launcher, "benchmarks.corpora.training", str(folder / "recipe.toml"), *options],
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
        peak = own = 0
        try:
            while running.poll() is None:
                memory = memory_of(running.pid)
                peak, own = max(peak, memory.total), max(own, memory.own)
                time.sleep(LOOK_EVERY_SECONDS)
        finally:
            running.terminate()
            running.wait()
    said = log.read_text()
    found = [line for line in said.splitlines() if line.startswith(FIRST_STEP)]
    if running.returncode or not found:
        raise click.ClickException(f"training failed:\n{said[-3000:]}")
    moment, busy = map(float, found[0].removeprefix(FIRST_STEP).split())
    return Run(seconds=moment - began, processor_seconds=busy, peak=peak, own=own)


if __name__ == "__main__":
    main()

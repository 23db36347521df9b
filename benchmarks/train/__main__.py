"""`python -m benchmarks.train`: how many target tokens a second, ours and JoeyNMT's, in turn in one run."""

import tempfile
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from benchmarks.environment import PeerMissingError
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave, ratio, summarize
from benchmarks.options import CONTEXT, command_line, json_option, markdown_option, repeats_option
from benchmarks.report import Column, Report, Table
from benchmarks.train import joeynmt, ours
from benchmarks.train.shape import Material, Shape, Timing

AIM = 1.5
OURS, PEER, SORTED_PEER = "dragoman", "JoeyNMT 2.3.0", "JoeyNMT 2.3.0, sorted"
COLUMNS = (
    Column(key="system", header="system"),
    Column(key="parameters", header="parameters", format=",d"),
    Column(key="tokens_per_second", header="target tokens/s", format=",.0f"),
    Column(key="spread", header="spread", format=".0%"),
    Column(key="ratio", header="ratio", format=".2f"),
)


@click.command(context_settings=CONTEXT)
@click.option(
    "--data",
    default=Path("data/multi30k"),
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with train.de, train.en, val.de and val.en.",
)
@click.option(
    "--vocabulary",
    default=6000,
    show_default=True,
    type=click.IntRange(min=100),
    help="Pieces of the vocabulary.",
)
@click.option(
    "--steps",
    default=30,
    show_default=True,
    type=click.IntRange(min=1),
    help="Steps that are timed, after as many others.",
)
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="CPU threads.")
@repeats_option
@json_option
@markdown_option
def main(
    data: Path,
    vocabulary: int,
    steps: int,
    threads: int,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Measure the speed of training on the CPU beside another toolkit.

    Both train the same two-layer LSTM with input feeding and Luong's attention (`general`), on the same
    pairs, in the same vocabulary, with batches of as many padded tokens. JoeyNMT makes batches of whatever
    pairs come next, so half of one can be padding; "sorted" is JoeyNMT given pairs in an order of which that
    makes batches of one length, as ours are. It is installed into .venv-peers the first time.
    """
    console = Console(stderr=True, highlight=False)
    console.print("Installing JoeyNMT, the first time …")
    try:
        python = joeynmt.install()
    except PeerMissingError as error:
        raise click.ClickException(str(error)) from error
    shape = Shape()
    with tempfile.TemporaryDirectory() as folder:
        material = Material(
            folder=Path(folder),
            train_source=data / "train.de",
            train_target=data / "train.en",
            valid_source=data / "val.de",
            valid_target=data / "val.en",
            tokenizer=Path(folder) / "shared.spm",
            warmup_steps=steps,
            steps=steps,
            threads=threads,
        )
        ours.write_tokenizer(material, vocabulary)

        def on_done(repeat: int, system: str, timing: Timing) -> None:
            console.print(f"{repeat} of {repeats}: {system}: {timing.tokens_per_second:,.0f} tokens/s")

        timings = interleave(
            {
                OURS: partial(ours.measure, shape, material),
                PEER: partial(joeynmt.measure, python, shape, material, sorts=False),
                SORTED_PEER: partial(joeynmt.measure, python, shape, material, sorts=True),
            },
            repeats,
            on_done,
        )
    speeds = {name: summarize([each.tokens_per_second for each in runs]) for name, runs in timings.items()}
    ratios = {name: ratio(speed.values, speeds[PEER].values) for name, speed in speeds.items()}
    rows = [
        {
            "system": name,
            "parameters": runs[0].parameters,
            "tokens_per_second": speeds[name].median,
            "spread": speeds[name].spread,
            "ratio": ratios[name].median,
            "ratio_spread": ratios[name].spread,
        }
        for name, runs in timings.items()
    ]
    report = Report(
        command=command_line("benchmarks.train"),
        results={
            "machine": describe_machine(("torch", "numpy")),
            "shape": vars(shape),
            "threads": threads,
            "steps": steps,
            "rows": rows,
            "aim": AIM,
        },
        tables=[
            Table(
                title="Training on the CPU, fp32",
                columns=COLUMNS,
                rows=rows,
                note=f"Ratio to {PEER}, the median of the repeats' own; the aim is {AIM:g}, which is "
                f"{'met' if ratios[OURS].median >= AIM else 'missed'}. Speed counts no padding: "
                "sorted, JoeyNMT's batches have as little of it as ours, and the rest is the trainers' own. "
                "Ours has more parameters because it projects the encoder's end for each of the decoder's "
                "states and cells, JoeyNMT once for all of them.",
            )
        ],
    )
    report.publish(Console(), json_path=json_path, markdown_path=markdown_path)


if __name__ == "__main__":
    main()

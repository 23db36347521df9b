"""`python -m benchmarks.policy`: options in, a table out."""

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from benchmarks.options import CONTEXT, command_line, json_option, markdown_option
from benchmarks.policy.simulation import Outcome, Simulation
from benchmarks.policy.workload import read_lengths, workloads
from benchmarks.progress import Progress
from benchmarks.report import Column, Report, Row, Table
from dragoman_server.engine.request import Priority


@click.command(context_settings=CONTEXT)
@click.option(
    "--seeds",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="How often each workload is run.",
)
@click.option("--only", default="", help="Only the workloads with this in their names.")
@json_option
@markdown_option
def policy(seeds: int, only: str, json_path: Path | None, markdown_path: Path | None) -> None:
    """Show what the engine's rules of scheduling make of several workloads, in virtual time.

    Nothing is decoded: what turns take is added up from costs that were measured once. So the figures are the
    same on every machine, and change with the rules alone.

    \b
      python -m benchmarks.policy --only "beside a job"
    """
    lengths = read_lengths()
    chosen = [workload for workload in workloads() if only in workload.name]
    if not chosen:
        names = ", ".join(workload.name for workload in workloads())
        raise click.BadParameter(f"none has {only!r} in its name; there are: {names}", param_hint="'--only'")
    progress = Progress(len(chosen) * seeds)
    rows = []
    for workload in chosen:
        outcomes = []
        for seed in range(1, seeds + 1):
            outcomes.append(Simulation(workload, lengths, seed).run())
            progress.advance(f"{workload.name}, seed {seed}")
        rows.append({"workload": workload.name, **_figures(outcomes)})
    Report(
        command=command_line("benchmarks.policy"),
        results={"seeds": seeds, "rows": rows},
        tables=[_table(rows)],
    ).publish(Console(highlight=False), json_path=json_path, markdown_path=markdown_path)


def _figures(outcomes: Sequence[Outcome]) -> dict[str, float | None]:
    """Medians over runs."""

    def percentile(share: int) -> float | None:
        of_runs = [np.percentile(each.call_seconds, share) for each in outcomes if each.call_seconds]
        return 1000 * float(np.median(of_runs)) if of_runs else None

    def rate(priority: Priority) -> float | None:
        of_runs = [each.num_answered[priority] / each.seconds for each in outcomes]
        return float(np.median(of_runs)) or None

    return {
        "p50": percentile(50),
        "p95": percentile(95),
        "p99": percentile(99),
        "max": percentile(100),
        "callers_per_second": rate(Priority.INTERACTIVE),
        "bulk_per_second": rate(Priority.BULK),
        "sentences_per_encoding": float(np.median([o.num_encoded / o.num_encodings for o in outcomes])),
    }


def _table(rows: Sequence[Row]) -> Table:
    return Table(
        title="Rules of scheduling in virtual time",
        columns=[
            Column(key="workload", header="workload"),
            Column(key="p50", header="p50, ms", format=".0f"),
            Column(key="p95", header="p95, ms", format=".0f"),
            Column(key="p99", header="p99, ms", format=".0f"),
            Column(key="max", header="slowest, ms", format=".0f"),
            Column(key="callers_per_second", header="callers' sentences/s", format=".1f"),
            Column(key="bulk_per_second", header="bulk/s", format=".1f"),
            Column(key="sentences_per_encoding", header="sentences an encoding", format=".1f"),
        ],
        rows=rows,
        note="A call's time runs from its arrival to its last answer. Medians of the runs.",
    )


if __name__ == "__main__":
    policy()

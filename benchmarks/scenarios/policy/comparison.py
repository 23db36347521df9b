"""Every workload, run several times: the medians of what its callers waited and of what was done."""

from collections.abc import Sequence

import click
import numpy as np

from benchmarks.harness import Found, option, scenario
from benchmarks.measuring import say
from benchmarks.report import Table
from benchmarks.scenarios.policy.simulation import Outcome, Simulation
from benchmarks.scenarios.policy.workload import read_lengths, workloads
from dragoman_server.engine.request import Priority


@scenario(
    option("--seeds", 5, "How often each workload is run."),
    option("--only", "", "Only the workloads with this in their names."),
)
def command(*, seeds: int, only: str) -> Found:
    """Show what the engine's rules of scheduling make of several workloads, in virtual time.

    Nothing is decoded: what turns take is added up from costs that were measured once. So the figures are the
    same on every machine, and change with the rules alone.

    \b
      python -m benchmarks policy --only "beside a job"
    """
    lengths = read_lengths()
    chosen = [workload for workload in workloads() if only in workload.name]
    if not chosen:
        names = ", ".join(workload.name for workload in workloads())
        raise click.BadParameter(f"none has {only!r} in its name; there are: {names}", param_hint="'--only'")
    rows = []
    for workload in chosen:
        say(workload.name)
        outcomes = [Simulation(workload, lengths, seed).run() for seed in range(1, seeds + 1)]
        rows.append({"workload": workload.name, **_figures(outcomes)})
    table = Table(
        name="rows",
        title="Rules of scheduling in virtual time",
        columns=[
            ("workload", "workload"),
            ("p50", "p50, ms", ".0f"),
            ("p95", "p95, ms", ".0f"),
            ("p99", "p99, ms", ".0f"),
            ("max", "slowest, ms", ".0f"),
            ("callers_per_second", "callers' sentences/s", ".1f"),
            ("bulk_per_second", "bulk/s", ".1f"),
            ("sentences_per_encoding", "sentences an encoding", ".1f"),
        ],
        rows=rows,
        note="A call's time runs from its arrival to its last answer. Medians of the runs.",
    )
    return Found(tables=[table], facts={"seeds": seeds})


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

"""The tables of `benchmarks.serve`, and the aims beside what was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measuring import Summary, ratio
from benchmarks.report import Column, Row, Table
from benchmarks.serve.bulk import WINDOW
from benchmarks.serve.load import FILE_CALL_TEXTS
from benchmarks.serve.measurement import CONTINUOUS
from dragoman_server.config import EngineConfig

_AIMED_LOAD = 0.75
_BULK_BOUND = EngineConfig.max_bulk_slowdown
"""How many times what it is alone an interactive caller's 99th percentile may be beside batch jobs."""


def capacity_table(capacity: Mapping[str, Summary], total: int) -> Table:
    """Throughput at saturation."""
    rows = [
        {"case": case, "rate": summary.median, "spread": summary.spread} for case, summary in capacity.items()
    ]
    return Table(
        title=f"Throughput at saturation, {total:,} sentences",
        columns=(
            Column(key="case", header="engine"),
            Column(key="rate", header="sentences/s", format=",.1f"),
            Column(key="spread", header="spread", format=".0%"),
        ),
        rows=rows,
        note="continuous and request: the server, over gRPC, one sentence a call. file: the continuous one, "
        f"all sentences at once in calls of {FILE_CALL_TEXTS}. offline: the continuous engine alone, all "
        "sentences at once, with the same options, on the same cores, from text to text. job: the continuous "
        f"one, a TranslateStream alone with {WINDOW} sentences under way.",
    )


def latency_table(rows: Sequence[Row], seconds: float, objective_ms: float) -> Table:
    """Latency by load."""
    return Table(
        title=f"Open-loop Poisson load, {seconds:g} s a run",
        columns=(
            Column(key="mode", header="mode"),
            Column(key="load", header="load", format=".0%"),
            Column(key="arrivals_per_second", header="arrivals/s", format=",.1f"),
            Column(key="p50_ms", header="p50 ms", format=",.0f"),
            Column(key="p95_ms", header="p95 ms", format=",.0f"),
            Column(key="p99_ms", header="p99 ms", format=",.0f"),
            Column(key="p99_spread", header="spread of p99", format=".0%"),
            Column(key="goodput", header="goodput/s", format=",.1f"),
            Column(key="failed", header="failed", format="d"),
            Column(key="mean_rows", header="rows a step", format=".1f"),
            Column(key="server_cores", header="server cores", format=".2f"),
            Column(key="generator_cores", header="generator cores", format=".2f"),
        ),
        rows=rows,
        note="Load: arrivals as a share of the capacity of continuous batching, for both modes: the same "
        "callers come to both. Latency counts from when a sentence was to arrive. Goodput: answers within "
        f"{objective_ms:g} ms.",
    )


def bulk_table(rows: Sequence[Row], load: float, seconds: float) -> Table:
    """Latency beside batch jobs."""
    return Table(
        title=f"Interactive callers at {load:.0%} load, alone and beside batch jobs, {seconds:g} s a run",
        columns=(
            Column(key="streams", header="batch jobs", format="d"),
            Column(key="arrivals_per_second", header="arrivals/s", format=",.1f"),
            Column(key="p50_ms", header="p50 ms", format=",.0f"),
            Column(key="p95_ms", header="p95 ms", format=",.0f"),
            Column(key="p99_ms", header="p99 ms", format=",.0f"),
            Column(key="p99_spread", header="spread of p99", format=".0%"),
            Column(key="failed", header="failed", format="d"),
            Column(key="bulk_per_second", header="batch sentences/s", format=",.1f"),
            Column(key="mean_rows", header="rows a step", format=".1f"),
        ),
        rows=rows,
        note=f"Continuous batching. Each job is a TranslateStream with {WINDOW} sentences under way.",
    )


def aims(
    capacity: Mapping[str, Summary],
    rows: Sequence[Mapping[str, Any]],
    beside_bulk: Sequence[Mapping[str, Any]],
    served_over_offline: Summary,
    file_over_offline: Summary,
    job_over_offline: Summary,
) -> list[dict[str, object]]:
    """The aims for which there are figures."""
    found: list[dict[str, object]] = []
    p99 = {row["mode"]: row["p99_ms_repeats"] for row in rows if row["load"] == _AIMED_LOAD}
    if p99:
        share = ratio(p99[CONTINUOUS], p99["request"])
        found.append(_aim("p99 of continuous over request at 75%", share, "at most 0.5", share.median <= 0.5))
    gain = ratio(capacity[CONTINUOUS].values, capacity["request"].values)
    found.append(_aim("capacity of continuous over request", gain, "at least 1.3", gain.median >= 1.3))
    alone, *beside = beside_bulk
    for row in beside:
        share = ratio(row["p99_ms_repeats"], alone["p99_ms_repeats"])
        name = f"p99 of callers beside {row['streams']} batch jobs over alone"
        found.append(_aim(name, share, f"at most {_BULK_BOUND:g}", share.median <= _BULK_BOUND))
    for name, share in (
        ("served over offline throughput, a sentence a call", served_over_offline),
        (f"served over offline throughput, {FILE_CALL_TEXTS} sentences a call", file_over_offline),
        ("served over offline throughput, a batch job", job_over_offline),
    ):
        found.append(_aim(name, share, "at least 0.85", share.median >= 0.85))
    return found


def aim_table(found: Sequence[Row]) -> Table:
    """The aims beside what was measured."""
    return Table(
        title="Aims",
        columns=(
            Column(key="name", header="ratio"),
            Column(key="value", header="measured", format=".2f"),
            Column(key="spread", header="spread", format=".0%"),
            Column(key="aim", header="aim"),
            Column(key="reached", header="reached"),
        ),
        rows=found,
        note="Each ratio is the median of the repeats' own.",
    )


def _aim(name: str, measured: Summary, aim: str, reached: bool) -> dict[str, object]:
    return {
        "name": name,
        "value": measured.median,
        "spread": measured.spread,
        "aim": aim,
        "reached": reached,
    }

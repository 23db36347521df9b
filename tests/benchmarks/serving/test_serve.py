"""`python -m benchmarks.serve` against real servers of the toy model, and the load it draws."""

import statistics
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from benchmarks.measuring import summarize
from benchmarks.serve.arrivals import draw_arrivals
from benchmarks.serve.load import Answered
from benchmarks.serve.percentiles import percentile
from benchmarks.serve.tables import aims


def test_both_modes_are_measured_at_every_load(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("serve", "--bundle", toy.bundle, "--input", toy.source, "--limit", 20, "--beam", 2),
        *("--threads", 1, "--loads", "25,50", "--seconds", 0.5, "--repeats", 1),
        *("--saturation-sentences", 40, "--concurrency", 8, "--bulk-streams", 2),
    )
    results = ran.results
    assert results["capacity"].keys() == {"continuous", "request", "file", "offline", "job"}
    assert min(results["capacity"].values()) > 0
    assert results["served_over_offline"] == pytest.approx(
        results["capacity"]["continuous"] / results["capacity"]["offline"]
    )
    assert results["file_over_offline"] == pytest.approx(
        results["capacity"]["file"] / results["capacity"]["offline"]
    )
    assert results["job_over_offline"] == pytest.approx(
        results["capacity"]["job"] / results["capacity"]["offline"]
    )
    assert [(row["mode"], row["load"]) for row in results["rows"]] == [
        ("continuous", 0.25),
        ("request", 0.25),
        ("continuous", 0.5),
        ("request", 0.5),
    ]
    for row in results["rows"]:
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert row["goodput"] > 0
        assert row["failed"] == 0
        # Beam 2: no step has fewer rows.
        assert row["mean_rows"] >= 2
    alone, beside = results["beside_bulk"]["rows"]
    assert (alone["streams"], alone["bulk_per_second"]) == (0, 0)
    assert beside["streams"] == 2
    assert beside["bulk_per_second"] > 0
    assert beside["failed"] == 0
    assert beside["mean_rows"] > alone["mean_rows"]
    assert results["cores"]["server"]
    assert "| continuous | 25% |" in ran.markdown


@pytest.mark.parametrize(("beside_ms", "reached"), [(300.0, True), (310.0, False)])
def test_callers_beside_jobs_have_a_bound(beside_ms: float, reached: bool) -> None:
    one = summarize([1.0])
    rows = [
        {"streams": 0, "p99_ms_repeats": [100.0, 90.0, 110.0]},
        {"streams": 4, "p99_ms_repeats": [beside_ms, 9 * beside_ms, beside_ms]},
    ]
    found = aims({"continuous": one, "request": one}, [], rows, one, one, one)
    (bound,) = (aim for aim in found if "beside" in str(aim["name"]))
    assert bound["name"] == "p99 of callers beside 4 batch jobs over alone"
    assert bound["value"] == pytest.approx(beside_ms / 100)
    assert (bound["aim"], bound["reached"]) == ("at most 3", reached)


def test_goodput_is_what_was_answered_within_the_objective() -> None:
    answered = Answered(
        latencies=[0.1, 0.2, 0.3, 30.0],
        num_failed=1,
        seconds=2.0,
        late=0.0,
        generator_cores=0.1,
        bulk_per_second=0.0,
    )
    assert answered.goodput(0.2) == 1.0
    assert answered.goodput(1.0) == 1.5


def test_arrivals_are_a_poisson_process() -> None:
    arrivals = draw_arrivals(rate=50.0, seconds=200.0, num_sentences=7, seed=1)
    assert arrivals == draw_arrivals(rate=50.0, seconds=200.0, num_sentences=7, seed=1)
    assert len(arrivals) == pytest.approx(10_000, rel=0.05)
    gaps = [second.at - first.at for first, second in pairwise(arrivals)]
    assert min(gaps) > 0
    # Of an exponential distribution the mean and the deviation are the same.
    assert statistics.stdev(gaps) == pytest.approx(statistics.mean(gaps), rel=0.05)
    assert {arrival.sentence for arrival in arrivals} == set(range(7))


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (50, 95, 99, 100)] == [50.0, 95.0, 99.0, 100.0]
    assert percentile([3.0], 99) == 3.0

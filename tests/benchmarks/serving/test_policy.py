"""`python -m benchmarks.policy`: rules of scheduling in virtual time."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.policy.simulation import Simulation
from benchmarks.policy.workload import Workload, read_lengths
from dragoman_server.engine.request import Priority
from dragoman_server.sizing.figures import Length

ALIKE = [Length(source_tokens=16, steps=10)]


def test_the_command_shows_a_workload(benchmark: Callable[..., Any]) -> None:
    ran = benchmark("policy", "--only", "offline", "--seeds", 1)
    [row] = ran.results["rows"]
    assert row["workload"] == "offline"
    assert row["callers_per_second"] > 100


def test_a_run_is_the_same_every_time() -> None:
    workload = Workload(name="some", seconds=2.0, callers_per_second=50.0, waiting_bulk=20)
    first, second = (Simulation(workload, read_lengths(), 1).run() for _ in range(2))
    assert first == second
    assert first != Simulation(workload, read_lengths(), 2).run()


def test_everybody_is_answered_and_counted_once() -> None:
    outcome = Simulation(Workload(name="all", seconds=0.0, offline=100), ALIKE, 1).run()
    assert outcome.num_answered == {Priority.INTERACTIVE: 100, Priority.BULK: 0}
    assert len(outcome.call_seconds) == outcome.num_encoded == 100


def test_a_caller_alone_takes_an_encoding_and_its_steps() -> None:
    workload = Workload(name="one", seconds=100.0, callers_per_second=0.1)
    outcome = Simulation(workload, ALIKE, 1).run()
    # By hand: an encoding 0.4 + 16 * 0.082, a regrouping 0.235, and ten steps of 0.645 each, in milliseconds.
    assert min(outcome.call_seconds) == pytest.approx((1.712 + 0.235 + 10 * 0.645) / 1000)


def test_what_belongs_together_is_answered_with_its_last() -> None:
    workload = Workload(name="calls", seconds=5.0, waiting_callers=100, sentences_a_call=40)
    outcome = Simulation(workload, ALIKE, 1).run()
    assert outcome.num_answered[Priority.INTERACTIVE] > 40 * len(outcome.call_seconds) > 0

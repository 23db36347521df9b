"""How many servers a load takes: arithmetic that can be done by hand, and the whole command."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman_server.sizing.calibration import LoadError
from dragoman_server.sizing.cli import size
from dragoman_server.sizing.figures import EngineFigures, Length, ServerFigures
from dragoman_server.sizing.measuring import Measured
from dragoman_server.sizing.plan import Objective, Server, make_plan
from dragoman_server.sizing.simulation import ServerSimulation

BUNDLE = Path(__file__).parents[3] / "models" / "de-en" / "1"
ENGINE = EngineFigures(
    texts=((Length(source_tokens=10, steps=10),),),
    beam_size=5,
    turn_rows=(5.0, 320.0),
    # A row costs nothing: however many run, a turn takes as long.
    turn_seconds=(0.01, 0.01),
    encoding_seconds=0.0,
    position_seconds=0.0,
)
SERVER = ServerFigures(
    num_engines=2, door_seconds=0.0001, lone_seconds=0.13, memory_bytes=200 << 20, texts_per_second=1.0
)
MEASURED = Measured(engine=ENGINE, server=SERVER, slowdown=1.0)
OBJECTIVE = Objective(per_second=1000.0, p99_seconds=0.3, max_share=0.75)


@pytest.fixture(autouse=True)
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time takes real time, too."""
    monkeypatch.setattr("dragoman_server.sizing.plan.NUM_TEXTS", 1300)


def test_a_text_alone_takes_its_steps() -> None:
    outcome = ServerSimulation(ENGINE, door_seconds=0.0, num_engines=1, per_second=0.001, seed=1).run(100)
    assert outcome.seconds == pytest.approx([0.1] * 90)
    assert set(outcome.rows) == {5}


def test_every_text_is_answered_once_however_many_sentences_and_engines() -> None:
    engine = replace(ENGINE, texts=((), ENGINE.texts[0] * 3))
    outcome = ServerSimulation(engine, door_seconds=0.001, num_engines=3, per_second=100.0, seed=1).run(200)
    assert len(outcome.answered_at) == 200
    assert len(outcome.seconds) == 180


def test_capacity_is_that_of_full_batches_and_grows_with_cores() -> None:
    one, two = (Server(MEASURED, cores=cores).capacity for cores in (1, 2))
    # 64 sentences of ten turns of 10 ms: 640 a second, less what the door takes of the core.
    assert one == pytest.approx(1 / (1 / 640 + 0.0001), rel=0.15)
    assert two == pytest.approx(2 * one, rel=0.15)
    assert Server(replace(MEASURED, slowdown=2.0), cores=1).capacity == pytest.approx(one / 2, rel=0.15)


def test_a_door_that_is_one_process_bounds_what_cores_can_do() -> None:
    slow = replace(MEASURED, server=replace(SERVER, door_seconds=0.01))
    assert Server(slow, cores=16).capacity <= 100


def test_the_plan_has_the_fewest_servers_within_both_bounds() -> None:
    plan = make_plan(MEASURED, OBJECTIVE, cores=1)
    assert plan.num_servers == 3
    assert plan.share == pytest.approx(1000 / 3 / plan.capacity)
    assert plan.share <= OBJECTIVE.max_share
    # What the caller saw of a text alone, 130 ms, is 30 more than its turns; and it waits for one to end.
    assert 0.13 < plan.expected.p50_seconds < 0.17
    assert plan.expected.p99_seconds <= OBJECTIVE.p99_seconds
    assert plan.memory_bytes == 256 << 20
    assert plan.max_rows == 320


def test_a_smaller_batch_is_advised_where_full_ones_are_late() -> None:
    slow = replace(MEASURED, engine=replace(ENGINE, turn_seconds=(0.01, 0.0625)))
    plan = make_plan(slow, OBJECTIVE, cores=1)
    assert 100 < plan.max_rows < 160


def test_an_objective_that_no_number_of_servers_reaches_is_refused_with_the_way_out() -> None:
    with pytest.raises(LoadError, match="more servers make none quicker"):
        make_plan(MEASURED, replace(OBJECTIVE, p99_seconds=0.1), cores=1)


def test_the_command_measures_and_answers(tmp_path: Path) -> None:
    load = tmp_path / "load.txt"
    load.write_text("Wo ist der Bahnhof?\nIch habe Hunger. Gibt es hier Brot?\n")
    arguments = ["--bundle", BUNDLE, "--load", load, "--per-second", 10, "--p99-ms", 60_000]
    ran = CliRunner().invoke(size, [*map(str, arguments), "--cores", "1", "--seconds", "1", "--json"])
    assert ran.exit_code == 0, ran.output
    plan = json.loads(ran.stdout)
    assert plan["servers"] >= 1
    assert plan["memory_bytes"] > 64 << 20
    assert plan["measured"]["texts"] == 2
    assert 0 < plan["measured"]["door_seconds"] < 1
    assert plan["measured"]["turn_seconds"][0] < plan["measured"]["turn_seconds"][-1]


def test_cores_that_are_not_there_and_a_load_without_a_text_are_refused(tmp_path: Path) -> None:
    load = tmp_path / "load.txt"
    load.write_text("\n\n")
    arguments = ["--bundle", str(BUNDLE), "--load", str(load), "--per-second", "10"]
    ran = CliRunner().invoke(size, arguments)
    assert "has no text" in ran.output
    load.write_text("eins\n")
    ran = CliRunner().invoke(size, [*arguments, "--cores", "100000"])
    assert "measure on one like those that will serve" in ran.output

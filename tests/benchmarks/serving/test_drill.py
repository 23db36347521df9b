"""`python -m benchmarks.drill`: short forms of the drills, and what becomes of a promise that breaks."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.drill.__main__ import main
from benchmarks.drill.drill import Drill
from benchmarks.drill.sentences import make_sentences

BUNDLE = Path(__file__).parents[3] / "models" / "de-en" / "1"


def drill(tmp_path: Path, name: str, *arguments: object) -> dict[str, Any]:
    """What the command found, all of whose promises held."""
    results = tmp_path / "results.json"
    given = [name, "--bundle", BUNDLE, "--json", results, *arguments]
    ran = CliRunner().invoke(main, list(map(str, given)))
    assert ran.exit_code == 0, ran.output
    found: dict[str, Any] = json.loads(results.read_text())
    assert all(check["holds"] for check in found["checks"])
    return found


@pytest.mark.long
def test_a_job_over_three_servers_that_are_killed_in_turn_comes_to_the_same_bytes(tmp_path: Path) -> None:
    found = drill(tmp_path, "kills", "--seconds", 10, "--lines", 600)
    assert found["figures"]["lines"] == 600
    assert found["figures"]["kills"] >= 1
    assert "the file is the same to the byte" in [check["promise"] for check in found["checks"]]


@pytest.mark.long
def test_calls_of_all_kinds_are_accounted_for_and_right(tmp_path: Path) -> None:
    found = drill(tmp_path, "soak", "--seconds", 3)
    assert found["figures"]["texts translated"] > 0


@pytest.mark.long
def test_ordinary_callers_do_not_notice_nonsense_at_the_ports(tmp_path: Path) -> None:
    found = drill(tmp_path, "fuzz", "--seconds", 3)
    assert found["figures"]["connections of nonsense"] > 0
    assert found["figures"]["calls of nonsense"] > 0


@pytest.mark.long
def test_versions_come_and_go_and_come_damaged_under_traffic(tmp_path: Path) -> None:
    found = drill(tmp_path, "reload", "--seconds", 1)
    assert found["figures"]["reloads"] > 0


@pytest.mark.long
def test_who_is_turned_away_is_told_when_to_come_back(tmp_path: Path) -> None:
    found = drill(tmp_path, "overload", "--seconds", 1)
    assert found["figures"]["calls refused"] > 0


@pytest.mark.long
def test_no_damaged_bundle_opens(tmp_path: Path) -> None:
    found = drill(tmp_path, "bundles", "--seconds", 1)
    assert found["figures"]["bundles damaged"] > 0


@pytest.mark.long
def test_a_job_without_room_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    found = drill(tmp_path, "disk", "--seconds", 1)
    assert found["figures"]["jobs that ran out of room"] > 0


@pytest.mark.parametrize(
    ("holds", "code"), [([], 1), ([True], 0), ([True, False], 1)], ids=["none", "one", "broken"]
)
def test_a_promise_that_is_broken_and_a_drill_that_checks_nothing_are_failures(
    monkeypatch: pytest.MonkeyPatch, holds: list[bool], code: int
) -> None:
    def run(drill: Drill, **options: object) -> None:
        for held in holds:
            drill.check("something holds", held)

    monkeypatch.setattr("benchmarks.drill.jobs.kills.run", run)
    ran = CliRunner().invoke(main, ["kills", "--bundle", str(BUNDLE)])
    assert ran.exit_code == code
    assert f"{len(holds)} promises checked, {holds.count(False)} broken" in ran.output


def test_sentences_of_a_drill_are_all_different() -> None:
    assert len(set(make_sentences(20_000))) == 20_000

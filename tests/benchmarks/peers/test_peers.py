"""`python -m benchmarks.peers` on the toy model, with a peer that is a few lines of Python."""

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.environment import PeerMissingError
from benchmarks.peers.__main__ import peers
from benchmarks.peers.same_weights.speed import FILE, Task, settings_of_peer
from benchmarks.peers.tables import compare
from benchmarks.peers.toolkits import LSTM_SIZES, lstm_sizes
from benchmarks.peers.worker import running_worker

ECHO = """
import json, sys
task = json.loads(sys.stdin.readline())
print(json.dumps({"version": "1"}), flush=True)
for line in sys.stdin:
    seconds = json.loads(line)["seconds"]
    print(json.dumps({"seconds": seconds, "tokens": task["steps"]}), flush=True)
"""


def test_the_engine_is_measured_and_what_is_missing_is_told(benchmark: Callable[..., Any], toy: Any) -> None:
    # Installing peers takes a network: here there are none.
    ran = benchmark(
        *("peers", "--bundle", toy.bundle, "--input", toy.source, "--limit", 5, "--beam", 2),
        *("--threads", 1, "--repeats", 1, "--peers", ""),
    )
    rows = ran.results["rows"]
    assert [row["system"] for row in rows] == ["engine_int8", "engine_int8_shortlist"]
    assert all(row["tokens_per_second"] > row["sentences_per_second"] > 0 for row in rows)
    assert "torch" in ran.results["left_out"]["opennmt-py"]


def test_a_peer_of_our_family_has_the_sizes_of_our_model(tmp_path: Path, toy: Any) -> None:
    recipe = toy.bundle / "recipe.toml"
    own = tomllib.loads(recipe.read_text())["model"]
    assert lstm_sizes(toy.bundle) == {name: own[name] for name in LSTM_SIZES}
    (tmp_path / "recipe.toml").write_text("[model]\nfamily = 'transformer'\nencoder_layers = 6\n")
    assert lstm_sizes(tmp_path) == {**LSTM_SIZES, "encoder_layers": 6}
    assert lstm_sizes(tmp_path / "ensemble") == LSTM_SIZES


def test_a_peer_is_asked_again_and_again(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    with running_worker(Path(sys.executable), script, {"steps": 7}, {}) as (worker, answer):
        assert answer == {"version": "1"}
        decoded = [worker.decode({"seconds": seconds}) for seconds in (0.5, 0.25)]
    assert [(each.seconds, each.tokens) for each in decoded] == [(0.5, 7), (0.25, 7)]


def test_a_peer_that_ends_says_why(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('no such processor')")
    with (
        pytest.raises(PeerMissingError, match="no such processor"),
        running_worker(Path(sys.executable), script, {}, {}),
    ):
        pass


def test_a_size_that_there_is_not_is_refused() -> None:
    refused = CliRunner().invoke(peers, ["--same-weights", "small,huge"])
    assert refused.exit_code == 2
    assert "there is no size 'huge'; there are small, base, opus" in refused.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--measure", "served"], "--measure changes nothing without --same-weights"),
        (["--shortlist"], "--shortlist changes nothing without --same-weights"),
        (["--seconds", "3"], "--seconds changes nothing without --same-weights"),
        (["--no-export"], "--export/--no-export changes nothing without --same-weights"),
        (["--same-weights", "small", "--beam", "2"], "--beam changes nothing with --same-weights"),
        (["--same-weights", "small", "--seconds", "3"], "--seconds changes nothing without --measure served"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(given: list[str], said: str) -> None:
    refused = CliRunner().invoke(peers, given)
    assert refused.exit_code == 2
    assert said in refused.output


@pytest.mark.parametrize("num_sentences", [5, 48, 96])
def test_both_workers_of_a_peer_may_have_one_batch_each(num_sentences: int) -> None:
    task = Task(sentences=[[1]] * num_sentences, steps=7, input=FILE, beam=4, threads=2)
    batches = {each["batch"] for each in settings_of_peer(task) if each["workers"] == 2}
    assert batches == {8, 16, 32, -(-num_sentences // 2)}


@pytest.mark.parametrize(("threads", "shares"), [(1, {(1, 1)}), (2, {(2, 1), (1, 2)})])
def test_a_peer_may_have_workers_or_threads(threads: int, shares: set[tuple[int, int]]) -> None:
    task = Task(sentences=[[1]], steps=7, input=FILE, beam=4, threads=threads)
    found = {(each["workers"], each["threads_per_worker"]) for each in settings_of_peer(task)}
    assert found == shares


def test_the_fastest_setting_of_a_peer_counts() -> None:
    rows = [
        {"system": system, "tokens_per_second": speed, "repeats": [speed, speed / 2]}
        for system, speed in (
            ("engine_int8_shortlist", 300.0),
            ("ctranslate2", 200.0),
            ("ctranslate2", 100.0),
        )
    ]
    (ratio,) = compare(rows)
    assert ratio["value"] == 1.5
    assert ratio["reached"] is False
    assert json.dumps(ratio)

"""`dragoman load-test` against a real server, and the load that it puts on one."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.server.copying_bundle import write_bundle

from benchmarks.servers import Server
from dragoman.cli.group import main
from dragoman.load import bisect, draw_arrivals, run_open_loop


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server, whose model copies."""
    folder = tmp_path_factory.mktemp("load")
    write_bundle(folder / "models")
    with Server(folder / "models", folder, {"--threads": 1}) as server:
        yield server.address


def run(address: str, folder: Path, *options: object, text: str = "ja nein\n\nja ja nein\n") -> Result:
    (folder / "texts").write_text(text)
    given = ["load-test", "--server", address, "--from", "de", "--to", "en", "--seconds", 0.2, *options]
    return CliRunner().invoke(main, [*map(str, given), str(folder / "texts")])


def test_the_highest_rate_within_the_limit_is_found(address: str, tmp_path: Path) -> None:
    ran = run(address, tmp_path, "--p99-ms", 1000, "--cores", 2, "--sentences-per-day", 10**9, "--json")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    held = [rate["texts_per_second"] for rate in found["rates"] if rate["p99_ms"] <= 1000]
    broke = [rate["texts_per_second"] for rate in found["rates"] if rate["p99_ms"] > 1000]
    assert max(held) == found["texts_per_second"]
    assert len(broke) + len(held) == len(found["rates"])
    assert all(rate["holds"] == (rate["p99_ms"] <= 1000) for rate in found["rates"])
    # A text has a sentence, and two words and a half on average.
    assert found["sentences_per_second"] == pytest.approx(found["texts_per_second"])
    assert found["words_per_second"] == pytest.approx(2.5 * found["texts_per_second"])
    assert found["sentences_per_second_and_core"] == pytest.approx(found["sentences_per_second"] / 2)
    days = 86_400 * found["sentences_per_second"] / 2
    assert found["cores_for_the_day"] == pytest.approx(10**9 / days)
    assert "within the limit" in ran.stderr


def test_a_limit_that_no_rate_keeps_is_an_error_with_the_way_out(address: str, tmp_path: Path) -> None:
    ran = run(address, tmp_path, "--p99-ms", 1)
    assert ran.exit_code == 1
    assert "allow more with --p99-ms" in ran.output


def test_what_cannot_be_tested_is_refused(address: str, tmp_path: Path) -> None:
    assert "give --cores" in run(address, tmp_path, "--sentences-per-day", 5).output
    assert "has no text in it" in run(address, tmp_path, text=" \n\n").output
    failed = run(address, tmp_path, "--model", "absent")
    assert failed.exit_code != 0
    assert "absent" in failed.output


@pytest.mark.parametrize("first", [1.0, 70.0, 5000.0])
@pytest.mark.parametrize("bound", [3.0, 71.0, 900.0])
async def test_bisection_comes_within_its_precision_from_below(first: float, bound: float) -> None:
    async def holds(rate: float) -> bool:
        return rate <= bound

    rates = [rate async for rate in bisect(holds, first, precision=0.1, max_halvings=40)]
    assert bound / 1.1 <= rates[-1] <= bound
    assert rates == sorted(rates)


async def test_a_wait_counts_from_when_the_text_was_to_arrive() -> None:
    free = asyncio.Lock()

    async def call(text: int) -> None:
        # One at a time: the tenth waits for nine others.
        async with free:
            await asyncio.sleep(0.05)

    arrivals = draw_arrivals(rate=1000.0, seconds=0.02, num_texts=1, seed=1)
    answered = await run_open_loop(call, arrivals, failures=RuntimeError, deadline_seconds=9.0)
    assert max(answered.latencies) > 0.05 * len(answered.latencies)
    assert answered.num_failed == 0


async def test_a_failure_has_taken_its_deadline_and_no_call_follows_a_limit_that_broke() -> None:
    begun = []

    async def call(text: int) -> None:
        begun.append(text)
        raise RuntimeError

    arrivals = draw_arrivals(rate=500.0, seconds=1.0, num_texts=3, seed=1)
    limits = {"deadline_seconds": 9.0, "p99_seconds": 0.3}
    answered = await run_open_loop(call, arrivals, failures=RuntimeError, **limits)
    assert len(begun) < len(arrivals) / 2
    assert answered.num_failed == len(answered.latencies) > 0
    assert set(answered.latencies) == {9.0}

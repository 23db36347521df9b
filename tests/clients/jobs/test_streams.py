"""A file translated by several streams over several servers: what one stream would write."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.clients.conftest import ScriptedServer, Servers
from tests.clients.jobs import running
from tests.clients.jobs.running import DE_EN, Listener

from dragoman import Client, InvalidRequestError, ModelNotFoundError, UnavailableError
from dragoman.cli import main
from dragoman.jobs import FileJob, JobError


@pytest.fixture
def servers(servers: Servers) -> Servers:
    for each in servers:
        # So that no stream is done with the file before the others begin.
        each.servicer.delay_seconds = 0.002
    return servers


@pytest.fixture
def client(servers: Servers) -> Iterator[Client]:
    with Client([each.address for each in servers]) as connected:
        yield connected


def write(folder: Path, num_lines: int) -> tuple[Path, Path, bytes]:
    """A source, an output, and what must come to stand there."""
    source, output = running.write(folder, running.numbered(num_lines), ending=".txt")
    return source, output, source.read_bytes().upper()


def run(source: Path, output: Path, client: Client, listener: Listener | None = None, **options) -> Listener:
    listener = listener or Listener()
    FileJob(source, output, DE_EN, **{"streams": 3, "window": 32, **options}).run(client, listener)
    return listener


def test_each_server_has_a_share_and_order_stays(client: Client, servers: Servers, tmp_path: Path) -> None:
    # The first stream begins alone, and must not be done before the others are connected.
    servers[0].servicer.delay_seconds = 0.01
    source, output, expected = write(tmp_path, 400)
    run(source, output, client, window=64)
    assert output.read_bytes() == expected
    assert all(each.servicer.items >= 32 for each in servers)
    assert sum(each.servicer.items for each in servers) == 400, "nothing is translated twice"
    assert [len(each.servicer.configs) for each in servers] == [1, 1, 1]


def test_streams_ask_for_the_first_results_model(client: Client, servers: Servers, tmp_path: Path) -> None:
    for each, versions in zip(servers, (["1"], ["1", "2"], ["1", "2"]), strict=True):
        each.servicer.versions = versions
    servers[0].servicer.delay_seconds = 0.01
    source, output, _ = write(tmp_path, 200)
    run(source, output, client, window=64)
    asked = sorted(config.model for each in servers for config in each.servicer.configs)
    assert asked == ["", "de-en/1", "de-en/1"]


def test_servers_that_come_and_go_change_nothing(client: Client, servers: Servers, tmp_path: Path) -> None:
    source, output, expected = write(tmp_path, 600)
    actions = [
        servers[1].stop,
        lambda: (servers[1].start(), servers[2].stop()),
        lambda: (servers[2].start(), servers[0].stop()),
        servers[0].start,
    ]
    listener = run(source, output, client, Listener(*actions))
    assert not listener.actions
    assert output.read_bytes() == expected
    assert listener.errors
    for error in listener.errors:
        assert any(each.address in str(error) for each in servers), error


def test_one_stream_goes_on_at_another_server(client: Client, servers: Servers, tmp_path: Path) -> None:
    source, output, expected = write(tmp_path, 300)

    def stop_the_busy_one() -> None:
        max(servers, key=lambda each: each.servicer.items).stop()

    listener = run(source, output, client, Listener(stop_the_busy_one), streams=1)
    assert output.read_bytes() == expected
    assert len(listener.errors) == 1
    assert sum(each.servicer.items > 0 for each in servers) == 2


def test_others_do_the_work_of_one_that_is_gone(client: Client, servers: Servers, tmp_path: Path) -> None:
    source, output, expected = write(tmp_path, 600)
    try:
        run(source, output, client, Listener(servers[0].stop), patience_seconds=0.1)
        assert output.read_bytes() == expected
    finally:
        servers[0].start()


def test_patience_ends_where_no_server_is_left(client: Client, servers: Servers, tmp_path: Path) -> None:
    source, output, expected = write(tmp_path, 600)

    def stop() -> None:
        for each in servers:
            each.stop()

    with pytest.raises(UnavailableError):
        run(source, output, client, Listener(stop), patience_seconds=0.5)
    assert not output.exists()
    for each in servers:
        each.start()
    listener = run(source, output, client)
    assert listener.resumed
    assert output.read_bytes() == expected


def test_a_job_goes_on_with_any_number_of_streams(client: Client, servers: Servers, tmp_path: Path) -> None:
    source, output, expected = write(tmp_path, 300)

    def interrupt() -> None:
        raise KeyboardInterrupt

    for streams in (3, 1):
        with pytest.raises(KeyboardInterrupt):
            run(source, output, client, Listener(interrupt), streams=streams)
    assert not [each for each in threading.enumerate() if each.name == "dragoman-job"]
    listener = run(source, output, client, streams=5)
    assert listener.resumed == 80
    assert output.read_bytes() == expected


def test_a_text_that_is_too_long_for_the_servers_fails_alone(tmp_path: Path) -> None:
    lines = [f"zeile {number}" for number in range(60)]
    lines[20] = "x" * 20_000
    source, output = running.write(tmp_path, "".join(f"{line}\n" for line in lines), ending=".txt")
    with (
        ScriptedServer(max_message_bytes=10_000) as one,
        ScriptedServer(max_message_bytes=10_000) as other,
        Client([one.address, other.address]) as client,
    ):
        run(source, output, client, streams=2)
    lines[20] = ""
    assert output.read_text().splitlines() == [line.upper() for line in lines]
    assert len((tmp_path / "out.txt.errors.jsonl").read_text().splitlines()) == 1


def test_what_every_server_refuses_ends_the_job(client: Client, servers: Servers, tmp_path: Path) -> None:
    source, output, _ = write(tmp_path, 100)
    for each in servers:
        each.servicer.failures.append(each.status("INVALID_ARGUMENT", "options.beam_size is 99"))
    with pytest.raises(InvalidRequestError, match="beam_size is 99"):
        run(source, output, client)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt"]


def test_a_server_without_the_model_ends_the_job(client: Client, servers: Servers, tmp_path: Path) -> None:
    servers[1].servicer.versions = ["2"]
    servers[0].servicer.delay_seconds = 0.01
    source, output, _ = write(tmp_path, 600)
    with pytest.raises(JobError, match="no longer has de-en/1") as caught:
        run(source, output, client)
    assert isinstance(caught.value.__cause__, ModelNotFoundError)
    assert servers[1].address in str(caught.value)


def test_streams_to_one_address_have_connections_of_their_own(server: ScriptedServer, tmp_path: Path) -> None:
    server.servicer.delay_seconds = 0.01
    source, output, expected = write(tmp_path, 300)
    with Client(server.address) as client:
        run(source, output, client, window=64)
    assert output.read_bytes() == expected
    assert len(server.servicer.configs) == 3


def test_ctrl_c_stops_the_command_and_the_same_goes_on(servers: Servers, tmp_path: Path) -> None:
    source, output, expected = write(tmp_path, 2000)
    addresses = ",".join(each.address for each in servers)
    given = ["translate-file", "--server", addresses, "--streams", "3", "--from", "de", "--to", "en"]
    given += [str(source), str(output)]

    def interrupt() -> None:
        while not output.with_name("out.txt.progress.json").exists() or servers[0].servicer.items < 200:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    ran = CliRunner().invoke(main, given)
    assert ran.exit_code == 130, ran.output
    assert "The same command goes on from there" in ran.stderr
    ran = CliRunner().invoke(main, given)
    assert ran.exit_code == 0, ran.output
    assert "Going on after" in ran.stderr
    assert output.read_bytes() == expected

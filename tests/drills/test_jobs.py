"""`dragoman translate-file` while its servers are killed or hang, and while its disk is full."""

import random
import resource
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from tests.drills.callers import make_sentences

from benchmarks.servers import Server

JOB_SECONDS = 1800.0
"""Far longer than any job takes: one that hangs is a broken promise, too."""
LINES_PER_SECOND = 40
"""Lines of a job for each second of faults: few machines do less."""


class Job:
    """A `dragoman translate-file` that runs."""

    def __init__(
        self, servers: list[Server], source: Path, output: Path, max_bytes: int | None = None
    ) -> None:
        """With `max_bytes` no file of the job may grow beyond so many."""
        command = [sys.executable, "-m", "dragoman", "translate-file", "--from", "de", "--to", "en"]
        command += ["--server", ",".join(server.address for server in servers), "--beam", "1"]
        command += ["--streams", str(len(servers)), "--ping", "3", str(source), str(output)]
        limits = (max_bytes, max_bytes) if max_bytes else None
        self._began = time.monotonic()
        self._progress = output.with_name(output.name + ".progress.json")
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, limits) if limits else None,
        )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until_begun(self) -> None:
        while self.is_running and not self._progress.exists():
            time.sleep(0.02)

    def end(self) -> tuple[int, str, float]:
        """Its exit code, what it wrote, and the seconds it took."""
        try:
            _, said = self._process.communicate(timeout=JOB_SECONDS)
        finally:
            self._process.kill()
        return self._process.returncode, said, time.monotonic() - self._began


@pytest.fixture
def servers(models: Path, tmp_path: Path) -> Iterator[list[Server]]:
    """Three servers of one thread."""
    made = [Server(models, tmp_path, {"--threads": 1}, name=f"server-{number}") for number in range(3)]
    with ExitStack() as running:
        yield [running.enter_context(server) for server in made]


@pytest.fixture
def source(tmp_path: Path, seconds: float) -> Path:
    """The file that is translated."""
    path = tmp_path / "in.txt"
    lines = make_sentences(max(2_000, int(seconds * LINES_PER_SECOND)))
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def expected(servers: list[Server], source: Path, tmp_path: Path) -> bytes:
    """The file as one server and one stream translate it."""
    code, said, took = Job(servers[:1], source, tmp_path / "calm.out").end()
    assert code == 0, said
    print(f"{took:.1f} s undisturbed by one server", end="; ")
    return (tmp_path / "calm.out").read_bytes()


def test_kills_of_servers_leave_the_file_the_same_to_the_byte(
    servers: list[Server], source: Path, expected: bytes, tmp_path: Path, seconds: float
) -> None:
    job = Job(servers, source, tmp_path / "killed.out")
    job.wait_until_begun()
    # The first comes soon: a quick machine is done with a short job within the second.
    time.sleep(0.3)
    kills, until, turns = 0, time.monotonic() + seconds, deque(servers)
    while job.is_running and time.monotonic() < until:
        # While fewer than two serve none is killed: however long a start takes here, one is left.
        serving = [server for server in turns if server.is_serving()]
        if len(serving) >= 2 and job.is_running:
            serving[0].kill()
            serving[0].start()
            turns.remove(serving[0])
            turns.append(serving[0])
            kills += 1
            time.sleep(1)
        time.sleep(0.1)
    code, said, took = job.end()
    for server in servers:
        server.wait_until_ready()
    print(f"{took:.1f} s with {kills} kills")
    assert kills > 0
    assert (code, (tmp_path / "killed.out").read_bytes()) == (0, expected), said
    assert not list(tmp_path.glob("*.out.*"))


def test_freeze_of_a_server_leaves_the_file_the_same_to_the_byte(
    servers: list[Server], source: Path, expected: bytes, tmp_path: Path
) -> None:
    job = Job(servers, source, tmp_path / "frozen.out")
    job.wait_until_begun()
    # All streams are at work then.
    time.sleep(1)
    assert job.is_running
    servers[1].signal(signal.SIGSTOP)
    try:
        code, said, took = job.end()
    finally:
        servers[1].signal(signal.SIGCONT)
    print(f"{took:.1f} s with one that hangs")
    served = [server.metric("dragoman_sentences_total") for server in servers]
    assert all(served), served
    assert (code, (tmp_path / "frozen.out").read_bytes()) == (0, expected), said


def test_disk_without_room_is_reported_and_the_job_goes_on(
    servers: list[Server], source: Path, expected: bytes, tmp_path: Path, seconds: float
) -> None:
    generator, until, tried = random.Random(1), time.monotonic() + seconds, 0
    while not tried or time.monotonic() < until:
        tried += 1
        output = tmp_path / f"full-{tried}.txt"
        code, said, _ = Job(servers[:1], source, output, generator.randrange(1, len(expected))).end()
        assert code == 1
        assert output.name in said
        assert "Traceback" not in said
        assert not output.exists()
        code, said, _ = Job(servers[:1], source, output).end()
        assert (code, output.read_bytes()) == (0, expected), said
        assert not list(tmp_path.glob(f"{output.name}.*"))
    print(f"{tried} jobs ran out of room")

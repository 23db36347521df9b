"""Servers killed under a job: one of three each second, started again, and what the file comes to."""

import hashlib
import subprocess
import sys
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path

from benchmarks.drill.drill import Drill
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server

NUM_SERVERS = 3
KILL_EVERY_SECONDS = 1.0
FIRST_KILL_SECONDS = 0.3
LINES_PER_SECOND = 40
"""Lines of the job for each second of the drill, unless they are given: few machines do less."""
JOB_SECONDS = 1800.0
"""Far longer than any job takes: one that hangs is a broken promise, too."""


def run(drill: Drill, *, num_lines: int | None = None) -> None:
    """A job over three servers of one thread, first undisturbed, then with a SIGKILL each second.

    Kills go on until the job is done, or for the drill's seconds.
    """
    num_lines = num_lines or max(100, int(drill.seconds * LINES_PER_SECOND))
    source = drill.folder / "in.txt"
    source.write_text("".join(f"{line}\n" for line in make_sentences(num_lines)))
    servers = [
        Server(f"server-{number}", drill.models, drill.folder, ["--threads", "1"])
        for number in range(NUM_SERVERS)
    ]
    with ExitStack() as running:
        for server in servers:
            running.enter_context(server)
        one = _job(drill, servers[:1], source, "one", 1)
        drill.figure("lines", num_lines)
        drill.figure("seconds, one server and one stream", round(one.wait(JOB_SECONDS), 1))
        calm = _job(drill, servers, source, "calm", NUM_SERVERS)
        drill.figure("seconds, three of each, undisturbed", round(calm.wait(JOB_SECONDS), 1))
        served = [server.metric("dragoman_sentences_total") for server in servers]
        drill.check(
            "every server does a part of an undisturbed job", all(served), [int(each) for each in served]
        )
        killed = _job(drill, servers, source, "killed", NUM_SERVERS)
        running.callback(killed.end)
        kills = _kill(killed, servers, drill.seconds)
        seconds = killed.wait(JOB_SECONDS)
        drill.figure("kills", kills)
        drill.figure("seconds, with kills", round(seconds, 1))
        for server in servers:
            server.wait_until_ready()
    drill.check("the job was killed under at all", kills > 0, f"{kills} kills")
    for job in (one, calm, killed):
        drill.check(f"job {job.name!r} ends well", job.code == 0, f"exit {job.code}: {job.told()}")
    digests = {job.name: job.digest() for job in (one, calm, killed)}
    drill.check(
        "the file is the same to the byte", len(set(digests.values())) == 1 and all(digests.values()), digests
    )
    left = sorted(path.name for path in drill.folder.glob("*.out.*"))
    drill.check("nothing is left beside the outputs", not left, left)


def _kill(job: "_Job", servers: list[Server], seconds: float) -> int:
    """Kills and starts again one server a second, in turn, for so long or until the job is done; how many.

    None while one of them does not serve: it is one of three, however long a start takes here.
    """
    until = time.monotonic() + seconds
    turns = deque(servers)
    kills = 0
    while job.is_running and not job.has_begun:
        time.sleep(0.02)
    # The first comes soon: a quick machine is done with a short job within the second.
    time.sleep(FIRST_KILL_SECONDS)
    while job.is_running and time.monotonic() < until:
        serving = [server for server in turns if server.is_serving()]
        if len(serving) == len(servers) and job.is_running:
            serving[0].kill()
            serving[0].start()
            turns.remove(serving[0])
            turns.append(serving[0])
            kills += 1
        time.sleep(KILL_EVERY_SECONDS)
    return kills


class _Job:
    """A running `dragoman translate-file`."""

    def __init__(self, name: str, output: Path, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.code: int | None = None
        self._output = output
        self._log = log
        self._process = process
        self._started_at = time.monotonic()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def has_begun(self) -> bool:
        """Whether it has opened its output."""
        return self._output.with_name(self._output.name + ".progress.json").exists()

    def wait(self, seconds: float) -> float:
        """Until it ends, at most so long; how long it took."""
        try:
            self.code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return time.monotonic() - self._started_at

    def end(self) -> None:
        """Kills it where it still runs."""
        if self.is_running:
            self._process.kill()
            self._process.wait()

    def told(self) -> str:
        """The last line it wrote."""
        return (self._log.read_text().splitlines() or [""])[-1]

    def digest(self) -> str:
        """Of its output; empty where there is none."""
        if not self._output.exists():
            return ""
        return hashlib.sha256(self._output.read_bytes()).hexdigest()[:16]


def _job(drill: Drill, servers: list[Server], source: Path, name: str, num_streams: int) -> _Job:
    output, log = drill.folder / f"{name}.out", drill.folder / f"{name}.log"
    command = [sys.executable, "-m", "dragoman", "translate-file"]
    command += ["--server", ",".join(server.address for server in servers), "--streams", str(num_streams)]
    command += [
        "--from",
        drill.source,
        "--to",
        drill.target,
        "--model",
        drill.model,
        str(source),
        str(output),
    ]
    with log.open("wb") as stream:
        return _Job(name, output, log, subprocess.Popen(command, stdout=stream, stderr=stream))

"""Servers killed under a job: one of three each second, started again, and what the file comes to."""

import time
from collections import deque
from contextlib import ExitStack

from benchmarks.drill.drill import Drill
from benchmarks.drill.jobs.job import JOB_SECONDS, Job, start_job
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server

NUM_SERVERS = 3
MIN_SERVING = 2
"""Servers that serve when one is killed."""
KILL_EVERY_SECONDS = 1.0
FIRST_KILL_SECONDS = 0.3
POLL_SECONDS = 0.1
LINES_PER_SECOND = 40
"""Lines of the job for each second of the drill, unless they are given: few machines do less."""


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
        one = start_job(drill, servers[:1], source, "one", 1)
        drill.figure("lines", num_lines)
        drill.figure("seconds, one server and one stream", round(one.wait(JOB_SECONDS), 1))
        calm = start_job(drill, servers, source, "calm", NUM_SERVERS)
        drill.figure("seconds, three of each, undisturbed", round(calm.wait(JOB_SECONDS), 1))
        served = [server.metric("dragoman_sentences_total") for server in servers]
        drill.check(
            "every server does a part of an undisturbed job", all(served), [int(each) for each in served]
        )
        killed = start_job(drill, servers, source, "killed", NUM_SERVERS)
        running.callback(killed.end)
        kills = _kill(killed, servers, drill.seconds)
        seconds = killed.wait(JOB_SECONDS)
        drill.figure("kills", kills)
        drill.figure("seconds, with kills", round(seconds, 1))
        drill.figure("seconds from one kill to the next", round(seconds / max(1, kills), 2))
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


def _kill(job: Job, servers: list[Server], seconds: float) -> int:
    """Kills and starts again one server a second, in turn, for so long or until the job is done; how many.

    None while fewer than two serve: however long a start takes here, one is left.
    """
    until = time.monotonic() + seconds
    turns = deque(servers)
    kills = 0
    while job.is_running and not job.has_begun:
        time.sleep(0.02)
    # The first comes soon: a quick machine is done with a short job within the second.
    time.sleep(FIRST_KILL_SECONDS)
    killed_at = -KILL_EVERY_SECONDS
    while job.is_running and time.monotonic() < until:
        time.sleep(max(POLL_SECONDS, killed_at + KILL_EVERY_SECONDS - time.monotonic()))
        serving = [server for server in turns if server.is_serving()]
        if len(serving) >= MIN_SERVING and job.is_running:
            killed_at = time.monotonic()
            serving[0].kill()
            serving[0].start()
            turns.remove(serving[0])
            turns.append(serving[0])
            kills += 1
    return kills

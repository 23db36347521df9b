"""A server that hangs under a job: stopped, as a machine that is swapping or cut off, and what it costs."""

import signal
import time
from contextlib import ExitStack

from benchmarks.drill.drill import Drill
from benchmarks.drill.jobs.job import JOB_SECONDS, start_job
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server

NUM_SERVERS = 3
LINES_PER_SECOND = 40
"""Lines of the job for each second of the drill, unless they are given: few machines do less."""
FREEZE_AFTER_SECONDS = 1.0
"""After the job has begun: all streams are at work then."""


def run(drill: Drill, *, num_lines: int | None = None) -> None:
    """A job over three servers of one thread, undisturbed, then with one that is stopped until it ends."""
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
        calm = start_job(drill, servers, source, "calm", NUM_SERVERS)
        undisturbed = calm.wait(JOB_SECONDS)
        frozen = start_job(drill, servers, source, "frozen", NUM_SERVERS)
        running.callback(frozen.end)
        while frozen.is_running and not frozen.has_begun:
            time.sleep(0.02)
        time.sleep(FREEZE_AFTER_SECONDS)
        was_running = frozen.is_running
        servers[1].signal(signal.SIGSTOP)
        try:
            seconds = frozen.wait(JOB_SECONDS)
        finally:
            servers[1].signal(signal.SIGCONT)
    drill.figure("lines", num_lines)
    drill.figure("seconds, undisturbed", round(undisturbed, 1))
    drill.figure("seconds, with one server that hangs", round(seconds, 1))
    drill.check("the job ran when the server was stopped", was_running)
    for job in (calm, frozen):
        drill.check(f"job {job.name!r} ends well", job.code == 0, f"exit {job.code}: {job.told()}")
    drill.check("the file is the same to the byte", calm.digest() == frozen.digest() != "", frozen.digest())

"""What must be so of a server once everybody has gone."""

import time

from benchmarks.drill.drill import Drill
from benchmarks.drill.servers import Server

QUIET_SECONDS = 30.0


def check_quiet(drill: Drill, server: Server) -> None:
    """Whether it is alive, holds nothing any more, has ended each call, and its log is in order."""
    drill.check("the server is alive", server.is_alive)
    until = time.monotonic() + QUIET_SECONDS
    while (left := _left(server)) and time.monotonic() < until:
        time.sleep(0.1)
    drill.check("nothing is left in its queue or its batches", not left, left or "")
    entries = server.entries()
    strange = [entry for entry in entries if "no json" in entry]
    drill.check("each line of its log is JSON", not strange, strange[:2] or f"{len(entries)} lines")
    bugs = [entry for entry in entries if "exc_info" in entry]
    drill.check(
        "its log tells of no error that nobody thought of", not bugs, str(bugs[:1])[-400:] if bugs else ""
    )


def _left(server: Server) -> dict[str, float]:
    found = {name: server.metric(f"dragoman_{name}_sentences") for name in ("queue", "running")}
    # The health checks of clients that are closed, too.
    started, handled = (
        server.metric(f"grpc_server_{name}_total", grpc_service="dragoman.v1.TranslationService")
        for name in ("started", "handled")
    )
    found["calls"] = started - handled
    return {name: value for name, value in found.items() if value}

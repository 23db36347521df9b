"""Models that come, go and come damaged while calls continue."""

import asyncio
import itertools
import random
import shutil
import signal
import time
from pathlib import Path

from benchmarks.drill.callers import Callers, check_account, translate_alone
from benchmarks.drill.damage import KINDS, copy_bundle, damage
from benchmarks.drill.drill import Drill
from benchmarks.drill.quiet import check_quiet
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server
from dragoman import AsyncClient

NUM_CALLERS = 4
RELOAD_SECONDS = 60.0
"""One that takes longer has hung."""


def run(drill: Drill) -> None:
    """Each reload finds another version, or one less, or a damaged one; none of the calls may notice."""
    with Server("reload", drill.models, drill.folder) as server:
        asyncio.run(_run(drill, server))
        check_quiet(drill, server)
        drill.check("SIGTERM ends it with exit code 0", server.stop() == 0)


async def _run(drill: Drill, server: Server) -> None:
    bundle = drill.models / drill.model
    stop = asyncio.Event()
    async with AsyncClient(server.address) as client:
        known = await translate_alone(drill, client, make_sentences(40))
        callers = Callers(drill, client, known)
        async with asyncio.TaskGroup() as tasks:
            for seed in range(NUM_CALLERS):
                tasks.create_task(callers.call_until(stop, seed))
            tasks.create_task(callers.stream_until(stop, NUM_CALLERS))
            try:
                seconds = await asyncio.to_thread(_reload_until, drill, server, bundle)
            finally:
                stop.set()
        served = {str(model.reference) for model in await client.models()}
    check_account(drill, callers.account)
    failed = {outcome: number for outcome, number in callers.account.ended.items() if outcome != "OK"}
    drill.check("no call fails by a reload", not failed, dict(callers.account.messages) or "")
    drill.check("what is served at the end is what there is", served == {drill.model}, served)
    drill.figure("reloads", len(seconds))
    drill.figure("calls meanwhile", callers.account.begun)
    drill.figure("longest reload, seconds", round(max(seconds, default=0.0), 2))
    drill.figure("longest call meanwhile, seconds", round(max(callers.account.seconds), 2))


def _reload_until(drill: Drill, server: Server, bundle: Path) -> list[float]:
    """How long each reload took."""
    generator = random.Random(1)
    until = time.monotonic() + drill.seconds
    seconds: list[float] = []
    missed = 0
    for version in itertools.count(1000):
        if time.monotonic() > until:
            break
        whole = copy_bundle(bundle, version)
        seconds.append(_reload(server))
        damaged = copy_bundle(bundle, version + 100_000)
        kind = KINDS[version % len(KINDS)]
        damage(damaged, kind, generator)
        seconds.append(_reload(server))
        missed += server.metric("dragoman_refused_bundles") != 1
        shutil.rmtree(damaged)
        shutil.rmtree(whole)
        seconds.append(_reload(server))
    drill.check("each reload ends", max(seconds) < RELOAD_SECONDS, f"{len(seconds)} reloads")
    drill.check("each damaged bundle is refused and counted", not missed, f"{len(seconds) // 3} of them")
    return seconds


def _reload(server: Server) -> float:
    """Has it read its folder again; how long that took, RELOAD_SECONDS where it did not end."""
    before = _num_reloads(server)
    began = time.monotonic()
    server.signal(signal.SIGHUP)
    while _num_reloads(server) == before and time.monotonic() - began < RELOAD_SECONDS:
        time.sleep(0.02)
    return time.monotonic() - began


def _num_reloads(server: Server) -> int:
    log = server.log.read_text()
    return sum(
        log.count(f'"message": "{message}"') for message in ("reloaded", "not reloaded", "models reloaded")
    )

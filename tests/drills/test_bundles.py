"""Bundles that come, go and come damaged, beside a whole one that is served."""

import asyncio
import itertools
import json
import random
import shutil
import signal
import time
from pathlib import Path

from tests.drills.callers import Callers, make_sentences, translate_alone

from benchmarks.servers import Server
from dragoman import AsyncClient

KINDS = ("flipped", "cut", "missing", "manifest cut", "empty")
RELOAD_SECONDS = 60.0
"""A reload that takes longer has hung."""


def copied(models: Path, version: int) -> Path:
    """A whole copy of the bundle as another version; it stands under its name only when it is complete."""
    folder, hidden = models / "de-en" / str(version), models / "de-en" / f".{version}"
    shutil.copytree((models / "de-en" / "1").resolve(), hidden)
    manifest = json.loads((hidden / "manifest.json").read_text())
    (hidden / "manifest.json").write_text(json.dumps(manifest | {"version": str(version)}))
    hidden.rename(folder)
    return folder


def damage(folder: Path, kind: str, generator: random.Random) -> None:
    """Damages one file that the manifest names, or the manifest."""
    path = folder / "manifest.json"
    if kind != "manifest cut":
        path = folder / generator.choice(sorted(json.loads(path.read_text())["files"]))
    content = path.read_bytes()
    at = generator.randrange(1, len(content) - 1)
    if kind == "missing":
        path.unlink()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "flipped":
        flipped = bytes([content[at] ^ 1 << generator.randrange(8)])
        path.write_bytes(content[:at] + flipped + content[at + 1 :])
    else:
        path.write_bytes(content[:at])


async def test_reload_of_whole_and_damaged_versions_harms_no_call(
    server: Server, models: Path, seconds: float
) -> None:
    stop = asyncio.Event()
    async with AsyncClient(server.address) as client:
        callers = Callers(client, await translate_alone(client, make_sentences(40)))
        async with asyncio.TaskGroup() as tasks:
            for seed in range(4):
                tasks.create_task(callers.call_until(stop, seed))
            tasks.create_task(callers.stream_until(stop, 4))
            try:
                took = await asyncio.to_thread(reload_until, time.monotonic() + seconds, server, models)
            finally:
                stop.set()
        assert [str(model.reference) for model in await client.models()] == ["de-en/1"]
    callers.check()
    print(f"{len(took)} reloads, {callers.begun} calls; longest {max(took):.2f} s, {callers.longest:.2f} s")


def reload_until(until: float, server: Server, models: Path) -> list[float]:
    """Brings a whole and a damaged version and takes both away, over and over; how long each reload took."""
    took: list[float] = []
    for version in itertools.count(1000):
        whole = copied(models, version)
        took.append(reload(server))
        damaged = copied(models, version + 100_000)
        damage(damaged, KINDS[version % len(KINDS)], random.Random(version))
        took.append(reload(server))
        assert server.metric("dragoman_refused_bundles") == 1
        shutil.rmtree(damaged)
        shutil.rmtree(whole)
        took.append(reload(server))
        if time.monotonic() > until:
            return took
    raise AssertionError


def reload(server: Server) -> float:
    """Has the server read its folder again; how long that took."""
    before, began = num_reloads(server), time.monotonic()
    server.signal(signal.SIGHUP)
    while num_reloads(server) == before:
        assert time.monotonic() - began < RELOAD_SECONDS
        time.sleep(0.02)
    return time.monotonic() - began


def num_reloads(server: Server) -> int:
    log = server.log.read_text()
    return sum(log.count(f'"message": "{text}"') for text in ("reloaded", "not reloaded", "models reloaded"))

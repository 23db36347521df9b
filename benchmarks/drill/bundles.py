"""Damaged bundles beside a whole one: each is refused with a reason, and the whole one is served."""

import asyncio
import itertools
import random
import shutil
import signal
import time

from dragoman_bundle import BundleError, open_bundle

from benchmarks.drill.callers import translate_alone
from benchmarks.drill.damage import KINDS, copy_bundle, damage
from benchmarks.drill.drill import Drill
from benchmarks.drill.quiet import check_quiet
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server
from dragoman import AsyncClient, Client

NUM_AT_ONCE = 5
"""Damaged bundles that the server finds at its start."""


def run(drill: Drill) -> None:
    """Bytes flipped, files cut, emptied and missing, first read alone, then by a server."""
    generator = random.Random(1)
    bundle = drill.models / drill.model
    until = time.monotonic() + drill.seconds / 2
    opened: list[str] = []
    strange: list[str] = []
    tried = 0
    for tried, kind in enumerate(itertools.cycle(KINDS), start=1):
        folder = copy_bundle(bundle, 1_000_000 + tried)
        name = damage(folder, kind, generator)
        try:
            open_bundle(folder)
            opened.append(f"{kind} {name}")
        except BundleError:
            pass
        except Exception as error:
            strange.append(f"{kind} {name}: {error!r}"[:200])
        shutil.rmtree(folder)
        if time.monotonic() > until and tried >= len(KINDS):
            break
    drill.figure("bundles damaged", tried)
    drill.check("no damaged bundle opens", not opened, opened[:3] or f"{tried} tried")
    drill.check("each is refused by an error that says why", not strange, strange[:3] or "")
    for number, kind in zip(range(NUM_AT_ONCE), itertools.cycle(KINDS), strict=False):
        damage(copy_bundle(bundle, 2_000_000 + number), kind, generator)
    with Server("bundles", drill.models, drill.folder) as server:
        asyncio.run(_serve(drill, server))
        check_quiet(drill, server)
        drill.check("SIGTERM ends it with exit code 0", server.stop() == 0)


async def _serve(drill: Drill, server: Server) -> None:
    refused = server.metric("dragoman_refused_bundles")
    drill.check("a server refuses each and starts", refused == NUM_AT_ONCE, f"{refused:g} of {NUM_AT_ONCE}")
    async with AsyncClient(server.address) as client:
        before = await translate_alone(drill, client, make_sentences(5))
        server.signal(signal.SIGHUP)
        await asyncio.sleep(1)
        after = await translate_alone(drill, client, make_sentences(5))
    drill.check("the whole one translates as before a reload that finds them again", before == after)
    with Client(server.address) as served:
        models = [str(model.reference) for model in served.models()]
    drill.check("nothing else is served", models == [drill.model], models)

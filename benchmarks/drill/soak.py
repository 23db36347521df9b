"""Calls and streams of all kinds for as long as is asked, each accounted for, and memory watched."""

import asyncio
import random

from benchmarks.drill.callers import Callers, check_account, translate_alone
from benchmarks.drill.drill import Drill
from benchmarks.drill.quiet import check_quiet
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server
from dragoman import AsyncClient
from dragoman_server.sizing.process_memory import memory_of

NUM_CALLERS, NUM_STREAMS, NUM_HASTY = 6, 2, 2
MIB = 2**20
MOST_GROWTH = 1.5
"""Times the memory after the first quarter that the server may have at the end."""


def run(drill: Drill) -> None:
    """Callers, streams, and callers in a hurry, whose calls run out of time or are cancelled."""
    with Server("soak", drill.models, drill.folder) as server:
        asyncio.run(_run(drill, server))
        check_quiet(drill, server)
        drill.check("SIGTERM ends it with exit code 0", server.stop() == 0)


async def _run(drill: Drill, server: Server) -> None:
    stop = asyncio.Event()
    async with AsyncClient(server.address) as client:
        known = await translate_alone(drill, client, make_sentences(60))
        callers, hasty = Callers(drill, client, known), Callers(drill, client, known)

        async def hurry(seed: int) -> None:
            generator = random.Random(seed)
            while not stop.is_set():
                texts = generator.sample(list(known), 20)
                call = asyncio.create_task(hasty.call(texts, seconds=generator.uniform(0.001, 0.3)))
                if generator.random() < 0.5:
                    await asyncio.sleep(generator.uniform(0.0, 0.1))
                    if call.cancel():
                        hasty.account.ended["CANCELLED by the caller"] += 1
                await asyncio.wait({call})

        async with asyncio.TaskGroup() as tasks:
            for seed in range(NUM_CALLERS):
                tasks.create_task(callers.call_until(stop, seed))
            for seed in range(NUM_STREAMS):
                tasks.create_task(callers.stream_until(stop, seed))
            for seed in range(NUM_HASTY):
                tasks.create_task(hurry(seed))
            await asyncio.sleep(drill.seconds / 4)
            early = memory_of(server.process_id).total
            await asyncio.sleep(drill.seconds * 3 / 4)
            late = memory_of(server.process_id).total
            stop.set()
    check_account(drill, callers.account)
    failed = {outcome: number for outcome, number in callers.account.ended.items() if outcome != "OK"}
    drill.check("no call with time enough fails", not failed, dict(callers.account.messages) or "")
    begun, ended = hasty.account.begun, sum(hasty.account.ended.values())
    drill.check(
        "each call in a hurry ends once", begun == ended, f"{begun} begun, {dict(hasty.account.ended)}"
    )
    drill.check(
        "what a call in a hurry has is right", not hasty.account.texts["wrong"], dict(hasty.account.texts)
    )
    drill.figure("calls", callers.account.begun + hasty.account.begun)
    drill.figure("texts translated", callers.account.texts["right"] + hasty.account.texts["right"])
    drill.figure("MiB after a quarter", round(early / MIB))
    drill.figure("MiB at the end", round(late / MIB))
    grown = f"{early / MIB:.0f} to {late / MIB:.0f} MiB"
    drill.check("memory stays within bounds", late < MOST_GROWTH * early, grown)

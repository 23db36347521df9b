"""Ten times what a server can do: who is turned away is told so at once, and when to come back."""

import asyncio
import random
import time

from benchmarks.drill.callers import Callers, check_account, translate_alone
from benchmarks.drill.drill import Drill
from benchmarks.drill.quiet import check_quiet
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server
from benchmarks.serve.percentiles import percentile
from dragoman import AsyncClient, OverloadedError

NUM_CALLERS = 400
TEXTS = 40
OPTIONS = ["--max-queue", "400"]


def run(drill: Drill) -> None:
    """Callers that come again at once, far more than the queue has room for."""
    with Server("overload", drill.models, drill.folder, OPTIONS) as server:
        asyncio.run(_run(drill, server))
        check_quiet(drill, server)
        drill.check("SIGTERM ends it with exit code 0", server.stop() == 0)


async def _run(drill: Drill, server: Server) -> None:
    refusals: list[float | None] = []
    seconds_until_refused: list[float] = []
    async with AsyncClient(server.address) as client:
        known = await translate_alone(drill, client, make_sentences(60))
        callers = Callers(drill, client, known)
        account = callers.account
        until = time.monotonic() + drill.seconds

        async def push(seed: int) -> None:
            generator = random.Random(seed)
            while time.monotonic() < until:
                texts = generator.sample(list(known), TEXTS)
                since = time.monotonic()
                account.begun += 1
                try:
                    answers = await client.translate(
                        texts, source=drill.source, target=drill.target, timeout_seconds=60
                    )
                except OverloadedError as error:
                    account.fail(error, since)
                    refusals.append(error.retry_after_seconds)
                    seconds_until_refused.append(time.monotonic() - since)
                    await asyncio.sleep(0.2)
                else:
                    account.end("OK", since)
                    right = sum(each.text == known[text] for text, each in zip(texts, answers, strict=True))
                    account.texts["right"] += right
                    account.texts["wrong"] += len(texts) - right

        async with asyncio.TaskGroup() as tasks:
            for seed in range(NUM_CALLERS):
                tasks.create_task(push(seed))
        check_account(drill, account)
        drill.check("it was overloaded at all", bool(refusals), f"{len(refusals)} refusals")
        others = sorted(set(account.ended) - {"OK", "RESOURCE_EXHAUSTED"})
        drill.check("who is not translated is refused by RESOURCE_EXHAUSTED", not others, others or "")
        told = [seconds for seconds in refusals if seconds is not None]
        drill.check("each refusal says when to come back", len(told) == len(refusals), f"{len(told)} do")
        drill.figure("calls translated", account.ended["OK"])
        drill.figure("calls refused", account.ended["RESOURCE_EXHAUSTED"])
        for q in (50, 99) if seconds_until_refused else ():
            drill.figure(f"seconds until a call is refused, p{q}", percentile(seconds_until_refused, q))
        await callers.call(list(known)[:1])
        drill.check("it translates again afterwards", account.ended["OK"] > 0 and not account.texts["wrong"])

"""Both systems in turns, each at its best: the same token ids, and as many tokens decoded."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click
import grpc

import dragoman
from benchmarks.corpus import read_corpus
from benchmarks.engines import open_decoder, running_engine
from benchmarks.harness import INPUT, LIMIT, REPEATS, THREADS, Found, option, scenario, several
from benchmarks.load import (
    LATENCY_COLUMNS,
    arrivals_of,
    latency_row,
    make_requests,
    run_callers,
    run_closed_loop,
)
from benchmarks.machine import describe_machine, memory_of, pinned_to, share_out
from benchmarks.measuring import in_turns, ratio, say, summarize
from benchmarks.peers import running_peer
from benchmarks.report import Row, Table
from benchmarks.scenarios.peers.models import CTRANSLATE2, NUM_COMMON, NUM_TARGETS, SIZES, Prepared, prepare
from benchmarks.servers import running_server
from dragoman.load import Answered, percentile
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc
from dragoman_server.engine import SearchOptions, Sentence
from dragoman_server.engine.pool.pool import EnginePool

OURS, PEER = "engine", "ctranslate2"
ALONE, FILE = "a sentence alone", "a file"
BATCHES, SERVER_BATCHES = (8, 16, 32), (8, 32)
"""Sentences in a batch of CTranslate2's: of these, and what gives each worker one, the fastest counts."""
NUM_ALONE = 8
"""Sentences that are translated one after the other."""
LOADS = (0.25, 0.5, 0.75)
CONCURRENCY = 128
"""Callers at a time while it is measured what a server bears."""
WORKER = Path(__file__).with_name("ctranslate2_worker.py")
SHORTLIST = (
    f" The lexicon is random: {NUM_COMMON} pieces for every sentence, {NUM_TARGETS} for each source piece, "
    "drawn by rank. CTranslate2 decodes over those of a batch, the engine over each sentence's own."
)
FIRST_COLUMNS = (("size", "model"), ("shortlist", "shortlist"), ("threads", "threads", "d"))


@scenario(
    several(
        "--sizes", ("small", "base", "opus"), "Sizes of the checkpoints, which have random weights.", SIZES
    ),
    option("--measure", "speed", "What is compared.", type=click.Choice(["speed", "served", "memory"])),
    several("--beams", (4, 1), "Beam sizes; the servers' is the first."),
    option("--shortlist", False, "Both decode with a shortlist of the same lexicon, a random one."),
    option("--seconds", 15.0, "Of `served`, length of one run at one load."),
    option("--models", Path("runs/same-weights"), "Where the checkpoints are kept.", to="folder"),
    option(
        "--export/--no-export", True, "Export the bundles anew, or take those of a run before.", to="exports"
    ),
    INPUT,
    LIMIT,
    THREADS,
    REPEATS,
)
def command(
    *,
    sizes: list[str],
    measure: str,
    beams: list[int],
    shortlist: bool,
    seconds: float,
    folder: Path,
    exports: bool,
    source: Path,
    limit: int | None,
    threads: int,
    repeats: int,
) -> Found:
    """Compare the engine with CTranslate2 on MarianMT checkpoints: of each size, exported and converted.

    \b
      speed   target tokens a second of a file, and of sentences alone
      served  latency of callers of both servers at 25, 50 and 75% of the load that ours bears
      memory  of both servers, with one thread and with --threads

    CTranslate2 is installed by pip into .venv-peers/ when it is first used.

    \b
      python -m benchmarks peers --sizes opus --limit 120 --shortlist
      python -m benchmarks peers --sizes small --measure served --threads 1
    """
    corpus = read_corpus(source, None, limit)
    rows: list[Row] = []
    for name in sizes:
        say(f"{name}: {SIZES[name]}: making the models")
        prepared = prepare(
            name, corpus, source, folder, threads=threads, exports=exports, shortlist=shortlist
        )
        if measure == "speed":
            found = _measure_speed(prepared, beams, threads, repeats)
        elif measure == "served":
            found = _measure_served(prepared, beams[0], threads, repeats, seconds)
        else:
            found = _measure_memory(prepared, beams[0], threads, repeats)
        rows += [{"size": name, "shortlist": shortlist, **row} for row in found]
    title, columns, note = _SHOWN[measure]
    table = Table(
        name="rows",
        title=f"{title}, {corpus.name}, {len(corpus.sources):,} sentences, median of {repeats}",
        columns=[*FIRST_COLUMNS, *columns],
        rows=rows,
        note=note + SHORTLIST * shortlist,
    )
    facts = {"sizes": {name: asdict(SIZES[name]) for name in sizes}, "peers": {PEER: CTRANSLATE2}}
    return Found(tables=[table], facts={**facts, "input": corpus.name, "repeats": repeats})


def _measure_speed(prepared: Prepared, beams: Sequence[int], threads: int, repeats: int) -> list[Row]:
    task = {
        "model": str(prepared.converted),
        "sentences": [[prepared.pieces[id_] for id_ in ids] for ids in prepared.sentences],
        "steps": prepared.steps,
        "shortlist": prepared.shortlist,
    }
    rows: list[Row] = []
    with running_peer(prepared.python, WORKER, task, fastest_instructions()) as (peer, _):
        for beam in beams:
            decoder = open_decoder(prepared.bundle, precision="int8", shortlist=prepared.shortlist)
            with running_engine(decoder, beam_size=beam, threads=threads) as engine:
                for source in (FILE, ALONE):
                    ours = partial(_decode, engine, prepared, beam, source)
                    ours()
                    settings = settings_of_peer(source, beam, threads, len(prepared.sentences))
                    best = min(settings, key=lambda each: peer.ask(each)["seconds"])
                    row = _compare(
                        ours, partial(peer.ask, best), f"{prepared.name}, {source}, beam {beam}", repeats
                    )
                    setting = f"{best['workers']} x {best['threads_per_worker']}, {best['batch']}"
                    if source == ALONE:
                        row |= {f"{name}_ms": 1000 * prepared.steps / row[name] for name in (OURS, PEER)}
                    rows.append(
                        {"threads": threads, "input": source, "beam": beam, "setting": setting, **row}
                    )
    return rows


def _compare(
    ours: Callable[[], dict[str, Any]], theirs: Callable[[], dict[str, Any]], what: str, repeats: int
) -> dict[str, Any]:
    """Target tokens a second of both, in turns, and their ratio."""
    cases = {f"{what}: {OURS}": ours, f"{what}: {PEER}": theirs}
    runs = in_turns(cases, repeats, lambda done: f"{done['tokens'] / done['seconds']:,.0f} target tokens/s")
    assert len({done["tokens"] for results in runs.values() for done in results}) == 1, "not as many tokens"
    one, other = (
        summarize([done["tokens"] / done["seconds"] for done in results]) for results in runs.values()
    )
    quotient = ratio(one.values, other.values)
    return {OURS: one.median, PEER: other.median, "ratio": quotient.median, "spread": quotient.spread}


def _decode(engine: EnginePool, prepared: Prepared, beam: int, source: str) -> dict[str, Any]:
    options = SearchOptions(
        beam_size=beam, num_hypotheses=1, length_penalty=1.0, max_output_tokens=prepared.steps
    )
    sentences = [Sentence(source=tuple(ids), options=options) for ids in prepared.sentences]
    calls = [[sentence] for sentence in sentences[:NUM_ALONE]] if source == ALONE else [sentences]
    started = time.perf_counter()
    results = [future.result() for call in calls for future in engine.submit(call)]
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "tokens": sum(len(result.hypotheses[0].tokens) for result in results)}


def settings_of_peer(source: str, beam: int, threads: int, num_sentences: int) -> Iterator[dict[str, Any]]:
    """Ways for CTranslate2 to use so many threads."""
    is_alone = source == ALONE
    number = min(NUM_ALONE, num_sentences) if is_alone else num_sentences
    for workers, own in sorted({(1, threads)} if is_alone else {(threads, 1), (1, threads)}, reverse=True):
        # Of few sentences the workers would have unequal numbers of batches.
        for batch in BATCHES[:1] if is_alone else sorted({*BATCHES, math.ceil(number / workers)}):
            given = {"sentences": number, "alone": is_alone, "beam": beam, "batch": batch}
            yield {**given, "workers": workers, "threads_per_worker": own}


def fastest_instructions() -> dict[str, str]:
    """What CTranslate2 is told of the processor: it chooses AVX2 by itself on some that have more."""
    return {"CT2_FORCE_CPU_ISA": "AVX512"} if "avx512f" in describe_machine(())["flags"] else {}


def _measure_served(prepared: Prepared, beam: int, threads: int, repeats: int, seconds: float) -> list[Row]:
    cores, requests = share_out(threads), _requests(prepared, beam)

    def bears(address: str) -> float:
        total = len(requests)
        return run_closed_loop(address, requests, total=total, concurrency=min(CONCURRENCY, total))

    tried: dict[tuple[int, int, int], float] = {}
    for workers, own in sorted({(threads, 1), (1, threads)}, reverse=True):
        for batch in SERVER_BATCHES:
            with (
                _served_by_peer(prepared, beam, workers, own, batch) as (address, _),
                pinned_to(cores.generator),
            ):
                bears(address)
                tried[workers, own, batch] = bears(address)
            say(f"{PEER}, {workers} x {own}, {batch}: {tried[workers, own, batch]:,.1f} sentences/s at most")
    best = max(tried, key=lambda each: tried[each])
    answered: dict[tuple[str, float], list[Answered]] = defaultdict(list)
    with ExitStack() as stack:
        addresses = {
            OURS: stack.enter_context(_served_by_us(prepared, beam, threads))[0],
            PEER: stack.enter_context(_served_by_peer(prepared, beam, *best))[0],
        }
        stack.enter_context(pinned_to(cores.generator))
        for address in addresses.values():
            bears(address)
            assert _num_tokens(address, requests[0]) == prepared.steps, "not as many tokens"
        cases = {system: partial(bears, address) for system, address in addresses.items()}
        bearing = in_turns(cases, repeats, lambda rate: f"{rate:,.1f} sentences/s at most")
        capacity = {system: median(found) for system, found in bearing.items()}
        for repeat in range(repeats):
            for load in LOADS:
                arrivals = arrivals_of(requests, load * capacity[OURS], seconds, repeat)
                for system, address in addresses.items():
                    one = run_callers(address, requests, arrivals).answered
                    answered[system, load].append(one)
                    say(f"{system} at {load:.0%}: p99 {1e3 * percentile(one.latencies, 99):,.0f} ms")
    return [
        {
            "threads": threads,
            "system": system,
            "setting": "{} x {}, {}".format(*best) if system == PEER else None,
            "capacity": capacity[system],
            "load": load,
            "arrivals_per_second": load * capacity[OURS],
            **latency_row(runs),
        }
        for (system, load), runs in answered.items()
    ]


def _measure_memory(prepared: Prepared, beam: int, threads: int, repeats: int) -> list[Row]:
    requests = _requests(prepared, beam)

    def run(number: int, system: str) -> tuple[float, float]:
        """MiB of a server when it is ready, and after all sentences."""
        ours = partial(_served_by_us, prepared, beam, number)
        theirs = partial(_served_by_peer, prepared, beam, number, 1, SERVER_BATCHES[-1])
        with (ours if system == OURS else theirs)() as (address, process):
            ready = memory_of(process) / 2**20
            total = len(requests)
            run_closed_loop(address, requests, total=total, concurrency=min(CONCURRENCY, total))
            return ready, memory_of(process) / 2**20

    cases = {
        (number, system): partial(run, number, system)
        for number in sorted({1, threads})
        for system in (OURS, PEER)
    }
    runs = in_turns(cases, repeats, lambda found: f"{found[0]:,.0f} MiB, then {found[1]:,.0f}")
    return [
        {
            "threads": number,
            "system": system,
            "ready": median(ready for ready, _ in found),
            "after": median(after for _, after in found),
        }
        for (number, system), found in runs.items()
    ]


@contextmanager
def _served_by_us(prepared: Prepared, beam: int, threads: int) -> Iterator[tuple[str, int]]:
    """Address and process of a `dragoman serve`."""
    bundle = prepared.bundle
    options = {"--precision": "int8", "--threads": threads, "--max-beam-size": beam}
    with ExitStack() as stack:
        with pinned_to(share_out(threads).server):
            server = stack.enter_context(running_server(bundle.path, bundle.manifest.key, options))
        yield server.address, server.process_id


@contextmanager
def _served_by_peer(
    prepared: Prepared, beam: int, workers: int, threads_per_worker: int, batch: int
) -> Iterator[tuple[str, int]]:
    """Address and process of CTranslate2 behind a plain server."""
    task = {
        "model": str(prepared.converted),
        "source": str(prepared.checkpoint / "source.spm"),
        "target": str(prepared.checkpoint / "target.spm"),
        "workers": workers,
        "threads_per_worker": threads_per_worker,
        "batch": batch,
        "beam": beam,
        "steps": prepared.steps,
        "shortlist": prepared.shortlist,
    }
    environment = {**fastest_instructions(), "PYTHONPATH": str(Path(dragoman.__file__).parents[1])}
    with ExitStack() as stack:
        with pinned_to(share_out(workers * threads_per_worker).server):
            running = running_peer(prepared.python, WORKER, task, environment)
            peer, answer = stack.enter_context(running)
        yield f"127.0.0.1:{answer['port']}", peer.process_id


def _requests(prepared: Prepared, beam: int) -> list[pb.TranslateRequest]:
    """A call for each text: of every one a single search, of as many tokens."""
    requests = make_requests(
        prepared.texts, prepared.bundle, beam_size=beam, max_output_tokens=prepared.steps
    )
    for request in requests:
        request.protection.automatic = False
    return requests


def _num_tokens(address: str, request: pb.TranslateRequest) -> int:
    with grpc.insecure_channel(address) as channel:
        stub: pb_grpc.TranslationServiceStub = pb_grpc.TranslationServiceStub(channel)
        (translation,) = stub.Translate(request, timeout=60).translations
        return translation.target_tokens


_SHOWN: dict[str, tuple[str, list[Any], str]] = {
    "speed": (
        "The same weights in int8",
        [
            ("input", "input"),
            ("beam", "beam", "d"),
            (OURS, "engine, target tokens/s", ",.0f"),
            (PEER, "CTranslate2", ",.0f"),
            ("setting", "its workers x threads, batch"),
            (f"{OURS}_ms", "engine, ms", ",.0f"),
            (f"{PEER}_ms", "CTranslate2, ms", ",.0f"),
            ("ratio", "ratio", ".2f"),
            ("spread", "spread", ".0%"),
        ],
        (
            "MarianMT checkpoints with random weights, exported here and converted by CTranslate2's own "
            "converter. Both are given the same token ids and decode the same number of tokens. Ratios are "
            "of target tokens a second, ours to CTranslate2's in its fastest setting, as the median of the "
            "repeats."
        ),
    ),
    "served": (
        "Callers with one sentence each, the same weights in int8",
        [
            ("system", "server"),
            ("setting", "workers x threads, batch"),
            ("capacity", "sentences/s at most", ",.1f"),
            ("load", "load", ".0%"),
            ("arrivals_per_second", "arrivals/s", ",.1f"),
            *LATENCY_COLUMNS,
        ],
        (
            "Load: Poisson arrivals as a share of what `dragoman serve` bears at most; both servers get the "
            "same callers, in turns, who ask for the same number of tokens. CTranslate2 stands behind a "
            "plain gRPC server whose workers take what waits, up to a batch, in the setting in which it "
            "bears most. Latency counts from when a sentence was to arrive."
        ),
    ),
    "memory": (
        "Memory of servers with the same weights in int8",
        [
            ("system", "server"),
            ("ready", "MiB when ready", ",.0f"),
            ("after", "MiB after all sentences", ",.0f"),
        ],
        (
            "PSS of all processes of a server, Python among it. All sentences come one a call, with many "
            "callers at a time. CTranslate2 has a worker for each thread."
        ),
    ),
}

"""All systems in turns on one thread, from text to text: the same words in, and as many out."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dragoman
from benchmarks.engines import open_decoder, running_engine
from benchmarks.harness import REPEATS, Found, option, scenario, several
from benchmarks.load import arrivals_of, make_requests, run_callers, run_closed_loop, run_job
from benchmarks.machine import describe_machine, memory_of, pinned_to, share_out
from benchmarks.measuring import in_turns, ratio, summarize
from benchmarks.peers import Peer, make_environment, running_peer
from benchmarks.report import Row, Table
from benchmarks.scenarios.peers.models import SHAPES, Prepared, prepare, word
from benchmarks.servers import running_server
from dragoman.load import percentile
from dragoman_server.engine import SearchOptions, Sentence
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.scheduling.scheduler import CALM_SECONDS

PACKAGES = (
    *("ctranslate2==4.8.5", "fxtranslate==0.5.0", "pymarian==1.12.42", "sentencepiece==0.2.3"),
    *("grpcio==1.85.1", "protobuf==7.36.2", "googleapis-common-protos==1.76.0"),
)
WORKER = Path(__file__).with_name("worker.py")
OURS, CTRANSLATE2, MARIAN, FXTRANSLATE = "engine", "ctranslate2", "marian", "fxtranslate"
PEERS = (CTRANSLATE2, MARIAN, FXTRANSLATE)
BATCHES = (8, 16, 32, 64)
"""Sentences in a batch of CTranslate2's, of which the fastest counts; the third is Marian's."""
LENGTH, DEVIATION, LENGTHS = 14, 4, (3, 39)
"""Words of a sentence: their mean, its deviation, and the least and the most; the end comes behind them."""
OFFLINE_SHARE = 0.6
"""Share of the time that is not for servers."""
LOAD = 0.5
JOB_SHARE = 4
"""Lines of a batch job for each sentence of a file."""
Run = dict[str, float]


@scenario(
    several(
        "--sizes", ("small", "base", "opus", "tiny11"), "Shapes of the models, with random weights.", SHAPES
    ),
    several("--beams", (4, 1), "Beam sizes; the servers' is the first, and Mozilla's engine is greedy."),
    option("--sentences", 64, "Sentences of a file."),
    option("--alone", 16, "Sentences that are translated one after the other."),
    option("--seconds", 5.0, "Length of a server's run at half of the load that ours bears."),
    option(
        "--minutes",
        15.0,
        "When no repeat begins any more; what is left when the models are there is shared out.",
    ),
    option("--models", Path("runs/peers"), "Folder of the models, and of cells.jsonl.", to="folder"),
    REPEATS,
)
def command(
    *,
    sizes: list[str],
    beams: list[int],
    sentences: int,
    alone: int,
    seconds: float,
    minutes: float,
    folder: Path,
    repeats: int,
) -> Found:
    """Compare the engine with CTranslate2, Marian and Mozilla's engine, on the same weights and one thread.

    Files and sentences alone are timed by the processor, and servers by the clock. Marian computes in floats,
    all others in 8 bits. The peers are installed by pip into .venv-peers/, and the models made, when they are
    missing: remove the folder of the models after a change of the export. Every result stands in cells.jsonl
    as soon as it is there.
    """
    python = make_environment("engines", PACKAGES)
    rows: list[Row] = []
    folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + 60 * minutes
    with (folder / "cells.jsonl").open("w", encoding="utf-8", buffering=1) as cells:
        prepared = {size: prepare(folder / size, SHAPES[size], python) for size in sizes}
        began = time.monotonic()
        share = max(0.0, ends - began) / len(sizes)
        for number, size in enumerate(sizes):
            until = began + share * (number + 1)
            turns = _Turns(cells, size, repeats)
            texts = _draw(sentences)
            steps = prepared[size].shape.growth * round(
                sum(len(text.split()) + 1 for text in texts) / len(texts)
            )
            given = (turns, prepared[size], python, texts, texts[:alone], steps)
            offline = _measure_offline(*given, beams, until - share * (1 - OFFLINE_SHARE), rows)
            _measure_served(*given, beams[0], until, rows, offline, seconds)
    table = Table(
        name="rows",
        title=f"The same weights on one thread, {sentences} sentences, median of at most {repeats} in turns",
        columns=[
            ("size", "model"),
            ("what", "what"),
            ("beam", "beam", "d"),
            ("unit", "unit"),
            *((system, system, ",.0f") for system in (OURS, *PEERS)),
            *((f"over_{system}", f"over {system}", ".2f") for system in PEERS),
            *((f"spread_{system}", "spread", ".0%") for system in PEERS),
            ("of_offline", "of offline", ".2f"),
            ("spread_offline", "spread", ".0%"),
        ],
        rows=rows,
        note="Words that come out, a second of the processor; of servers, of the clock. CTranslate2 "
        "has its fastest batch, and of SSRU the Transformer of that width. Ratios are ours over theirs, the "
        "medians of the repeats' own; spread: highest less lowest. Of offline: what is served over what the "
        "engine alone does by the clock. Memory is private to the processes, after "
        "all sentences; Marian and Mozilla's engine are no servers.",
    )
    facts = {"sizes": {size: asdict(SHAPES[size]) for size in sizes}, "peers": PACKAGES}
    return Found(tables=[table], facts=facts)


def _draw(number: int) -> list[str]:
    """Sentences of random words, of lengths as texts have them."""
    random = np.random.default_rng(1)
    lengths = np.clip(random.normal(LENGTH, DEVIATION, number).round(), *LENGTHS).astype(int)
    return [" ".join(map(word, random.integers(2, 800, length).tolist())) for length in lengths]


class _Turns:
    """Runs what is compared, and keeps every result as it comes."""

    def __init__(self, cells: Any, size: str, repeats: int) -> None:
        self._cells = cells
        self._size = size
        self._repeats = repeats

    def run(
        self, cases: Mapping[tuple[str, int, str, str], Callable[[], Run]], until: float, rows: list[Row]
    ) -> dict[tuple[str, int, str, str], list[Run]]:
        """Adds a row for each of the cases' first three parts (what, beam, unit); the last is the system."""

        def kept(case: tuple[str, int, str, str], run: Callable[[], Run]) -> Run:
            found = run()
            self._cells.write(json.dumps({"size": self._size, "case": case, **found}) + "\n")
            return found

        wrapped = {case: partial(kept, case, run) for case, run in cases.items()}
        runs = in_turns(wrapped, self._repeats, lambda found: f"{found['value']:,.1f}", until=until)
        for key in dict.fromkeys(case[:3] for case in cases):
            of_key = {case[3]: [each["value"] for each in runs[case]] for case in cases if case[:3] == key}
            row: dict[str, Any] = {
                "size": self._size,
                **dict(zip(("what", "beam", "unit"), key, strict=True)),
            }
            for system, values in of_key.items():
                row[system] = summarize(values).median
                if system != OURS:
                    quotient = ratio(of_key[OURS], values)
                    row |= {f"over_{system}": quotient.median, f"spread_{system}": quotient.spread}
            rows.append(row)
        return runs


def _measure_offline(
    turns: _Turns,
    prepared: Prepared,
    python: Path,
    texts: list[str],
    few: list[str],
    steps: int,
    beams: Sequence[int],
    until: float,
    rows: list[Row],
) -> dict[str, list[float]]:
    """Files and sentences alone; ours of the first beam by the clock, by what was translated."""
    cases: dict[tuple[str, int, str, str], Callable[[], Run]] = {}
    memory = dict[str, float]()
    with ExitStack() as stack:
        task = {**prepared.task(), "steps": steps}
        systems = {
            system: stack.enter_context(running_peer(python, WORKER, {**task, "system": system}, _fastest()))[
                0
            ]
            for system in (PEERS if prepared.shape.is_ssru else PEERS[:2])
        }
        decoder = open_decoder(prepared.bundle, precision="int8", shortlist=prepared.shape.shortlist)
        for beam in beams:
            engine = stack.enter_context(running_engine(decoder, beam_size=beam))
            for what, given in (("a file", texts), ("alone", few)):
                is_alone = what == "alone"
                cases[what, beam, "words/s", OURS] = partial(
                    _decode, engine, prepared, given, beam, steps, is_alone
                )
                for system, peer in systems.items():
                    if system == FXTRANSLATE and beam > 1:
                        continue
                    asked = {
                        "texts": given,
                        "beam": beam,
                        "alone": is_alone,
                        "batch": 1 if is_alone else BATCHES[2],
                    }
                    if system == CTRANSLATE2 and not is_alone:
                        tried = {batch: _ask(peer, {**asked, "batch": batch}) for batch in BATCHES}
                        asked["batch"] = max(tried, key=lambda batch: tried[batch]["value"])
                    elif not is_alone:
                        memory.setdefault(system, _ask(peer, asked)["mib"])
                    cases[what, beam, "words/s", system] = partial(_ask, peer, asked)
                _decode(engine, prepared, given, beam, steps, is_alone)
        runs = turns.run(cases, until, rows)
    offline = {
        what: [each["words"] / each["wall"] for each in runs[what, beams[0], "words/s", OURS]]
        for what in ("a file", "alone")
    }
    return offline | {system: [mib] for system, mib in memory.items()}


def _decode(
    engine: EnginePool, prepared: Prepared, texts: Sequence[str], beam: int, steps: int, is_alone: bool
) -> Run:
    bundle = prepared.bundle
    options = SearchOptions(beam_size=beam, num_hypotheses=1, length_penalty=1.0, max_output_tokens=steps)
    end, words = bundle.manifest.source_ids.eos, 0
    began, wall = time.process_time(), time.perf_counter()
    for call in [[text] for text in texts] if is_alone else [texts]:
        ids = bundle.source_tokenizer.encode_ids(call)
        for future in engine.submit([Sentence(source=(*each, end), options=options) for each in ids]):
            tokens = future.result().hypotheses[0].tokens
            words += len(bundle.target_tokenizer.decode_text(tokens).split())
    seconds = time.process_time() - began
    return {"value": words / seconds, "words": words, "wall": time.perf_counter() - wall}


def _ask(peer: Peer, asked: Mapping[str, object]) -> Run:
    answer = peer.ask(asked)
    return {**answer, "value": answer["words"] / answer["seconds"]}


def _fastest() -> dict[str, str]:
    """What CTranslate2 is told of the processor: it chooses AVX2 by itself on some that have more."""
    return {"CT2_FORCE_CPU_ISA": "AVX512"} if "avx512f" in describe_machine(())["flags"] else {}


def _measure_served(
    turns: _Turns,
    prepared: Prepared,
    python: Path,
    texts: list[str],
    few: list[str],
    steps: int,
    beam: int,
    until: float,
    rows: list[Row],
    offline: Mapping[str, list[float]],
    seconds: float,
) -> None:
    """Servers of ours and of CTranslate2: a caller, many, a job, and callers at half of what ours bears."""
    requests = make_requests(texts, prepared.bundle, beam_size=beam, max_output_tokens=steps)
    for request in requests:
        request.protection.automatic = False
    lone, many, half = "served, a caller", "served, many callers", f"served at {LOAD:.0%} load"
    with ExitStack() as stack:
        servers = {
            OURS: stack.enter_context(_our_server(prepared, beam)),
            CTRANSLATE2: stack.enter_context(_peer_server(prepared, python, beam, steps)),
        }
        stack.enter_context(pinned_to(share_out(1).generator))

        def calls(system: str, number: int, callers: int) -> Run:
            return {
                "value": steps
                * run_closed_loop(servers[system][0], requests, total=number, concurrency=callers)
            }

        def job() -> Run:
            # Callers who have just been there would hold the job back.
            time.sleep(CALM_SECONDS)
            return {"value": steps * run_job(servers[OURS][0], requests, total=JOB_SHARE * len(requests))}

        for system in servers:
            calls(system, len(requests), len(requests))
        cases: dict[tuple[str, int, str, str], Callable[[], Run]] = {
            (what, beam, "words/s", system): partial(calls, system, number, callers)
            for what, number, callers in ((lone, len(few), 1), (many, len(texts), len(texts)))
            for system in servers
        }
        cases["served, a job", beam, "words/s", OURS] = job
        runs = turns.run(cases, until - 2 * seconds, rows)
        for what, other in (("served, a caller", "alone"), ("served, a job", "a file")):
            served = [each["value"] for each in runs[what, beam, "words/s", OURS]]
            times = min(len(served), len(offline[other]))
            quotient = ratio(served[:times], offline[other][:times])
            row = next(row for row in rows[-3:] if row["what"] == what)
            row |= {"of_offline": quotient.median, "spread_offline": quotient.spread}  # type: ignore[operator]
        rate = LOAD * next(row for row in rows[-3:] if row["what"] == many)[OURS] / steps
        arrivals = arrivals_of(requests, rate, seconds, 0)

        def waited(system: str) -> Run:
            answered = run_callers(servers[system][0], requests, arrivals).answered
            return {"value": 1e3 * percentile(answered.latencies, 99), "failed": answered.num_failed}

        halves = {(half, beam, "p99, ms", system): partial(waited, system) for system in servers}
        turns.run(halves, until, rows)
        mib = {system: memory_of(process) / 2**20 for system, (_, process) in servers.items()}
    memory = {**mib, **{system: offline[system][0] for system in PEERS if system in offline}}
    cases = {("memory", beam, "MiB", system): partial(dict, value=found) for system, found in memory.items()}
    turns.run(cases, 0.0, rows)


@contextmanager
def _our_server(prepared: Prepared, beam: int) -> Iterator[tuple[str, int]]:
    """Address and process of a `dragoman serve`."""
    bundle = prepared.bundle
    options = {"--precision": "int8", "--threads": 1, "--max-beam-size": beam}
    with ExitStack() as stack:
        with pinned_to(share_out(1).server):
            server = stack.enter_context(running_server(bundle.path, bundle.manifest.key, options))
        yield server.address, server.process_id


@contextmanager
def _peer_server(prepared: Prepared, python: Path, beam: int, steps: int) -> Iterator[tuple[str, int]]:
    """Address and process of CTranslate2 behind a plain server."""
    task = {
        **prepared.task(),
        "system": CTRANSLATE2,
        "serve": True,
        "beam": beam,
        "batch": BATCHES[2],
        "steps": steps,
    }
    environment = {**_fastest(), "PYTHONPATH": str(Path(dragoman.__file__).parents[1])}
    with ExitStack() as stack:
        with pinned_to(share_out(1).server):
            peer, answer = stack.enter_context(running_peer(python, WORKER, task, environment))
        yield f"127.0.0.1:{answer['port']}", peer.process_id

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

from benchmarks.engines import open_decoder, running_engine
from benchmarks.harness import REPEATS, Found, option, scenario, several
from benchmarks.load import make_requests, run_closed_loop
from benchmarks.machine import describe_machine, memory_of
from benchmarks.measuring import in_turns, ratio, summarize
from benchmarks.peers import Peer, make_environment, running_peer
from benchmarks.report import Row, Table
from benchmarks.scenarios.peers.models import SHAPES, Prepared, prepare, word
from benchmarks.servers import running_server
from dragoman_server.engine import SearchOptions, Sentence
from dragoman_server.engine.pool.pool import EnginePool

PACKAGES = ("ctranslate2==4.8.5", "fxtranslate==0.5.0", "pymarian==1.12.42", "sentencepiece==0.2.3")
WORKER = Path(__file__).with_name("worker.py")
OURS, CTRANSLATE2, MARIAN, FXTRANSLATE = "engine", "ctranslate2", "marian", "fxtranslate"
PEERS = (CTRANSLATE2, MARIAN, FXTRANSLATE)
BATCHES = (8, 16, 32, 64)
"""Sentences in a batch of CTranslate2's, of which the fastest counts; the third is Marian's."""
LENGTH, DEVIATION, LENGTHS = 14, 4, (3, 39)
"""Words of a sentence: their mean, its deviation, and the least and the most; the end comes behind them."""
Run = dict[str, float]


@scenario(
    several(
        "--sizes", ("small", "base", "opus", "tiny11"), "Shapes of the models, with random weights.", SHAPES
    ),
    several("--beams", (4, 1), "Beam sizes; memory is of the first, and Mozilla's engine is greedy."),
    option("--sentences", 64, "Sentences of a file."),
    option("--alone", 16, "Sentences that are translated one after the other."),
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
    minutes: float,
    folder: Path,
    repeats: int,
) -> Found:
    """Compare the engine with CTranslate2, Marian and Mozilla's engine, on the same weights and one thread.

    All are timed by the processor. Marian computes in floats, all others in 8 bits. The peers are installed
    by pip into .venv-peers/, and the models made, when they are missing: remove the folder of the models
    after a change of the export. Every result stands in cells.jsonl as soon as it is there.
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
            _measure(turns, prepared[size], python, texts, texts[:alone], steps, beams, until, rows)
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
        ],
        rows=rows,
        note="Words that come out, a second of the processor. CTranslate2 has its fastest batch, and of SSRU "
        "the Transformer of that width. Ratios are ours over theirs, the medians of the repeats' own; "
        "spread: highest less lowest. Memory is private to the processes, after all sentences; ours is a "
        "server's.",
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


def _measure(
    turns: _Turns,
    prepared: Prepared,
    python: Path,
    texts: list[str],
    few: list[str],
    steps: int,
    beams: Sequence[int],
    until: float,
    rows: list[Row],
) -> None:
    """Files, sentences alone, and memory."""
    cases: dict[tuple[str, int, str, str], Callable[[], Run]] = {}
    memory: dict[str, float] = {}
    with ExitStack() as stack:
        peers = {
            system: stack.enter_context(_open_peer(prepared, python, system, steps))
            for system in (PEERS if prepared.shape.is_ssru else PEERS[:2])
        }
        decoder = open_decoder(prepared.bundle, precision="int8", shortlist=prepared.shape.shortlist)
        for beam in beams:
            engine = stack.enter_context(running_engine(decoder, beam_size=beam))
            for what, given in (("a file", texts), ("alone", few)):
                is_alone = what == "alone"
                ours = partial(_decode, engine, prepared, given, beam, steps, is_alone)
                ours()
                cases[what, beam, "words/s", OURS] = ours
                for system, peer in peers.items():
                    if system == FXTRANSLATE and beam > 1:
                        continue
                    asked = {"texts": given, "beam": beam, "alone": is_alone}
                    batches = BATCHES if system == CTRANSLATE2 else BATCHES[2:3]
                    tried = {batch: _ask(peer, {**asked, "batch": batch}) for batch in batches}
                    batch = max(tried, key=lambda batch: tried[batch]["value"])
                    memory.setdefault(system, tried[batch]["mib"])
                    asked["batch"] = 1 if is_alone else batch
                    cases[what, beam, "words/s", system] = partial(_ask, peer, asked)
        turns.run(cases, until, rows)
    memory = {OURS: _memory_of_server(prepared, texts, beams[0], steps), **memory}
    cases = {("memory", beams[0], "MiB", name): partial(dict, value=mib) for name, mib in memory.items()}
    turns.run(cases, 0.0, rows)


@contextmanager
def _open_peer(prepared: Prepared, python: Path, system: str, steps: int) -> Iterator[Peer]:
    task = {**prepared.task(), "steps": steps, "system": system}
    # CTranslate2 chooses AVX2 by itself on some processors that have more.
    has_more = "avx512f" in describe_machine(())["flags"]
    environment = {"CT2_FORCE_CPU_ISA": "AVX512"} if has_more else {}
    with running_peer(python, WORKER, task, environment) as peer:
        yield peer


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


def _memory_of_server(prepared: Prepared, texts: list[str], beam: int, steps: int) -> float:
    """Mebibytes of a `dragoman serve` that has translated the texts."""
    requests = make_requests(texts, prepared.bundle, beam_size=beam, max_output_tokens=steps)
    options = {"--precision": "int8", "--threads": 1, "--max-beam-size": beam}
    with running_server(prepared.bundle.path, prepared.bundle.manifest.key, options) as server:
        run_closed_loop(server.address, requests, total=len(requests), concurrency=len(requests))
        return memory_of(server.process_id) / 2**20

"""Files of Marian's imported, and decoded by three systems on one thread, by the processor's time."""

import os
import subprocess
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from dragoman_bundle import Bundle, open_bundle

from benchmarks.engines import open_decoder, running_engine
from benchmarks.harness import REPEATS, Found, option, scenario, several
from benchmarks.measuring import MeasurementError, in_turns, say, summarize
from benchmarks.peers import Peer, make_environment, running_peer
from benchmarks.report import Row, Table
from benchmarks.scenarios.native.models import SHAPES, word, write_model
from dragoman_server.engine import SearchOptions, Sentence
from dragoman_server.engine.pool.pool import EnginePool

PEERS = ("fxtranslate==0.5.0", "pymarian==1.12.42")
WORKER = Path(__file__).with_name("worker.py")
OURS = "engine"
ALONE = 1


@scenario(
    several("--sizes", ("tiny11", "base"), "Shapes of Firefox's models, with random weights.", SHAPES),
    several("--beams", (1, 4), "Beam sizes; Mozilla's engine is greedy."),
    several("--batches", (1, 16), "Sentences that are decoded at once."),
    option("--sentences", 32, "Sentences that are decoded."),
    option("--length", 15, "Words of a sentence; twice as many come out."),
    option("--models", Path("runs/native"), "Folder of the models.", to="folder"),
    option("--python", None, "Python that has the peers; without it they are installed.", type=Path),
    REPEATS,
)
def command(
    *,
    sizes: list[str],
    beams: list[int],
    batches: list[int],
    sentences: int,
    length: int,
    folder: Path,
    python: Path | None,
    repeats: int,
) -> Found:
    """Import Marian's own files of Firefox's shapes, and decode them beside Mozilla's engine and Marian.

    All run on one thread and are compared by processor time: ours and Mozilla's engine in 8 bits, of the
    same `.bin`, Marian in floats.
    """
    python = python or make_environment("marian-native", PEERS)
    imports: list[Row] = []
    rows: list[Row] = []
    drawn = np.random.default_rng(1).integers(2, 1000, (sentences, length))
    texts = [" ".join(map(word, numbers)) for numbers in drawn.tolist()]
    for size in sizes:
        path = folder / size
        write_model(path, SHAPES[size])
        bundle, row = _import(path)
        imports.append({"size": size, **row})
        with running_peer(python, WORKER, {"folder": str(path)}, {}) as (peer, _):
            for beam in beams:
                decoder = open_decoder(bundle, precision="int8", shortlist=False)
                with running_engine(decoder, beam_size=beam) as engine:
                    _decode(engine, bundle, texts[:1], beam, ALONE, 2 * length)
                    for batch in batches:
                        cases = {OURS: partial(_decode, engine, bundle, texts, beam, batch, 2 * length)}
                        for system in ("fxtranslate", "marian"):
                            if system == "marian" or (beam, batch) == (1, ALONE):
                                cases[system] = partial(_ask, peer, system, texts, beam, batch)
                        runs = in_turns(cases, repeats, lambda rate: f"{rate:,.0f} words/s")
                        found = {system: summarize(rates).median for system, rates in runs.items()}
                        rows.append({"size": size, "beam": beam, "batch": batch, **found})
    systems = [(name, name, ",.0f") for name in (OURS, "fxtranslate", "marian")]
    return Found(
        tables=[
            Table(
                name="imports",
                title="dragoman get of a .bin, with its check",
                columns=[
                    ("size", "model"),
                    ("seconds", "processor s", ".1f"),
                    ("mib", "MiB at most", ",.0f"),
                    ("mb", "bundle MB", ".1f"),
                ],
                rows=imports,
            ),
            Table(
                name="rows",
                title=f"Words a second of the processor, {sentences} sentences, median of {repeats}",
                columns=[
                    ("size", "model"),
                    ("beam", "beam", "d"),
                    ("batch", "sentences at once", "d"),
                    *systems,
                ],
                rows=rows,
            ),
        ],
        facts={"sizes": {size: asdict(SHAPES[size]) for size in sizes}, "peers": PEERS},
    )


def _import(folder: Path) -> tuple[Bundle, Row]:
    """The bundle, and what making it took. Raises MeasurementError."""
    place = folder / "bundles" / folder.name / "1"
    say(f"{folder.name}: dragoman get")
    arguments = [str(folder / "model.bin"), "--source-language", "de", "--target-language", "en"]
    command = [sys.executable, "-m", "dragoman", "get", *arguments, "--out", str(place), "--force"]
    process = subprocess.Popen([*command, "--threads", "1"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise MeasurementError(f"{' '.join(command)} ended with {process.returncode}")
    bundle = open_bundle(place)
    size = sum(entry.size for entry in bundle.manifest.files.values())
    seconds = usage.ru_utime + usage.ru_stime
    return bundle, {"seconds": seconds, "mib": usage.ru_maxrss / 1024, "mb": size / 1e6}


def _decode(
    engine: EnginePool, bundle: Bundle, texts: list[str], beam: int, batch: int, max_tokens: int
) -> float:
    """Words a second of ours."""
    options = SearchOptions(
        beam_size=beam, num_hypotheses=1, length_penalty=0.0, max_output_tokens=max_tokens
    )
    end = bundle.manifest.source_ids.eos
    began = time.process_time()
    ids = bundle.source_tokenizer.encode_ids(texts)
    sentences = [Sentence(source=(*each, end), options=options) for each in ids]
    num_words = 0
    for start in range(0, len(sentences), batch):
        for future in engine.submit(sentences[start : start + batch]):
            tokens = future.result().hypotheses[0].tokens
            num_words += len(bundle.target_tokenizer.decode_text(tokens).split())
    return num_words / (time.process_time() - began)


def _ask(peer: Peer, system: str, texts: list[str], beam: int, batch: int) -> float:
    """Words a second of a peer."""
    answer: dict[str, Any] = peer.ask({"system": system, "texts": texts, "beam": beam, "batch": batch})
    return float(answer["words"]) / float(answer["seconds"])

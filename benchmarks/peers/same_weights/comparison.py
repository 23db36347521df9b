"""The engine beside CTranslate2, size by size: what goes into the report."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.corpus import Corpus
from benchmarks.environment import PeerMissingError
from benchmarks.peers.same_weights.marian_models import CTRANSLATE2, SIZES
from benchmarks.peers.same_weights.served import measure_memory, measure_served
from benchmarks.peers.same_weights.speed import measure_speed, prepare
from benchmarks.peers.same_weights.tables import memory_table, served_table, speed_table
from benchmarks.report import Table
from dragoman_server.sizing.child_server import ServerError

SPEED, SERVED, MEMORY = MEASURED = ("speed", "served", "memory")


def compare_on_same_weights(
    what: str,
    names: Sequence[str],
    corpus: Corpus,
    text: Path,
    folder: Path,
    *,
    threads: int,
    repeats: int,
    seconds: float,
    exports: bool,
    shortlist: bool,
) -> tuple[dict[str, object], list[Table]]:
    """Results and tables of one of `MEASURED`. Raises ClickException where one of the systems fails."""
    rows: list[dict[str, object]] = []
    try:
        for name in names:
            click.echo(f"{name}: {SIZES[name]}: making the models", err=True)
            prepared = prepare(
                name, corpus, text, folder, threads=threads, exports=exports, shortlist=shortlist
            )
            if what == SPEED:
                rows += measure_speed(prepared, threads=threads, repeats=repeats)
            elif what == SERVED:
                rows += measure_served(prepared, threads=threads, repeats=repeats, seconds=seconds)
            else:
                rows += measure_memory(prepared, threads=threads, repeats=repeats)
    except (PeerMissingError, ServerError) as error:
        raise click.ClickException(str(error)) from error
    make_table = {SPEED: speed_table, SERVED: served_table, MEMORY: memory_table}[what]
    results: dict[str, object] = {
        "input": corpus.name,
        "sentences": len(corpus.sources),
        "sizes": {name: asdict(SIZES[name]) for name in names},
        "peers": {"ctranslate2": CTRANSLATE2},
        "repeats": repeats,
        "rows": rows,
    }
    return results, [make_table(rows, corpus.name, len(corpus.sources), repeats)]

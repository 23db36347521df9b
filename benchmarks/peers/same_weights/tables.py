"""The tables of `benchmarks.peers --same-weights`."""

from collections.abc import Sequence

from benchmarks.peers.same_weights.lexicon import NUM_COMMON, NUM_TARGETS
from benchmarks.report import Column, Row, Table

_SHORTLIST = (
    f" The lexicon is random: {NUM_COMMON} pieces for every sentence and {NUM_TARGETS} for each source "
    "piece, drawn by rank. CTranslate2 decodes over those of a batch, the engine over each sentence's own."
)


def speed_table(rows: Sequence[Row], name: str, num_sentences: int, repeats: int) -> Table:
    """Speed of both systems on the same weights."""
    return Table(
        title=f"The same weights in int8, {name}, {num_sentences:,} sentences, median of {repeats}",
        columns=(
            Column(key="size", header="model"),
            Column(key="shortlist", header="shortlist"),
            Column(key="input", header="input"),
            Column(key="threads", header="threads", format="d"),
            Column(key="beam", header="beam", format="d"),
            Column(key="engine", header="engine, target tokens/s", format=",.0f"),
            Column(key="ctranslate2", header="CTranslate2", format=",.0f"),
            Column(key="setting", header="its workers x threads, batch"),
            Column(key="engine_ms", header="engine, ms", format=",.0f"),
            Column(key="ctranslate2_ms", header="CTranslate2, ms", format=",.0f"),
            Column(key="ratio", header="ratio", format=".2f"),
            Column(key="spread", header="spread", format=".0%"),
        ),
        rows=rows,
        note="MarianMT checkpoints with random weights, exported here and converted by CTranslate2's own "
        "converter. Both are given the same token ids and decode the same number of tokens. Ratios are of "
        "target tokens a second, ours to CTranslate2's in its fastest setting, as the median of the repeats."
        + (_SHORTLIST if any(row["shortlist"] for row in rows) else ""),
    )


def served_table(rows: Sequence[Row], name: str, num_sentences: int, repeats: int) -> Table:
    """Latency of callers of both servers."""
    return Table(
        title=f"Callers with one sentence of {name} each, the same weights in int8, median of {repeats}",
        columns=(
            Column(key="size", header="model"),
            Column(key="shortlist", header="shortlist"),
            Column(key="threads", header="threads", format="d"),
            Column(key="system", header="server"),
            Column(key="setting", header="workers x threads, batch"),
            Column(key="capacity", header="sentences/s at most", format=",.1f"),
            Column(key="load", header="load", format=".0%"),
            Column(key="arrivals_per_second", header="arrivals/s", format=",.1f"),
            Column(key="p50_ms", header="p50 ms", format=",.0f"),
            Column(key="p95_ms", header="p95 ms", format=",.0f"),
            Column(key="p99_ms", header="p99 ms", format=",.0f"),
            Column(key="p99_spread", header="spread of p99", format=".0%"),
            Column(key="failed", header="failed", format="d"),
        ),
        rows=rows,
        note="Load: Poisson arrivals as a share of what `dragoman serve` bears at most; both servers get "
        "the same callers, in turns, who ask for the same number of tokens. CTranslate2 stands behind a "
        "plain gRPC server whose workers take what waits, up to a batch, in the setting in which it bears "
        "most. Latency counts from when a sentence was to arrive.",
    )


def memory_table(rows: Sequence[Row], name: str, num_sentences: int, repeats: int) -> Table:
    """Memory of both servers."""
    return Table(
        title=f"Memory of servers with the same weights in int8, {name}, {num_sentences:,} sentences, "
        f"median of {repeats}",
        columns=(
            Column(key="size", header="model"),
            Column(key="shortlist", header="shortlist"),
            Column(key="threads", header="threads", format="d"),
            Column(key="system", header="server"),
            Column(key="ready", header="MiB when ready", format=",.0f"),
            Column(key="after", header="MiB after all sentences", format=",.0f"),
        ),
        rows=rows,
        note="PSS of all processes of a server, Python among it. All sentences come one a call, with many "
        "callers at a time. CTranslate2 has a worker for each thread.",
    )

"""The table of `benchmarks.peers`, and the aim beside what was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measuring import ratio
from benchmarks.peers.lexicon import NUM_COMMON, NUM_TARGETS
from benchmarks.report import Column, Row, Table

AIM = 2.0
"""How often as fast as CTranslate2's Transformer the engine with int8 and shortlist is to be."""
_MODELS = {
    "ctranslate2": "CTranslate2: a Transformer in int8",
    "joeynmt": "JoeyNMT: an LSTM with Luong attention in fp32",
}
_OURS = "engine_int8_shortlist"
_SHORTLIST = (
    f" The lexicon is random: {NUM_COMMON} pieces for every sentence and {NUM_TARGETS} for each source "
    "piece, drawn by rank. CTranslate2 decodes over those of a batch, the engine over each sentence's own, "
    "and greedily on a CPU over all pieces."
)


def peer_table(
    rows: Sequence[Row],
    name: str,
    num_sentences: int,
    repeats: int,
    beam: int,
    sizes: Mapping[str, Mapping[str, object]],
) -> Table:
    """Speed of every system in every setting; `sizes` are those of the peers' models."""
    models = "; ".join(
        f"{_MODELS[peer]}, " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in own.items())
        for peer, own in sizes.items()
    )
    return Table(
        title=f"{name}, {num_sentences:,} sentences, beam {beam}, median of {repeats}",
        columns=(
            Column(key="system", header="system"),
            Column(key="settings", header="settings"),
            Column(key="threads", header="threads", format="d"),
            Column(key="tokens_per_second", header="target tokens/s", format=",.0f"),
            Column(key="sentences_per_second", header="sentences/s", format=",.1f"),
            Column(key="spread", header="spread", format=".0%"),
        ),
        rows=rows,
        note=models
        and f"{models}. Peers have random weights, which cost the same time, and decode exactly as many "
        "tokens a sentence as the engine does on average, none less and none more. They are given token ids; "
        "the engine is given text, and tokenizing and joining are in its time.",
    )


def compare(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Each of our systems against the fastest setting of each peer, in target tokens a second."""
    fastest: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: float(row["tokens_per_second"])):
        fastest[row["system"]] = row
    ours = [system for system in fastest if system.startswith("engine_")]
    ratios: list[dict[str, object]] = []
    for system in ours:
        for peer in fastest.keys() - set(ours):
            measured = ratio(fastest[system]["repeats"], fastest[peer]["repeats"])
            compared: dict[str, object] = {
                "name": f"{system} against {peer}",
                "value": measured.median,
                "spread": measured.spread,
            }
            if (system, peer) == (_OURS, "ctranslate2"):
                compared |= {"aim": f"{AIM:g}x", "reached": measured.median >= AIM}
            ratios.append(compared)
    return sorted(ratios, key=lambda row: str(row["name"]))


def ratio_table(ratios: Sequence[Row]) -> Table:
    """The ratios."""
    return Table(
        title="Target tokens a second, against each peer in its fastest setting",
        columns=(
            Column(key="name", header="ratio"),
            Column(key="value", header="measured", format=".2f"),
            Column(key="spread", header="spread", format=".0%"),
            Column(key="aim", header="aim"),
            Column(key="reached", header="reached"),
        ),
        rows=ratios,
        note="Each ratio is the median of the repeats' own.",
    )


def same_weights_table(rows: Sequence[Row], name: str, num_sentences: int, repeats: int) -> Table:
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

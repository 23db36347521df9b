"""The table of `benchmarks.peers`, and the aim beside what was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measuring import ratio
from benchmarks.report import Column, Row, Table

AIM = 2.0
"""How often as fast as CTranslate2's Transformer the engine with int8 and shortlist is to be."""
_MODELS = {
    "ctranslate2": "CTranslate2: a Transformer in int8",
    "joeynmt": "JoeyNMT: an LSTM with Luong attention in fp32",
}
_OURS = "engine_int8_shortlist"


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

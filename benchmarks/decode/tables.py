"""The tables of `benchmarks.decode`."""

from collections.abc import Sequence

from benchmarks.report import Column, Row, Table


def speed_table(rows: Sequence[Row], name: str, num_sentences: int, repeats: int) -> Table:
    """Speed and BLEU of every system."""
    return Table(
        title=f"{name}, {num_sentences:,} sentences, median of {repeats}",
        columns=(
            Column(key="system", header="system"),
            Column(key="beam", header="beam", format="d"),
            Column(key="threads", header="threads", format="d"),
            Column(key="words_per_second", header="words/s", format=",.0f"),
            Column(key="sentences_per_second", header="sentences/s", format=",.1f"),
            Column(key="spread", header="spread", format=".0%"),
            Column(key="bleu", header="BLEU", format=".2f"),
        ),
        rows=rows,
        note="Words are those of the input. From text to text: tokenizing and joining are in the time. "
        "Spread: fastest less slowest repeat, as a share of the median.",
    )


def ratio_table(ratios: Sequence[Row]) -> Table:
    """What the ratios are and should be."""
    return Table(
        title="Ratios",
        columns=(
            Column(key="name", header="ratio"),
            Column(key="beam", header="beam", format="d"),
            Column(key="threads", header="threads", format="d"),
            Column(key="value", header="measured", format=".2f"),
            Column(key="spread", header="spread", format=".0%"),
            Column(key="aim", header="aim"),
            Column(key="reached", header="reached"),
        ),
        rows=ratios,
        note="Each ratio is the median of the repeats' own: what disturbs the machine for a while disturbs "
        "both sides. The aims are for beam 5 and 2 threads.",
    )


def host_table(rows: Sequence[Row]) -> Table:
    """Where wall time goes."""
    return Table(
        title="Wall time outside onnxruntime (int8)",
        columns=(
            Column(key="system", header="system"),
            Column(key="beam", header="beam", format="d"),
            Column(key="mean_sentences", header="sentences a step", format=".1f"),
            Column(key="wall_seconds", header="wall s", format=".2f"),
            Column(key="tokenize_seconds", header="tokenize s", format=".3f"),
            Column(key="encoder_seconds", header="encoder, shortlist s", format=".3f"),
            Column(key="step_seconds", header="steps s", format=".2f"),
            Column(key="engine_seconds", header="engine s", format=".3f"),
            Column(key="response_seconds", header="response s", format=".3f"),
            Column(key="outside_share", header="outside", format=".1%"),
            Column(key="outside_share_with_tokenizing", header="with tokenizing", format=".1%"),
        ),
        rows=rows,
        note="Of one engine; several are processes, which have only the cores in common. Outside: the "
        "engine's own time (scheduling, beams, regrouping) and building responses, as a share of the time "
        "from the first sentence's submission on. The repeat with the median share. The aim is at most 15% "
        "at beam 5 and 64 sentences a step.",
    )

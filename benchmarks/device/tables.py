"""The rows and tables of `benchmarks.device`."""

from collections.abc import Mapping, Sequence

from benchmarks.device.measurement import Case, Decoded
from benchmarks.measuring import ratio, summarize
from benchmarks.report import Column, Row, Table


def speed_rows(runs: Mapping[Case, Sequence[Decoded]], num_sentences: int) -> list[dict[str, object]]:
    """A row for each case: medians of its repeats."""
    rows: list[dict[str, object]] = []
    for case, repeats in runs.items():
        speed = summarize([num_sentences / each.seconds for each in repeats])
        rows.append(
            {
                "precision": case.precision,
                "batch": case.batch,
                "sentences": case.sentences,
                "sentences_per_second": speed.median,
                "spread": speed.spread,
                "step_ms": summarize([each.step_ms for each in repeats]).median,
                "regroup_ms": summarize([each.regroup_ms for each in repeats]).median,
                "encode_ms": summarize([each.encode_ms for each in repeats]).median,
            }
        )
    return rows


def ratio_rows(runs: Mapping[Case, Sequence[Decoded]]) -> list[dict[str, object]]:
    """Batches on the device against those on the host."""
    rows: list[dict[str, object]] = []
    for case, repeats in runs.items():
        host = runs.get(Case(precision=case.precision, batch="host", sentences=case.sentences))
        if case.batch == "host" or host is None:
            continue
        speed = ratio([each.seconds for each in host], [each.seconds for each in repeats])
        alike = [one == other for one, other in zip(repeats[0].tokens, host[0].tokens, strict=True)]
        rows.append(
            {
                "precision": case.precision,
                "batch": case.batch,
                "sentences": case.sentences,
                "speed": speed.median,
                "spread": speed.spread,
                "same_tokens": sum(alike) / len(alike),
            }
        )
    return rows


def speed_table(rows: Sequence[Row], title: str) -> Table:
    """Speed of every case."""
    return Table(
        title=title,
        columns=(
            Column(key="precision", header="precision"),
            Column(key="batch", header="batch"),
            Column(key="sentences", header="sentences", format="d"),
            Column(key="sentences_per_second", header="sentences/s", format=",.1f"),
            Column(key="spread", header="spread", format=".0%"),
            Column(key="step_ms", header="step ms", format=".2f"),
            Column(key="regroup_ms", header="regroup ms", format=".2f"),
            Column(key="encode_ms", header="encode ms", format=".2f"),
        ),
        rows=rows,
        note="Batch: on the device or on the host. Sentences: places in the batch. From token ids to token "
        "ids. Medians of a full batch's step, of a regrouping, and of the encoding of a group.",
    )


def ratio_table(rows: Sequence[Row]) -> Table:
    """What keeping batches on the device is worth."""
    return Table(
        title="Batches on the device against batches on the host",
        columns=(
            Column(key="precision", header="precision"),
            Column(key="batch", header="batch"),
            Column(key="sentences", header="sentences", format="d"),
            Column(key="speed", header="speed", format=".2f"),
            Column(key="spread", header="spread", format=".0%"),
            Column(key="same_tokens", header="same tokens", format=".1%"),
        ),
        rows=rows,
        note="Same tokens: sentences of which both find the same best translation.",
    )

"""The tables of `benchmarks.limit`."""

from collections.abc import Sequence

from benchmarks.report import Column, Row, Table


def peak_table(rows: Sequence[Row]) -> Table:
    """What the machine reaches."""
    return Table(
        title="What this machine reaches",
        columns=(
            Column(key="name", header="measured"),
            Column(key="value", header="at its best", format=",.1f"),
            Column(key="unit", header="unit"),
            Column(key="spread", header="spread", format=".0%"),
        ),
        rows=rows,
        note="Products: onnxruntime's MatMul (fp32) and MatMulInteger (uint8 by int8) with the step's own "
        "weights' sizes and the most rows of any step, the fastest one. Copies: read and written together.",
    )


def limit_table(rows: Sequence[Row]) -> Table:
    """Each step beside its limit."""
    return Table(
        title="A decoder step beside its limit",
        columns=(
            Column(key="graph", header="graph"),
            Column(key="sentences", header="sentences", format="d"),
            Column(key="rows", header="rows", format="d"),
            Column(key="step_ms", header="step ms", format=".2f"),
            Column(key="spread", header="spread", format=".0%"),
            Column(key="million_multiply_adds", header="M multiply-adds", format=",.0f"),
            Column(key="megabytes", header="MB", format=".1f"),
            Column(key="arithmetic_ms", header="arithmetic ms", format=".2f"),
            Column(key="memory_ms", header="memory ms", format=".2f"),
            Column(key="arithmetic_fraction", header="of arithmetic", format=".0%"),
            Column(key="limit_fraction", header="of limit", format=".0%"),
        ),
        rows=rows,
        note="Arithmetic: the step's products at the speed of the best one, fp32 and int8 each at their own. "
        "Memory: every weight and input in once, every output out once, at the speed of a copy of as many "
        "bytes. The limit is the slower of the two. The aim is above 50% of the arithmetic at 64 sentences.",
    )


def operator_table(graph: str, sentences: int, rows: Sequence[Row]) -> Table:
    """Time by operator."""
    return Table(
        title=f"{graph}, {sentences} sentences: time by operator",
        columns=(
            Column(key="operator", header="operator"),
            Column(key="nodes", header="nodes", format="d"),
            Column(key="ms", header="ms", format=".3f"),
            Column(key="share", header="share", format=".1%"),
        ),
        rows=rows,
    )


def node_table(graph: str, sentences: int, rows: Sequence[Row]) -> Table:
    """The slowest nodes."""
    return Table(
        title=f"{graph}, {sentences} sentences: slowest nodes",
        columns=(
            Column(key="node", header="node"),
            Column(key="operator", header="operator"),
            Column(key="ms", header="ms", format=".3f"),
            Column(key="share", header="share", format=".1%"),
        ),
        rows=rows,
    )

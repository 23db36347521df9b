"""The ratios that this project aims at, from the rows of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.measuring import Summary, ratio, summarize

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Aim:
    """A ratio, or difference, of two systems and what it should be."""

    name: str
    system: str
    against: str
    against_greedy: bool = False
    """Whether the other system is measured at beam 1, whatever the beam of this one."""
    least: float | None = None
    """Least ratio of speed."""
    most_bleu: float | None = None
    """Most BLEU that lie between the two, where it is BLEU that is compared."""

    def measure(self, row: Row, other: Row) -> Summary | None:
        """The ratio of speed, or the difference in BLEU: None where there was no reference."""
        if self.most_bleu is None:
            return ratio(other["seconds"], row["seconds"])
        if row["bleu"] is None or other["bleu"] is None:
            return None
        return summarize([row["bleu"] - other["bleu"]])

    def is_reached(self, value: float) -> bool:
        """Whether the value is as it should be."""
        return abs(value) <= self.most_bleu if self.most_bleu is not None else value >= (self.least or 0.0)


AIMS = (
    Aim(
        name="int8 with shortlist against the greedy tutorial loop",
        system="engine_int8_shortlist",
        against="tutorial",
        against_greedy=True,
        least=30.0,
    ),
    Aim(
        name="int8 with shortlist against PyTorch in batches",
        system="engine_int8_shortlist",
        against="torch_batched",
        least=8.0,
    ),
    Aim(name="int8 against fp32", system="engine_int8", against="engine_fp32", least=2.5),
    Aim(
        name="BLEU of int8 with shortlist less that of fp32",
        system="engine_int8_shortlist",
        against="engine_fp32",
        most_bleu=0.3,
    ),
)


def compare(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Every aim for which both systems were measured, at every beam and number of threads."""
    ratios: list[dict[str, object]] = []
    by_case = {(row["system"], row["beam"], row["threads"]): row for row in rows}
    for aim in AIMS:
        for (system, beam, threads), row in by_case.items():
            other = by_case.get((aim.against, 1 if aim.against_greedy else beam, threads))
            if system != aim.system or other is None:
                continue
            measured = aim.measure(row, other)
            if measured is None:
                continue
            ratios.append(
                {
                    "name": aim.name,
                    "beam": beam,
                    "threads": threads,
                    "value": measured.median,
                    "spread": measured.spread,
                    "aim": f"within {aim.most_bleu}" if aim.most_bleu else f"{aim.least:g}x",
                    "reached": aim.is_reached(measured.median),
                }
            )
    return ratios

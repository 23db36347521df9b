"""Steps of several graphs and batch sizes, and the machine's best, all in turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.limit.peaks import CopyPeak, ProductPeak, best_seconds
from benchmarks.limit.step import Step
from benchmarks.measuring import Summary, interleave, summarize
from benchmarks.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All that was timed."""

    products: Mapping[bool, Summary]
    """Multiply-adds a second of the best product; True of integers, False of floating-point numbers."""
    large_copy: Summary
    """Bytes a second of a copy that no cache holds."""
    copies: Mapping[tuple[str, int], Summary]
    """Bytes a second of a copy as large as each step's bytes, by graph and number of sentences."""
    steps: Mapping[tuple[str, int], Summary]
    """Seconds of each step, by graph and number of sentences."""


def measure(
    steps: Mapping[tuple[str, int], Step],
    products: Mapping[bool, ProductPeak],
    large_copy: CopyPeak,
    copies: Mapping[tuple[str, int], CopyPeak],
    *,
    repeats: int,
    progress: Progress,
) -> Measured:
    """Times everything `repeats` times, in turn."""
    cases: dict[tuple[str, object], Callable[[], float]] = {
        **{("product", kind): peak.multiply_adds_per_second for kind, peak in products.items()},
        ("large copy", None): large_copy.bytes_per_second,
        **{("copy", key): peak.bytes_per_second for key, peak in copies.items()},
        **{("step", key): partial(best_seconds, step.run) for key, step in steps.items()},
    }
    count = 0

    def on_done(repeat: int, case: tuple[str, object], value: float) -> None:
        nonlocal count
        count += 1
        if count % len(cases) == 0:
            progress.advance(f"{len(cases)} timings, repeat {repeat}")

    runs = interleave(cases, repeats, on_done)
    return Measured(
        products={kind: summarize(runs["product", kind]) for kind in products},
        large_copy=summarize(runs["large copy", None]),
        copies={key: summarize(runs["copy", key]) for key in copies},
        steps={key: summarize(runs["step", key]) for key in steps},
    )


def limit_rows(
    steps: Mapping[tuple[str, int], Step], measured: Measured, beam: int
) -> list[dict[str, object]]:
    """A row for each step, with its limits and what share of them it reaches."""
    rows: list[dict[str, object]] = []
    for (graph, sentences), step in steps.items():
        multiply_adds = {
            kind: sum(product.multiply_adds for product in step.products if product.is_integer is kind)
            for kind in (False, True)
        }
        arithmetic = sum(
            count / measured.products[kind].median for kind, count in multiply_adds.items() if count
        )
        memory = step.num_bytes / measured.copies[graph, sentences].median
        took = measured.steps[graph, sentences]
        rows.append(
            {
                "graph": graph,
                "sentences": sentences,
                "rows": sentences * beam,
                "step_ms": 1e3 * took.median,
                "spread": took.spread,
                "million_multiply_adds": sum(multiply_adds.values()) / 1e6,
                "million_integer_multiply_adds": multiply_adds[True] / 1e6,
                "megabytes": step.num_bytes / 1e6,
                "arithmetic_ms": 1e3 * arithmetic,
                "memory_ms": 1e3 * memory,
                "arithmetic_fraction": arithmetic / took.median,
                "limit_fraction": max(arithmetic, memory) / took.median,
            }
        )
    return rows


def peak_rows(measured: Measured) -> list[dict[str, object]]:
    """A row for each thing that the machine was asked to do at its best."""
    names = {False: "product, fp32", True: "product, int8"}
    rows = [
        {
            "name": names[kind],
            "value": peak.median / 1e9,
            "unit": "G multiply-adds/s",
            "spread": peak.spread,
        }
        for kind, peak in measured.products.items()
    ]
    copies: Sequence[tuple[str, Summary]] = [
        ("copy, larger than any cache", measured.large_copy),
        *(
            (f"copy as large as {graph} at {sentences}", peak)
            for (graph, sentences), peak in measured.copies.items()
        ),
    ]
    rows += [
        {"name": name, "value": peak.median / 1e9, "unit": "GB/s", "spread": peak.spread}
        for name, peak in copies
    ]
    return rows

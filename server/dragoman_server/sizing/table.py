"""A plan for a person to read, and for a program."""

from dragoman_server.sizing.figures import EngineFigures
from dragoman_server.sizing.measuring import Measured
from dragoman_server.sizing.plan import Objective, Plan

MIB = 1 << 20


def as_text(plan: Plan, objective: Objective, measured: Measured) -> str:
    """The plan as text: the servers to run, the latency to expect, and the options to set."""
    engine, server = measured.engine, measured.server
    num_left = plan.num_servers - 1
    num_sentences = sum(map(len, engine.texts))
    away = plan.share * plan.num_servers / num_left if num_left else None
    sections = {
        f"{objective.per_second:g} texts a second, 99 of 100 within {1000 * objective.p99_seconds:g} ms": [
            ("servers", f"{plan.num_servers}"),
            ("cores of each", f"{plan.cores}"),
            ("memory of each", f"{plan.memory_bytes / MIB:.0f} MiB"),
            ("p50", f"{1000 * plan.expected.p50_seconds:.0f} ms"),
            ("p99", f"{1000 * plan.expected.p99_seconds:.0f} ms"),
            ("share of capacity", f"{plan.share:.0%} of {plan.capacity:.1f} texts a second each"),
            ("with one server away", "nobody answers" if away is None else f"{away:.0%} of capacity"),
        ],
        "Set in deploy/kubernetes": [
            ("replicas, or minReplicas", f"{plan.num_servers}"),
            ("requests and limits, cpu", f'"{plan.cores}"'),
            ("requests, memory", f"{plan.memory_bytes // MIB}Mi"),
            (
                "limits, memory",
                f"{2 * plan.memory_bytes // MIB}Mi, for two versions while one replaces the other",
            ),
            ("autoscaler's averageValue", f'"{1000 * plan.scale_at_seconds:.0f}m"'),
            ("--max-rows", f"{plan.max_rows}"),
            ("--max-queue-seconds", f"{plan.max_queue_seconds:.2f}"),
        ],
        "Measured on this machine": [
            ("sentences of a text", f"{num_sentences / len(engine.texts):.1f}, in {len(engine.texts)} texts"),
            ("steps of a sentence", f"{_mean_steps(engine):.1f}, beam {engine.beam_size}"),
            ("a turn of one, of a full batch", _turns(engine)),
            ("gRPC and text, of a core", f"{1000 * server.door_seconds:.2f} ms a text"),
            ("a text alone, as its caller sees it", f"{1000 * server.lone_seconds:.0f} ms"),
        ],
    }
    width = max(len(name) for rows in sections.values() for name, _ in rows)
    return "\n\n".join(
        "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in rows)])
        for title, rows in sections.items()
    )


def as_json(plan: Plan, measured: Measured) -> dict[str, object]:
    """The plan as plain values, for JSON."""
    engine, server = measured.engine, measured.server
    return {
        "servers": plan.num_servers,
        "cores": plan.cores,
        "memory_bytes": plan.memory_bytes,
        "p50_seconds": plan.expected.p50_seconds,
        "p99_seconds": plan.expected.p99_seconds,
        "mean_rows": plan.expected.rows,
        "capacity": plan.capacity,
        "share": plan.share,
        "max_rows": plan.max_rows,
        "max_queue_seconds": plan.max_queue_seconds,
        "scale_at_seconds": plan.scale_at_seconds,
        "measured": {
            "texts": len(engine.texts),
            "steps": _mean_steps(engine),
            "beam_size": engine.beam_size,
            "turn_rows": list(engine.turn_rows),
            "turn_seconds": list(engine.turn_seconds),
            "encoding_seconds": engine.encoding_seconds,
            "position_seconds": engine.position_seconds,
            "slowdown_of_all_cores": measured.slowdown,
            "door_seconds": server.door_seconds,
            "lone_seconds": server.lone_seconds,
            "busy_texts_per_second": server.texts_per_second,
        },
    }


def _mean_steps(engine: EngineFigures) -> float:
    steps = [length.steps for text in engine.texts for length in text]
    return sum(steps) / len(steps)


def _turns(engine: EngineFigures) -> str:
    return f"{1000 * engine.turn_seconds[0]:.1f} ms, {1000 * engine.turn_seconds[-1]:.1f} ms"

"""Where a step's time goes, by operator and by node, as onnxruntime's own profiler sees it."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.limit.step import StepGraph
from benchmarks.sessions import profiled_sessions

RUNS = 20


@dataclass(frozen=True, kw_only=True)
class NodeTime:
    """What one node took."""

    name: str
    operator: str
    seconds: float
    """A step, on average."""


def profile_step(path: Path, *, vocabulary: int, threads: int, sizes: Mapping[str, int]) -> list[NodeTime]:
    """The nodes of the optimised graph, slowest first."""
    with TemporaryDirectory() as folder:
        with profiled_sessions(Path(folder)) as sessions:
            graph = StepGraph(path, vocabulary=vocabulary, threads=threads)
        (session,) = sessions
        step = graph.at(sizes)
        for _ in range(RUNS):
            step.run()
        events = json.loads(Path(session.end_profiling()).read_text())
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    runs = sum(event["name"] == "model_run" for event in events)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            name = event["name"].removesuffix("_kernel_time")
            seconds[name, event["args"]["op_name"]] += event["dur"] / 1e6 / runs
    nodes = [
        NodeTime(name=name, operator=operator, seconds=each) for (name, operator), each in seconds.items()
    ]
    return sorted(nodes, key=lambda node: -node.seconds)


def by_operator(nodes: Sequence[NodeTime]) -> list[dict[str, object]]:
    """A row for each operator, slowest first."""
    groups: dict[str, list[float]] = defaultdict(list)
    for node in nodes:
        groups[node.operator].append(node.seconds)
    total = sum(node.seconds for node in nodes)
    return [
        {"operator": operator, "nodes": len(each), "ms": 1e3 * sum(each), "share": sum(each) / total}
        for operator, each in sorted(groups.items(), key=lambda group: -sum(group[1]))
    ]


def slowest(nodes: Sequence[NodeTime], count: int) -> list[dict[str, object]]:
    """A row for each of the slowest nodes."""
    total = sum(node.seconds for node in nodes)
    return [
        {
            "node": node.name,
            "operator": node.operator,
            "ms": 1e3 * node.seconds,
            "share": node.seconds / total,
        }
        for node in nodes[:count]
    ]

"""The graph `regroup`: sentences leave and join a running batch on the device that the batch is on.

Made from the tensor contract alone. It holds no arithmetic of shapes: the engine works out, in a few small
index tensors, what comes from where, so every node moves tensors and belongs on the device. It only uses
operators that onnxruntime's CUDA provider has kernels of for all of the contract's types.

Shapes: A sentences of the batch and B that join, S of the new batch; P rows of the batch's state and R of the
new one's; T source positions of the new batch, U steps that a state has grown by.
"""

from pathlib import Path

import numpy as np
import onnx_ir as ir
from dragoman_bundle.manifest import REGROUP_GRAPH, TensorContract, TensorSpec

from dragoman_export.graphs.builder import GraphBuilder

_INDICES: dict[str, tuple[ir.DataType, list[str | int]]] = {
    "origin": (ir.DataType.INT64, ["S"]),
    "running_position": (ir.DataType.INT64, ["T"]),
    "joined_position": (ir.DataType.INT64, ["T"]),
    "is_filled": (ir.DataType.BOOL, ["S", "T"]),
    "row": (ir.DataType.INT64, ["R"]),
    "running_row": (ir.DataType.INT64, ["R"]),
    "step": (ir.DataType.INT64, ["U"]),
    "is_lived": (ir.DataType.BOOL, ["R", "U"]),
}


def write_regroup_graph(contract: TensorContract, precision: str, folder: Path) -> None:
    ir.save(make_regroup_graph(contract, precision), folder / f"{REGROUP_GRAPH}.onnx")


def make_regroup_graph(contract: TensorContract, precision: str) -> ir.Model:
    """The graph for one precision's tensors. Of these inputs it has those that the tensors need.

    - `running.NAME` and `joined.NAME` for each tensor; only the first for a state that grows, of which
      newcomers have no past.
    - `origin [S]`: where each sentence comes from, counted in the A sentences and behind them the B.
    - `running_position [T]`, `joined_position [T]`: the source position of either part that each position is
      taken from; any that the part has where `is_filled [S,T]` says that there is none.
    - `row [R]`: where each row of the state comes from, counted in the P rows and behind them the B.
    - `running_row [R]`: the same for a state that grows; any row where `is_lived` has nothing but false.
    - `step [U]`: the step of the past that each is taken from; `is_lived [R,U]`: whether the row has it.

    Outputs are `NAME`, with zeros wherever nothing is taken from. No input and no output may be empty.
    """
    regroup = _Regroup(precision)
    for spec in contract.memory:
        regroup.build.output(spec.name, regroup.memory(spec), ["S", *spec.shape[1:]])
    for spec in contract.state:
        regroup.build.output(spec.name, regroup.state(spec), ["R", *spec.shape[1:]])
    return regroup.build.model()


class _Regroup:
    """Adds nodes for one precision's tensors; inputs are made when they are first asked for."""

    def __init__(self, precision: str) -> None:
        self.build = GraphBuilder(REGROUP_GRAPH, {}, ir.DataType.FLOAT)
        self._precision = precision
        self._inputs: dict[str, ir.Value] = {}

    def memory(self, spec: TensorSpec) -> ir.Value:
        running, joined = self._part("running", spec, "A"), self._part("joined", spec, "B")
        axis = spec.shape.index("T") if "T" in spec.shape else None
        if axis is not None:
            running = self._gather(running, "running_position", axis)
            joined = self._gather(joined, "joined_position", axis)
        chosen = self._gather(self.build.op("Concat", [running, joined], axis=0), "origin", 0)
        return chosen if axis is None else self._keep(chosen, spec, "is_filled", axis)

    def state(self, spec: TensorSpec) -> ir.Value:
        # Rows of several lengths can't be joined; no model has such a state.
        assert "T" not in spec.shape, (
            f"{spec.name} has an entry per source position, which a state can't have"
        )
        running = self._part("running", spec, "P")
        if spec.growth_axis is None:
            both = self.build.op("Concat", [running, self._part("joined", spec, "B")], axis=0)
            return self._gather(both, "row", 0)
        past = self._gather(self._gather(running, "running_row", 0), "step", spec.growth_axis)
        return self._keep(past, spec, "is_lived", spec.growth_axis)

    def _keep(self, value: ir.Value, spec: TensorSpec, condition: str, axis: int) -> ir.Value:
        """The value, with zeros where the condition, over its first axis and this one, is false."""
        others = [place for place in range(1, len(spec.shape)) if place != axis]
        keep = self._index(condition)
        if others:
            keep = self.build.op("Unsqueeze", [keep, self.build.constant(others)])
        if self._type(spec) == ir.DataType.BOOL:
            # CUDA's Where takes no booleans.
            return self.build.op("And", [value, keep])
        zero = self.build.constant(0, self._type(spec))
        return self.build.op("Where", [keep, value, zero], dtype=value.dtype)

    def _gather(self, value: ir.Value, index: str, axis: int) -> ir.Value:
        return self.build.op("Gather", [value, self._index(index)], axis=axis)

    def _part(self, part: str, spec: TensorSpec, first: str) -> ir.Value:
        """The tensor of the running batch or of those who join; its sizes are the part's own."""
        rest = [f"{size}_{part}" if isinstance(size, str) else size for size in spec.shape[1:]]
        return self._input(f"{part}.{spec.name}", self._type(spec), [first, *rest])

    def _index(self, name: str) -> ir.Value:
        return self._input(name, *_INDICES[name])

    def _input(self, name: str, dtype: ir.DataType, shape: list[str | int]) -> ir.Value:
        if name not in self._inputs:
            self._inputs[name] = self.build.input(name, shape, dtype)
        return self._inputs[name]

    def _type(self, spec: TensorSpec) -> ir.DataType:
        return ir.DataType.from_numpy(np.dtype(spec.dtype[self._precision]))

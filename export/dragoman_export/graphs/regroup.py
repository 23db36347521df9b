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
from numpy.typing import NDArray
from onnx_ir.tape import Tape

from dragoman_export.graphs.builder import OPSET, initializer, make_value
from dragoman_export.manifest import DTYPES

_TYPES = {name: dtype for dtype, name in DTYPES.items()}
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
    """Writes the precision's graph beside its others."""
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
    graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET}, name=REGROUP_GRAPH)
    builder = _Builder(graph, precision)
    graph.outputs.extend(builder.name(spec, builder.memory(spec), "S") for spec in contract.memory)
    graph.outputs.extend(builder.name(spec, builder.state(spec), "R") for spec in contract.state)
    graph.inputs.extend(builder.inputs.values())
    graph.extend(builder.nodes)
    return ir.Model(graph, ir_version=10)


class _Builder:
    """Collects nodes; inputs and constants are made when they are first asked for."""

    def __init__(self, graph: ir.Graph, precision: str) -> None:
        self._graph = graph
        self._precision = precision
        self._tape = Tape()
        self.inputs: dict[str, ir.Value] = {}

    @property
    def nodes(self) -> list[ir.Node]:
        return list(self._tape.nodes)

    def memory(self, spec: TensorSpec) -> ir.Value:
        running, joined = self._part("running", spec, "A"), self._part("joined", spec, "B")
        axis = spec.shape.index("T") if "T" in spec.shape else None
        if axis is not None:
            running = self._gather(running, "running_position", axis)
            joined = self._gather(joined, "joined_position", axis)
        both = self._tape.op("Concat", [running, joined], {"axis": 0})
        chosen = self._gather(both, "origin", 0)
        return chosen if axis is None else self._keep(chosen, spec, "is_filled", axis)

    def state(self, spec: TensorSpec) -> ir.Value:
        # Rows of several lengths can't be joined; no model has such a state.
        assert "T" not in spec.shape, (
            f"{spec.name} has an entry per source position, which a state can't have"
        )
        running = self._part("running", spec, "P")
        if spec.growth_axis is None:
            both = self._tape.op("Concat", [running, self._part("joined", spec, "B")], {"axis": 0})
            return self._gather(both, "row", 0)
        past = self._gather(self._gather(running, "running_row", 0), "step", spec.growth_axis)
        return self._keep(past, spec, "is_lived", spec.growth_axis)

    def name(self, spec: TensorSpec, value: ir.Value, first: str) -> ir.Value:
        """The value as the output of the tensor's name."""
        value.name, value.type = spec.name, ir.TensorType(self._type(spec))
        value.shape = ir.Shape([first, *spec.shape[1:]])
        return value

    def _keep(self, value: ir.Value, spec: TensorSpec, condition: str, axis: int) -> ir.Value:
        """The value, with zeros where the condition, over its first axis and this one, is false."""
        others = [place for place in range(1, len(spec.shape)) if place != axis]
        keep = self._index(condition)
        if others:
            keep = self._tape.op("Unsqueeze", [keep, self._constant(np.array(others))])
        if self._type(spec) == ir.DataType.BOOL:
            # CUDA's Where takes no booleans.
            return self._tape.op("And", [value, keep])
        zero = self._constant(np.zeros((), self._type(spec).numpy()))
        return self._tape.op("Where", [keep, value, zero])

    def _gather(self, value: ir.Value, index: str, axis: int) -> ir.Value:
        return self._tape.op("Gather", [value, self._index(index)], {"axis": axis})

    def _part(self, part: str, spec: TensorSpec, first: str) -> ir.Value:
        """The tensor of the running batch or of those who join; its sizes are the part's own."""
        rest = [f"{size}_{part}" if isinstance(size, str) else size for size in spec.shape[1:]]
        return self._input(f"{part}.{spec.name}", self._type(spec), [first, *rest])

    def _index(self, name: str) -> ir.Value:
        return self._input(name, *_INDICES[name])

    def _input(self, name: str, dtype: ir.DataType, shape: list[str | int]) -> ir.Value:
        if name not in self.inputs:
            self.inputs[name] = make_value(name, shape, dtype)
        return self.inputs[name]

    def _constant(self, array: NDArray[np.generic]) -> ir.Value:
        name = f"{array.dtype}_" + "_".join(map(str, array.flatten()))
        return initializer(self._graph, name, array)

    def _type(self, spec: TensorSpec) -> ir.DataType:
        return _TYPES[spec.dtype[self._precision]]

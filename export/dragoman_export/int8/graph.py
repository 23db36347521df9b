"""The row-wise int8 product as ONNX nodes.

A row x becomes the codes floor(x · 127 / max|x| + 128.5), which count in steps of max|x| / 127 around 128.
They are unsigned, because x86 multiplies unsigned by signed bytes many times faster than signed by signed.

Shapes: K inputs, N outputs; rows are all axes but the last.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.tape import Tape

from dragoman_export.int8.weights import quantize_weight

LARGEST = 127
"""Codes of activations are at most so far from the zero point."""
ZERO_POINT = 128
SMALLEST_MAXIMUM = 1e-30
"""Stands in for the maximum of a row of zeros, whose codes then all are the zero point."""


@dataclass(frozen=True)
class QuantizedRows:
    """Values of a graph: codes [..., K] uint8 and the step [..., 1] float32 in which they count."""

    codes: ir.Value
    step: ir.Value


@dataclass(frozen=True)
class StoredWeight:
    """Values of a graph: codes int8 and scale [N] float32."""

    codes: ir.Value
    scale: ir.Value


class Int8Graph:
    """A graph that is being rewritten: every activation is rounded once, every weight stored once."""

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self._rows: dict[ir.Value, QuantizedRows] = {}
        self.last_axis = self.constant("int8.last_axis", np.array([-1], np.int64))

    def constant(self, name: str, array: NDArray[np.generic] | np.generic) -> ir.Value:
        """The initializer of that name, made of the array where there is none yet."""
        if name not in self.graph.initializers:
            tensor = ir.tensor(np.array(array, order="C"), name=name)
            self.graph.register_initializer(
                ir.Value(
                    name=name,
                    shape=ir.Shape(tensor.shape.numpy()),
                    type=ir.TensorType(tensor.dtype),
                    const_value=tensor,
                )
            )
        return self.graph.initializers[name]

    def weight(self, name: str, array: NDArray[np.float32], *, output_axis: int) -> StoredWeight:
        """Stores a weight matrix as int8 with a scale for each output."""
        weight = quantize_weight(array, output_axis=output_axis)
        return StoredWeight(
            codes=self.constant(f"{name}.codes", weight.codes),
            scale=self.constant(f"{name}.scale", weight.scale_N),
        )

    def rows(self, tape: Tape, value: ir.Value) -> QuantizedRows:
        """Rounds rows to codes; those of a value that was asked for before are used again."""
        if value not in self._rows:
            self._rows[value] = self.quantize_rows(tape, value)
        return self._rows[value]

    def quantize_rows(self, tape: Tape, value: ir.Value) -> QuantizedRows:
        """Nodes that round the rows of a float32 value [..., K] to codes."""
        smallest = self.constant("int8.smallest_maximum", np.float32(SMALLEST_MAXIMUM))
        largest_code = self.constant("int8.largest_code", np.float32(LARGEST))
        inverse = self.constant("int8.one_over_largest_code", np.float32(1 / LARGEST))
        offset = self.constant("int8.offset", np.float32(ZERO_POINT + 0.5))
        magnitudes = tape.op("Abs", [value])
        maximum = tape.op("ReduceMax", [magnitudes, self.last_axis], {"keepdims": 1})
        maximum = tape.op("Max", [maximum, smallest])
        shifted = tape.op("Add", [tape.op("Mul", [value, tape.op("Div", [largest_code, maximum])]), offset])
        # A cast to an integer drops the fraction, and what it drops it from is positive: it is a floor.
        codes = tape.op("Cast", [shifted], {"to": ir.DataType.UINT8})
        return QuantizedRows(codes=codes, step=tape.op("Mul", [maximum, inverse]))

    def product(self, tape: Tape, rows: QuantizedRows, weight: StoredWeight) -> ir.Value:
        """Nodes that multiply rows [..., K] by a weight [K, N]: float32 [..., N]. The sums are exact.

        The row's step is a factor of its own, and comes first. onnxruntime 1.31 joins the integer product
        with the scaling that follows it, and with a bias that follows that, which it then adds before it
        multiplies by the step: wrong, were both scales one factor.
        """
        zero_point = self.constant("int8.zero_point", np.uint8(ZERO_POINT))
        sums = tape.op("MatMulInteger", [rows.codes, weight.codes, zero_point])
        counted = tape.op("Mul", [tape.op("Cast", [sums], {"to": ir.DataType.FLOAT}), rows.step])
        return tape.op("Mul", [counted, weight.scale])

    def replace(self, node: ir.Node, tape: Tape, results: list[ir.Value]) -> None:
        """Puts the tape's nodes in the node's place, and the results in that of its outputs."""
        self.graph.insert_before(node, tape.nodes)
        for old, new in zip(node.outputs, results, strict=True):
            new.name, old_name = old.name, old.name
            old.name = f"{old_name}.replaced"
            new.shape, new.type = old.shape, old.type
            old.replace_all_uses_with(new, replace_graph_outputs=True)
        self.graph.remove(node, safe=True)

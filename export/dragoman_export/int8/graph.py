"""The int8 product as ONNX nodes, and weights as int8 with a scale for each output.

A row x becomes the codes floor(x · 127 / max|x| + 128.5), which count in steps of max|x| / 127 around 128.
What lies within -1 and 1 may count in steps of 1/127 instead, all rows alike: one node in place of seven, and
no pass over the product to scale its rows; but coarser, as the largest value of a row is mostly less than 1.
So may values whose size is known from samples (`calibration`), in a step of their own.
Codes are unsigned, because x86 multiplies unsigned by signed bytes many times faster than signed by signed.

Shapes: K inputs, N outputs; rows are all axes but the last.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from dragoman_export.graphs.builder import KERNELS, Nodes, width_of
from dragoman_export.reference.imported import StoredWeight

LARGEST_WEIGHT = 63
"""Codes run from -63 to 63, the same on both sides of 0.

x86 without VNNI adds two products of an unsigned and a signed byte in 16 bits, and saturates. 2 · 255 · 63
fits; 2 · 255 · 127 does not, and makes sums that are silently wrong. Codes that a file of Firefox has reach
127 all the same: it was trained with them, and its own engine has these sums.
"""


def quantize_weight(weight_NK: NDArray[np.float32]) -> StoredWeight:
    """Rounds the weights of each output to the 127 multiples of its scale that reach its largest weight."""
    largest_N1 = np.abs(weight_NK).max(axis=1, keepdims=True)
    scale_N1 = np.where(largest_N1 > 0, largest_N1 / LARGEST_WEIGHT, 1).astype(np.float32)
    return StoredWeight(np.rint(weight_NK / scale_N1).astype(np.int8), scale_N1.reshape(-1))


PRODUCT = "MatMulIntegerToFloat"
"""onnxruntime's own that multiplies codes, scales their sums and adds a bias, all in one pass."""
LARGEST = 127
"""Codes of activations are at most so far from the zero point."""
ZERO_POINT = 128
WIDE = 2
"""Outputs for each input from which on bounded rows share a step: what it saves is passes over outputs."""
SMALLEST_MAXIMUM = 1e-30
"""Stands in for the maximum of a row of zeros, whose codes then all are the zero point."""


@dataclass(frozen=True)
class QuantizedRows:
    """Values of a graph: codes [..., K] uint8, and what they count in."""

    codes: ir.Value
    step: ir.Value | None
    """[..., 1] float32; None where all rows share one."""
    shared_step: ir.Value
    """A number: what all rows count in; 1 where each has a step of its own beside it."""


@dataclass(frozen=True)
class Int8Weight:
    """Values of a graph: codes int8 and scale [N] float32."""

    codes: ir.Value
    scale: ir.Value

    @property
    def num_outputs(self) -> int:
        """N."""
        return width_of(self.scale)


class Int8Graph(Nodes):
    """A graph that is being rewritten: every activation is rounded once, every weight stored once."""

    def __init__(
        self,
        graph: ir.Graph,
        bounded: set[ir.Value],
        kept: Collection[str],
        steps: Mapping[str, float],
        stored: Mapping[str, StoredWeight],
    ) -> None:
        """`bounded` are values within -1 and 1, and `kept` names of weights that stay in fp32.

        Values that `steps` names count in these, whichever row; and codes of `stored` weights, which are in
        8 bits where they come from, are not rounded again.
        """
        super().__init__(graph)
        self.bounded, self.kept, self._steps, self._stored = bounded, kept, steps, stored
        graph.opset_imports[KERNELS] = 1
        self._rows: dict[tuple[ir.Value, bool], QuantizedRows] = {}
        self.last_axis = self.named("int8.last_axis", np.array([-1], np.int64))

    def weight(self, name: str, array: NDArray[np.float32], *, output_axis: int) -> Int8Weight:
        """Stores a weight matrix as int8 with a scale per output."""
        stored = self._stored.get(name) or quantize_weight(array if output_axis == 0 else array.T)
        codes = stored.codes_NK if output_axis == 0 else stored.codes_NK.T
        assert codes.shape == array.shape
        # A matrix that is used both ways is stored twice: its scales are those of rows or of columns.
        name = f"{name}.{('rows', 'columns')[output_axis]}"
        return Int8Weight(self.named(f"{name}.codes", codes), self.named(f"{name}.scale", stored.scale_N))

    def share_a_step(self, value: ir.Value, outputs: int) -> bool:
        """Whether all rows of `value` share the step 1/127 in a product with `outputs` columns."""
        return value in self.bounded and is_wide(width_of(value), outputs)

    def rows(self, value: ir.Value, outputs: int) -> QuantizedRows:
        """Codes of the rows of `value` for such a product, made once and reused."""
        key = value, self.share_a_step(value, outputs)
        if key not in self._rows:
            known = 1 / LARGEST if key[1] else self._steps.get(str(value.name))
            self._rows[key] = self.quantize_rows(value) if known is None else self.quantize_by(value, known)
        return self._rows[key]

    def know_rows(self, value: ir.Value, rows: QuantizedRows) -> None:
        """Says what a value's rows are in codes, where these were there first."""
        self._rows[value, False] = rows

    def own_steps(self, codes: ir.Value, step: ir.Value) -> QuantizedRows:
        """Codes of rows each of which has a step of its own."""
        return QuantizedRows(codes=codes, step=step, shared_step=self._number(1))

    def quantize_by(self, value: ir.Value, step: float) -> QuantizedRows:
        """A node that rounds rows [..., K] to codes of that step; what is beyond the largest becomes that."""
        number = self._number(step)
        zero_point = self.named("int8.zero_point", np.uint8(ZERO_POINT))
        codes = self.op("QuantizeLinear", [value, number, zero_point])
        return QuantizedRows(codes=codes, step=None, shared_step=number)

    def _number(self, value: float) -> ir.Value:
        number = np.float32(value)
        return self.named(f"int8.step_{number!s}", number)

    def quantize_rows(self, value: ir.Value) -> QuantizedRows:
        """Nodes that round the rows of a float32 value [..., K] to codes, each row in steps of its own."""
        smallest = self.named("int8.smallest_maximum", np.float32(SMALLEST_MAXIMUM))
        largest_code = self.named("int8.largest_code", np.float32(LARGEST))
        inverse = self.named("int8.one_over_largest_code", np.float32(1 / LARGEST))
        offset = self.named("int8.offset", np.float32(ZERO_POINT + 0.5))
        maximum = self.op("ReduceMax", [self.op("Abs", [value]), self.last_axis], keepdims=1)
        maximum = self.op("Max", [maximum, smallest])
        shifted = self.op("Add", [self.op("Mul", [value, self.op("Div", [largest_code, maximum])]), offset])
        # A cast to an integer drops the fraction, and what it drops it from is positive: it is a floor.
        codes = self.op("Cast", [shifted], to=ir.DataType.UINT8)
        return self.own_steps(codes, self.op("Mul", [maximum, inverse]))

    def product(self, rows: QuantizedRows, weight: Int8Weight, bias: ir.Value | None = None) -> ir.Value:
        """Nodes that multiply rows [..., K] by a weight [K, N] and add a bias [N]: float32 [..., N].

        The sums are exact. What all rows share, a step, the weight's scale and the bias, is applied to each
        as it is written; rows with steps of their own take a pass more, and one for the bias.
        """
        zero_point = self.named("int8.zero_point", np.uint8(ZERO_POINT))
        inputs = [rows.codes, weight.codes, rows.shared_step, weight.scale, zero_point, None]
        if rows.step is None:
            return self.op(PRODUCT, [*inputs, bias], domain=KERNELS)
        result = self.op("Mul", [self.op(PRODUCT, inputs, domain=KERNELS), rows.step])
        return result if bias is None else self.op("Add", [result, bias])

    def replace(self, node: ir.Node, *results: ir.Value) -> None:
        self.bounded |= {new for old, new in zip(node.outputs, results, strict=True) if old in self.bounded}
        super().replace(node, *results)


def is_wide(inputs: int, outputs: int) -> bool:
    """Whether bounded rows share a step in a product of these sizes."""
    return outputs >= WIDE * inputs

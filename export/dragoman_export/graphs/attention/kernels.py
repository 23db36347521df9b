"""A Transformer's attention by onnxruntime's own kernels for CPUs, each of them one node for some twenty.

Their sums depend neither on padding nor on neighbours. GroupQueryAttention knows how much of its past each
row has, adds a position right behind that, and reads nothing else; so each row's past begins at the first
position and is padded behind. MultiHeadAttention adds up over source positions in their order, and what is
masked comes to nothing; but of a single query it would be another routine, which groups positions by four: so
a spare one, all zeros, keeps it company.

Shapes: S sentences, R rows, Q queries a sentence, T source positions, U positions so far, H heads, A width of
a head, D = H · A.
"""

import onnx_ir as ir

from dragoman_export.graphs.builder import KERNELS, GraphBuilder, Size

PAST = "GroupQueryAttention"
HEAD_WIDTH = 8
"""The kernel of pasts takes heads as wide as a multiple of this."""


def attend_to_source(
    build: GraphBuilder,
    queries_SQD: ir.Value,
    keys: ir.Value,
    values: ir.Value,
    is_inside_ST: ir.Value,
    heads: int,
) -> ir.Value:
    """Context [S, Q, D]; keys and values are [S, T, D] or [S, H, T, A], and the mask is int32."""
    padded = build.op("Pad", [queries_SQD, build.constant([0, 0, 0, 0, 1, 0])], mode="constant")
    inputs = [padded, keys, values, None, is_inside_ST]
    context = build.op("MultiHeadAttention", inputs, domain=KERNELS, num_heads=heads)
    bounds = [build.constant([number]) for number in (0, -1, 1)]
    return build.op("Slice", [context, *bounds], queries_SQD.shape)


class PackedPast:
    """Pasts that are padded behind, of rows that each have another number of positions."""

    def __init__(self, build: GraphBuilder, age_R: ir.Value, keys: ir.Value, heads: int) -> None:
        """`keys` [R, H, U, A] are any layer's before the step."""
        self._build = build
        self._heads = heads
        self._length_R = build.cast(age_R, ir.DataType.INT32)
        longest = build.op("Add", [build.size(keys, 2), build.constant([1])])
        self._longest = build.cast(longest, ir.DataType.INT32)

    def attend(
        self, projected: ir.Value, keys: ir.Value, values: ir.Value, width: int
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Context [R, 1, D] of queries, keys and values side by side, and the past with the new position."""
        heads = self._heads
        grown: list[Size] = ["K*S", heads, "U + 1", width // heads]
        context, new_keys, new_values = self._build.ops(
            PAST,
            [projected, None, None, keys, values, self._length_R, self._longest],
            [[*grown[:1], 1, width], grown, grown],
            [keys.dtype] * 3,
            domain=KERNELS,
            num_heads=heads,
            kv_num_heads=heads,
        )
        return context, new_keys, new_values

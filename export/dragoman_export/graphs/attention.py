"""A Transformer's attention as nodes: of any device, and by onnxruntime's own kernels for CPUs.

Sums do not depend on how far a batch is padded; `traced_attention` says which sums could differ, and how each
is kept in order. A kernel is one node for some twenty, whose sums depend neither on padding nor on
neighbours. GroupQueryAttention knows how much of its past each row has, adds a position right behind that,
and reads nothing else; so each row's past begins at the first position and is padded behind.
MultiHeadAttention adds up over source positions in their order, and what is masked comes to nothing; but of a
single query it would be another routine, which groups positions by four: so a spare one, all zeros, keeps it
company.

Shapes: X sentences or rows, S sentences, R rows, H heads, Q queries, N positions attended to, T source
positions, U positions so far, A width of a head, D = H · A.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from dragoman_export.graphs.builder import KERNELS, GraphBuilder, Size, width_of

LEAST_EXPONENT = -80.0
"""A masked score's exponential would be 0 by way of numbers below the least normal one, which take a
processor some twenty times as long. exp(-80) is 1.8e-35, and lost beside the largest, which is 1."""
MASKED = -1e4
MAX_HEAD_WIDTH = 128


@dataclass(frozen=True)
class Mask:
    """Which positions count, as scores and sums need it."""

    is_masked: ir.Value
    """[X, 1, 1, N] bool."""
    columns: ir.Value
    """[X, 1, N, 2] float32, twice the same: what is summed is multiplied by a matrix, never by a vector."""


def check_head_width(width: int, heads: int) -> None:
    """Raises ValueError for heads so wide that a translation could depend on its neighbours."""
    if width // heads > MAX_HEAD_WIDTH:
        raise ValueError(
            f"its {heads} heads are {width // heads} wide, and beyond {MAX_HEAD_WIDTH} a translation may "
            "depend on what shares its batch; "
            f"train it with model.heads of at least {-(-width // MAX_HEAD_WIDTH)}"
        )


def make_mask(build: GraphBuilder, inside_XN: ir.Value) -> Mask:
    """Makes a mask of numbers that are 1 where a position counts, and else 0."""
    inside_X1N = build.op("Unsqueeze", [inside_XN, build.constant([1])])
    inside_X11N = build.op("Unsqueeze", [inside_X1N, build.constant([1])])
    column = build.op("Unsqueeze", [inside_X1N, build.constant([3])])
    zero = build.constant(0.0, ir.DataType.FLOAT)
    return Mask(
        is_masked=build.op("Equal", [inside_X11N, zero], dtype=ir.DataType.BOOL),
        columns=build.op("Concat", [column, column], axis=3),
    )


def scores_by_position(build: GraphBuilder, queries_XHQA: ir.Value, keys_XHNA: ir.Value) -> ir.Value:
    """Scaled dot products, [X, H, N, Q]: with positions as rows, and a spare query of zeros among columns."""
    # Before the product, which might overflow in float16.
    scale = build.number(1 / math.sqrt(width_of(queries_XHQA)))
    scaled = build.op("Mul", [queries_XHQA, scale], queries_XHQA.shape)
    turned = build.op("Transpose", [_with_spare(build, scaled)], perm=[0, 1, 3, 2])
    return build.slice(build.op("MatMul", [keys_XHNA, turned]), 0, -1, 3)


def softmax(build: GraphBuilder, scores_XHQN: ir.Value, mask: Mask) -> ir.Value:
    """Weights [X, H, Q, N] in float32; exactly 0 where masked."""
    scores = build.cast(scores_XHQN, ir.DataType.FLOAT)
    masked, zero, least = (build.constant(n, ir.DataType.FLOAT) for n in (MASKED, 0.0, LEAST_EXPONENT))
    scores = build.op("Where", [mask.is_masked, masked, scores], dtype=ir.DataType.FLOAT)
    largest = build.op("ReduceMax", [scores, build.constant([-1])], keepdims=1)
    exponents = build.op("Clip", [build.op("Sub", [scores, largest]), least])
    powers = build.op("Where", [mask.is_masked, zero, build.op("Exp", [exponents])], dtype=ir.DataType.FLOAT)
    return build.op("Div", [powers, build.slice(product(build, powers, mask.columns), 0, 1, 3)])


def product(build: GraphBuilder, rows_XHQN: ir.Value, columns: ir.Value) -> ir.Value:
    """[X, H, Q, N] by [X, H, N, Y], with a spare query."""
    rows = build.cast(rows_XHQN, columns.dtype or build.dtype)
    return build.slice(build.op("MatMul", [_with_spare(build, rows), columns]), 0, -1, 2)


def attend(
    build: GraphBuilder, queries_XHQA: ir.Value, keys_XHNA: ir.Value, values_XHNA: ir.Value, mask: Mask
) -> tuple[ir.Value, ir.Value]:
    """Context [X, H, Q, A] and weights [X, H, Q, N]."""
    scores_XHNQ = scores_by_position(build, queries_XHQA, keys_XHNA)
    weights = softmax(build, build.op("Transpose", [scores_XHNQ], perm=[0, 1, 3, 2]), mask)
    return product(build, weights, values_XHNA), weights


class Past:
    """What rows see of their past and themselves, when each sees another number of positions."""

    def __init__(self, build: GraphBuilder, age_R: ir.Value, keys: ir.Value, heads: int) -> None:
        """`keys` [R, H, U, A] are any layer's before the step, which adds a position behind."""
        self._build = build
        self._heads = heads
        one, zero = build.constant(1), build.constant(0)
        past = build.scalar(build.size(keys, 2))
        total = build.op("Add", [past, one])
        position_N = build.op("Range", [zero, total, one])
        age_R1 = build.op("Unsqueeze", [age_R, build.constant([1])])
        place_RN = build.op("Add", [position_N, build.op("Sub", [past, age_R1])])
        # Behind its end a row has its last position over and over, with weight 0.
        place_RN = build.op("Clip", [place_RN, None, past])
        rows = build.op("Mul", [build.scalar(build.size(age_R, 0)), build.constant(heads)])
        first = build.op("Mul", [build.op("Range", [zero, rows, one]), total])
        first_RH1 = build.reshape(first, [-1, heads, 1], [None, heads, 1])
        self._place_RHN = build.op("Add", [first_RH1, build.op("Unsqueeze", [place_RN, build.constant([1])])])
        is_inside = build.op("LessOrEqual", [position_N, age_R1], dtype=ir.DataType.BOOL)
        self._mask = make_mask(build, build.op("Cast", [is_inside], dtype=ir.DataType.FLOAT, to=1))

    def attend(self, queries_RH1A: ir.Value, keys_RHNA: ir.Value, values_RHNA: ir.Value) -> ir.Value:
        """The context of every row: [R, H, 1, A]."""
        build = self._build
        scores_RHN1 = self._moved(scores_by_position(build, queries_RH1A, keys_RHNA), 1)
        weights = softmax(build, build.op("Transpose", [scores_RHN1], perm=[0, 1, 3, 2]), self._mask)
        return product(build, weights, self._moved(values_RHNA, width_of(queries_RH1A)))

    def _moved(self, values: ir.Value, width: int) -> ir.Value:
        """[R, H, N, width], each row's from its own first position on."""
        flat = self._build.reshape(values, [-1, width], [None, width])
        return self._build.op("Gather", [flat, self._place_RHN], axis=0)


def _with_spare(build: GraphBuilder, rows: ir.Value) -> ir.Value:
    return build.op("Pad", [rows, build.constant([0, 0, 0, 0, 0, 0, 1, 0])], mode="constant")


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
    return build.slice(context, 0, -1, 1, queries_SQD.shape)


class PackedPast:
    """Pasts that are padded behind, of rows that each have another number of positions."""

    def __init__(self, build: GraphBuilder, age_R: ir.Value, keys: ir.Value, heads: int) -> None:
        """`keys` [R, H, U, A] are any layer's before the step."""
        self._build = build
        self._heads = heads
        self._length_R = build.cast(age_R, ir.DataType.INT32)
        longest = build.op("Add", [build.size(keys, 2), build.constant([1])])
        self._longest = build.cast(longest, ir.DataType.INT32)

    def attend(self, projected: ir.Value, keys: ir.Value, values: ir.Value, width: int) -> Sequence[ir.Value]:
        """Context [R, 1, D] of queries, keys and values side by side, and the past with the new position."""
        heads = self._heads
        grown: list[Size] = ["K*S", heads, "U + 1", width // heads]
        return self._build.ops(
            PAST,
            [projected, None, None, keys, values, self._length_R, self._longest],
            [[*grown[:1], 1, width], grown, grown],
            [keys.dtype] * 3,
            domain=KERNELS,
            num_heads=heads,
            kv_num_heads=heads,
        )

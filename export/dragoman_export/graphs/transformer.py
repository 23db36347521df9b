"""A Transformer's graphs, written node by node and filled with its weights.

The memory of a source is its mask and, for each decoder layer, the keys and values of cross-attention. A
step's state is `age`, how many steps a row has lived through, and for each layer keys and values of its past,
which grow to the right, or an SSRU's cell. A row sees the last `age` positions of its past.

Shapes: S sentences, K beam, R = S·K rows, P rows of the step before, T source positions, U target positions
so far, H heads, A width of a head, D = H · A, X sentences or rows, N positions of any kind.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from dragoman_export.graphs.attention import (
    HEAD_WIDTH,
    PackedPast,
    Past,
    attend,
    attend_to_source,
    check_head_width,
    make_mask,
    scores_by_position,
    softmax,
)
from dragoman_export.graphs.builder import GraphBuilder, Graphs, Shape, Size
from dragoman_export.graphs.step_end import StepInputs, end_step, with_reach
from dragoman_export.reference.imported import Activation, Imported, Name, TransformerArchitecture

BOOL, FLOAT, INT32, INT64 = ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64
ROWS = "K*S"
Values = dict[str, ir.Value]


def takes_kernels(imported: Imported | None) -> bool:
    """Whether it is a Transformer with heads of a width that onnxruntime's kernels for CPUs take."""
    architecture = None if imported is None else imported.architecture
    if not isinstance(architecture, TransformerArchitecture):
        return False
    return architecture.past == "ssru" or (architecture.width // architecture.heads) % HEAD_WIDTH == 0


def write_transformer(imported: Imported, *, dtype: ir.DataType = FLOAT, for_cpu: bool = False) -> Graphs:
    """Both graphs, computing in `dtype`: FLOAT or FLOAT16.

    With `for_cpu` attention is by onnxruntime's kernels for CPUs, which other devices lack. Raises ValueError
    for heads too wide for their sums to be fixed.
    """
    architecture = imported.architecture
    assert isinstance(architecture, TransformerArchitecture)
    check_head_width(architecture.width, architecture.heads)
    weights = with_reach(imported.weights, architecture.never_produced, architecture.barred)
    encoder = _Encoder(GraphBuilder("encoder", weights, dtype), architecture, for_cpu=for_cpu)
    step = _Step(GraphBuilder("decoder_step", weights, dtype), architecture, for_cpu=for_cpu)
    return Graphs(encoder.write(), step.write())


class _Side:
    def __init__(self, build: GraphBuilder, architecture: TransformerArchitecture, *, for_cpu: bool) -> None:
        self._build, self._a, self._for_cpu = build, architecture, for_cpu
        self._head_width = architecture.width // architecture.heads

    def _embed(self, name: str, token: ir.Value, table: str, position: ir.Value, shape: Shape) -> ir.Value:
        """Scaled embeddings and positions; what lies beyond the table has the vector of its end."""
        build = self._build
        vectors = build.op("Gather", [build.weight(name), token], shape, axis=0)
        if self._a.embedding_scale != 1:
            vectors = build.op("Mul", [vectors, build.number(self._a.embedding_scale)], shape)
        last = build.constant(build.rows(table) - 1)
        position = build.op("Clip", [position, None, last], position.shape)
        added = build.op("Gather", [build.weight(table), position], axis=0)
        return build.op("Add", [vectors, added], shape)

    def _residual(self, x: ir.Value, around: str, change: Callable[[ir.Value], ir.Value]) -> ir.Value:
        """The sublayer's change added to what it reads, which is normalised before it, or the sum."""
        if self._a.norm == "pre":
            return self._build.op("Add", [x, change(self._norm(x, f"{around}.norm"))], x.shape)
        return self._norm(self._build.op("Add", [x, change(x)], x.shape), f"{around}.norm")

    def _feed_forward(self, x: ir.Value, layer: str) -> ir.Value:
        def change(x: ir.Value) -> ir.Value:
            hidden = self._build.linear(x, f"{layer}.feed_forward.expand")
            hidden = ACTIVATIONS[self._a.activation](self._build, hidden)
            return self._build.linear(hidden, f"{layer}.feed_forward.contract")

        return self._residual(x, f"{layer}.feed_forward_residual", change)

    def _norm(self, x: ir.Value, name: str) -> ir.Value:
        return self._build.norm(x, name, self._a.norm_epsilon)

    def _last_norm(self, x: ir.Value, name: str) -> ir.Value:
        return self._norm(x, name) if self._build.has(f"{name}.weight") else x

    def _split(self, projected_XND: ir.Value, parts: int) -> list[ir.Value]:
        """[X, N, parts · D] -> [X, N, D], as many as there are parts."""
        assert projected_XND.shape is not None
        shape = [*projected_XND.shape[:-1], self._a.width]
        axis = len(shape) - 1
        return list(self._build.ops("Split", [projected_XND], [shape] * parts, axis=axis, num_outputs=parts))

    def _by_head(self, x_XND: ir.Value) -> ir.Value:
        """[X, N, D] -> [X, H, N, A]."""
        sizes = [self._a.heads, self._head_width]
        x_XNHA = self._build.reshape(x_XND, [0, 0, *sizes])
        return self._build.op("Transpose", [x_XNHA], [None, sizes[0], None, sizes[1]], perm=[0, 2, 1, 3])

    def _join(self, x_XHNA: ir.Value) -> ir.Value:
        """[X, H, N, A] -> [X, N, D]."""
        x_XNHA = self._build.op("Transpose", [x_XHNA], perm=[0, 2, 1, 3])
        return self._build.reshape(x_XNHA, [0, 0, self._a.width], [None, None, self._a.width])

    def _past_names(self, number: int) -> list[str]:
        return [f"cell{number}"] if self._a.past == "ssru" else [f"keys{number}", f"values{number}"]

    def _shape(self, name: str, first: Size, positions: Size) -> list[Size]:
        """The shape of a tensor of memory or state, whose keys and values are of so many positions."""
        if name in ("age", "mask"):
            return [first] if name == "age" else [first, positions]
        if name.startswith("cell"):
            return [first, self._a.width]
        return [first, self._a.heads, positions, self._head_width]

    def _return(self, kind: str, values: Values, first: Size, positions: Size) -> None:
        for name in sorted(values):
            self._build.output(f"{kind}.{name}", values[name], self._shape(name, first, positions))


class _Encoder(_Side):
    """source, source_length -> memory and first state, each in the order of their names."""

    def write(self) -> ir.Model:
        build, a = self._build, self._a
        source = build.input("source", ["S", "T"], INT64)
        length_S = build.input("source_length", ["S"], INT64)
        positions = build.scalar(build.size(source, 1))
        position_T = build.op("Range", [build.constant(0), positions, build.constant(1)], ["T"])
        length_S1 = build.op("Unsqueeze", [length_S, build.constant([1])], ["S", 1])
        mask_ST = build.cast(build.op("Less", [position_T, length_S1], ["S", "T"], BOOL), FLOAT)
        attention = self._attention(mask_ST)
        x = self._embed(Name.SOURCE, source, Name.POSITIONS, position_T, ["S", "T", a.width])
        for number in range(a.encoder_layers):
            x = self._layer(x, f"encoder_layers.{number}", attention)
        x = self._last_norm(x, "encoder_norm")
        memory, state = {"mask": mask_ST}, {"age": build.op("Sub", [length_S, length_S], ["S"])}
        own = build.constant([a.width] if a.past == "ssru" else [a.heads, 0, self._head_width])
        sizes = build.op("Concat", [build.size(source, 0), own], axis=0)
        zero = ir.tensor(np.zeros(1, build.dtype.numpy()))
        nothing = build.op("ConstantOfShape", [sizes], dtype=build.dtype, value=zero)
        for number in range(a.decoder_layers):
            projected = build.linear(x, f"decoder_layers.{number}.cross_attention.memory")
            keys, values = map(self._by_head, self._split(projected, 2))
            memory |= {f"keys{number}": keys, f"values{number}": values}
            state |= dict.fromkeys(self._past_names(number), nothing)
        self._return("memory", memory, "S", "T")
        self._return("state", state, "S", 0)
        return build.model()

    def _layer(self, x: ir.Value, layer: str, attention: "Attention") -> ir.Value:
        def change(x: ir.Value) -> ir.Value:
            projected = self._build.linear(x, f"{layer}.attention.input")
            return self._build.linear(attention(*self._split(projected, 3)), f"{layer}.attention.output")

        return self._feed_forward(self._residual(x, f"{layer}.attention_residual", change), layer)

    def _attention(self, mask_ST: ir.Value) -> "Attention":
        build, heads, head = self._build, self._a.heads, self._by_head
        if self._for_cpu:
            is_inside = build.cast(mask_ST, INT32)
            return lambda q, k, v: attend_to_source(build, q, k, v, is_inside, heads)
        mask = make_mask(build, mask_ST)
        return lambda q, k, v: self._join(attend(build, head(q), head(k), head(v), mask)[0])


Attention = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
"""Queries, keys and values, [S, T, D], to contexts."""


class _Step(_Side):
    """One token for every row: candidates, forced scores, attention and the new state."""

    def write(self) -> ir.Model:
        build, a = self._build, self._a
        inputs = StepInputs.of(build)
        layers = range(a.decoder_layers)
        memory_names = ["mask", *(f"{name}{number}" for number in layers for name in ("keys", "values"))]
        state_names = ["age", *(name for number in layers for name in self._past_names(number))]
        self._memory = self._given("memory", memory_names, "S", "T")
        state = self._given("state", state_names, "P", "U")
        parent_R = build.reshape(inputs.parent, [-1], [ROWS])
        self._rows = {
            name: build.op("Gather", [value, parent_R], self._shape(name, ROWS, "U"), axis=0)
            for name, value in state.items()
        }
        age_R = self._rows["age"]
        self._new = {"age": build.op("Add", [age_R, build.constant(1)], [ROWS])}
        if self._for_cpu:
            self._is_inside = build.cast(self._memory["mask"], INT32)
            self._wants_attention = build.choice("wants_attention")
        else:
            self._mask = make_mask(build, self._memory["mask"])
        sizes = build.op("Shape", [inputs.token], [2], INT64)
        self._by_row = build.op("Concat", [sizes, build.constant([a.width])], [3], axis=0)
        if a.past == "self-attention":
            self._past = (PackedPast if self._for_cpu else Past)(build, age_R, state["keys0"], a.heads)
        shape: Shape = ["S", "K", a.width]
        position = build.reshape(age_R, sizes, shape[:2])
        x = self._embed(Name.TARGET, inputs.token, Name.TARGET_POSITIONS, position, shape)
        for number in layers:
            x = self._layer(x, number)
        features = build.reshape(self._last_norm(x, "decoder_norm"), [-1, a.width], [ROWS, a.width])
        end_step(build, features, inputs)
        build.output("attention", self._attention, ["S", "K", "T"])
        self._return("next_state", self._new, ROWS, "U + 1")
        return build.model()

    def _given(self, kind: str, names: list[str], first: Size, positions: Size) -> Values:
        types = {"mask": FLOAT, "age": INT64}
        return {
            name: self._build.input(
                f"{kind}.{name}", self._shape(name, first, positions), types.get(name, self._build.dtype)
            )
            for name in sorted(names)
        }

    def _layer(self, x: ir.Value, number: int) -> ir.Value:
        layer = f"decoder_layers.{number}"
        recall = self._remember if self._a.past == "ssru" else self._look_back
        x = self._residual(x, f"{layer}.self_residual", lambda x: recall(x, layer, number))
        x = self._residual(x, f"{layer}.cross_residual", lambda x: self._look_at_source(x, layer, number))
        return self._feed_forward(x, layer)

    def _remember(self, x_SKD: ir.Value, layer: str, number: int) -> ir.Value:
        """SSRU: f = σ(gate), c = f · c + (1 - f) · candidate, ReLU(c)."""
        build = self._build
        shape: list[Size] = [ROWS, self._a.width]
        x_RD = build.reshape(x_SKD, [-1, self._a.width], shape)
        gate, candidate = self._split(build.linear(x_RD, f"{layer}.ssru.input"), 2)
        forget = build.op("Sigmoid", [gate], shape)
        added = build.op("Mul", [build.op("Sub", [build.number(1), forget], shape), candidate], shape)
        kept = build.op("Mul", [forget, self._rows[f"cell{number}"]], shape)
        cell = self._new[f"cell{number}"] = build.op("Add", [kept, added], shape)
        return build.reshape(build.op("Relu", [cell], shape), self._by_row, x_SKD.shape)

    def _look_back(self, x_SKD: ir.Value, layer: str, number: int) -> ir.Value:
        """Self-attention of each row, which sees itself and its past."""
        build, a = self._build, self._a
        x_R1D = build.reshape(x_SKD, [-1, 1, a.width], [ROWS, 1, a.width])
        projected = build.linear(x_R1D, f"{layer}.self_attention.input")
        names = self._past_names(number)
        keys, values = (self._rows[name] for name in names)
        if isinstance(self._past, PackedPast):
            context, keys, values = self._past.attend(projected, keys, values, a.width)
        else:
            query, *added = map(self._by_head, self._split(projected, 3))
            keys, values = (
                build.op("Concat", [old, new], self._shape(name, ROWS, "U + 1"), axis=2)
                for name, old, new in zip(names, (keys, values), added, strict=True)
            )
            context = self._join(self._past.attend(query, keys, values))
        self._new |= dict(zip(names, (keys, values), strict=True))
        output = build.linear(context, f"{layer}.self_attention.output")
        return build.reshape(output, self._by_row, x_SKD.shape)

    def _look_at_source(self, x_SKD: ir.Value, layer: str, number: int) -> ir.Value:
        """Cross-attention; of the layer that aligns, the weights are what the step returns."""
        build, a, head = self._build, self._a, self._a.alignment_head
        queries = build.linear(x_SKD, f"{layer}.cross_attention.query")
        keys, values = (self._memory[f"{name}{number}"] for name in ("keys", "values"))
        aligns = number == (a.decoder_layers - 1 if head is None else head.layer)
        if self._for_cpu:
            context = attend_to_source(build, queries, keys, values, self._is_inside, a.heads)
            if aligns:
                self._attention = build.where_chosen(
                    self._wants_attention, lambda: self._weights_alone(queries, keys), ["S", "K", "T"]
                )
        else:
            context, weights = attend(build, self._by_head(queries), keys, values, self._mask)
            context = self._join(context)
            if head is not None and aligns:
                weights = self._one_head(weights, head.head)
            if aligns:
                self._attention = self._mean(weights, a.heads if head is None else 1)
        return build.linear(context, f"{layer}.cross_attention.output")

    def _weights_alone(self, queries_SKD: ir.Value, keys_SHTA: ir.Value) -> ir.Value:
        """[S, K, T]: the weights of the heads that align, which the kernel keeps to itself."""
        build, head, queries = self._build, self._a.alignment_head, self._by_head(queries_SKD)
        if head is not None:
            queries, keys_SHTA = (self._one_head(each, head.head) for each in (queries, keys_SHTA))
        scores_SHTK = scores_by_position(build, queries, keys_SHTA)
        scores_SHKT = build.op("Transpose", [scores_SHTK], perm=[0, 1, 3, 2])
        weights = softmax(build, scores_SHKT, make_mask(build, self._memory["mask"]))
        return self._mean(weights, self._a.heads if head is None else 1)

    def _mean(self, weights_SHKT: ir.Value, heads: int) -> ir.Value:
        """[S, K, T]: in the heads' order, which what reduces an axis does not promise for every batch."""
        build = self._build
        if heads > 1:
            parts = build.ops("Split", [weights_SHKT], [None] * heads, axis=1, num_outputs=heads)
            weights_SHKT = build.op("Div", [build.op("Sum", parts), build.constant(float(heads), FLOAT)])
        return build.op("Squeeze", [weights_SHKT, build.constant([1])])

    def _one_head(self, values_SHXX: ir.Value, head: int) -> ir.Value:
        shape = None if values_SHXX.shape is None else [None, 1, *values_SHXX.shape[2:]]
        return self._build.slice(values_SHXX, head, head + 1, 1, shape)


def _swish(build: GraphBuilder, x: ir.Value, slope: float = 1.0) -> ir.Value:
    """x · σ(slope · x)."""
    sloped = x if slope == 1 else build.op("Mul", [x, build.number(slope)], x.shape)
    return build.op("Mul", [x, build.op("Sigmoid", [sloped], x.shape)], x.shape)


ACTIVATIONS: dict[Activation, Callable[[GraphBuilder, ir.Value], ir.Value]] = {
    "relu": lambda build, x: build.op("Relu", [x], x.shape),
    "gelu": lambda build, x: build.op("Gelu", [x], x.shape, approximate="none"),
    "gelu-tanh": lambda build, x: build.op("Gelu", [x], x.shape, approximate="tanh"),
    "gelu-sigmoid": lambda build, x: _swish(build, x, 1.702),
    "swish": _swish,
}

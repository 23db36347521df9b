"""The graphs of Marian's recurrent encoder-decoder, written node by node and filled with its weights.

The memory of a source is its mask, the encoder's states and what attention makes of them; a step's state is
the hidden state of each decoder layer.

Shapes: S sentences, K beam, R = S·K rows, P rows of the step before, T source positions, E embedding width,
H units, M width of a source position's state.
"""

import onnx_ir as ir

from dragoman_export.graphs.attention import make_mask, product, softmax
from dragoman_export.graphs.builder import GraphBuilder, Graphs, Shape, width_of
from dragoman_export.graphs.step_end import StepInputs, end_step, with_reach
from dragoman_export.reference.imported import Imported, Name, S2SArchitecture

BOOL, FLOAT, INT64 = ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.INT64
ROWS = "K*S"


def write_s2s(imported: Imported, *, dtype: ir.DataType = FLOAT) -> Graphs:
    """Both graphs, computing in `dtype`: FLOAT or FLOAT16."""
    architecture = imported.architecture
    assert isinstance(architecture, S2SArchitecture)
    weights = with_reach(imported.weights, architecture.never_produced, architecture.barred)
    encoder, step = (GraphBuilder(name, weights, dtype) for name in ("encoder", "decoder_step"))
    return Graphs(_Encoder(encoder, architecture).write(), _Step(step, architecture).write())


class _Side:
    def __init__(self, build: GraphBuilder, architecture: S2SArchitecture) -> None:
        self._build, self._a = build, architecture

    def _product(self, rows: ir.Value, name: str) -> ir.Value:
        """Rows times a matrix, normalised by layer where there are weights for it."""
        assert rows.shape is not None
        build = self._build
        shape = [*rows.shape[:-1], build.rows(f"{name}.weight")]
        result = build.op("MatMul", [rows, build.matrix(f"{name}.weight")], shape)
        if build.has(f"{name}.norm.weight"):
            result = build.norm(result, f"{name}.norm", self._a.norm_epsilon)
        return result

    def _dense(self, rows: ir.Value, name: str) -> ir.Value:
        result = self._product(rows, name)
        return self._build.op("Add", [result, self._build.weight(f"{name}.bias")], result.shape)

    def _cell(self, given: ir.Value | None, hidden: ir.Value, name: str) -> ir.Value:
        """A GRU's new state from what it is given, already multiplied [R, 3H], or as a transition nothing."""
        build, shape = self._build, hidden.shape
        gates = self._thirds(self._product(hidden, f"{name}.recurrent"))
        # The decoder's cells behind the first have the bias within the product of the reset gate.
        is_final = name.startswith("decoder.0.") and not name.endswith(".0")
        # Constants where the graph is folded.
        bias = build.weight(f"{name}.bias")
        biases = build.ops("Split", [bias], [[self._a.units]] * 3, axis=0, num_outputs=3)
        inputs = [None] * 3 if given is None else self._thirds(given)

        def total(*values: ir.Value | None) -> ir.Value:
            first, *others = (value for value in values if value is not None)
            for other in others:
                first = build.op("Add", [first, other], shape)
            return first

        reset, update = (
            build.op("Sigmoid", [total(gates[gate], inputs[gate], biases[gate])], shape) for gate in range(2)
        )
        remembered = total(gates[2], biases[2]) if is_final else gates[2]
        remembered = build.op("Mul", [reset, remembered], shape)
        candidate = total(remembered, inputs[2], None if is_final else biases[2])
        candidate = build.op("Tanh", [candidate], shape)
        kept = build.op("Mul", [update, build.op("Sub", [hidden, candidate], shape)], shape)
        return build.op("Add", [candidate, kept], shape)

    def _thirds(self, values: ir.Value) -> list[ir.Value]:
        assert values.shape is not None
        shape = [*values.shape[:-1], self._a.units]
        return list(self._build.ops("Split", [values], [shape] * 3, axis=-1, num_outputs=3))


class _Encoder(_Side):
    """source, source_length -> memory and first state, each in the order of their names."""

    def write(self) -> ir.Model:
        build, a = self._build, self._a
        source = build.input("source", ["S", "T"], INT64)
        length_S = build.input("source_length", ["S"], INT64)
        positions = build.scalar(build.size(source, 1))
        position_T = build.op("Range", [build.constant(0), positions, build.constant(1)], ["T"])
        length_S1 = build.op("Unsqueeze", [length_S, build.constant([1])], ["S", 1])
        is_inside = build.op("Less", [position_T, length_S1], ["S", "T"], BOOL)
        mask_ST = build.cast(is_inside, FLOAT)
        shape: Shape = ["S", "T", a.embedding_size]
        embedded = build.op("Gather", [build.weight(Name.SOURCE), source], shape, axis=0)
        always = build.op("GreaterOrEqual", [position_T, build.constant(0)], ["T"], BOOL)
        always = build.op("Or", [is_inside, always], ["S", "T"], BOOL)
        tops = []
        for way in ("forward", "backward"):
            x = embedded
            for number in range(a.encoder_layers if a.both_ways else 1):
                x = self._read(x, is_inside, f"encoder_{way}.{number}", number)
            tops.append(x)
        width = 2 * a.units
        x = build.op("Concat", tops, ["S", "T", width], axis=2)
        for number in range(0 if a.both_ways else a.encoder_layers - 1):
            x, width = self._read(x, always, f"encoder_upper.{number}", number), a.units
        keys = self._product(x, "attention.keys")
        keys = build.op("Add", [keys, build.weight("attention.keys.bias")], keys.shape)
        start = build.op("Tanh", [self._dense(self._mean(x, mask_ST, width), "bridge")], ["S", a.units])
        build.output("memory.keys", keys, ["S", "T", width])
        build.output("memory.mask", mask_ST, ["S", "T"])
        build.output("memory.values", x, ["S", "T", width])
        for number in range(a.decoder_layers):
            build.output(f"state.hidden{number}", start, ["S", a.units])
        return build.model()

    def _mean(self, x: ir.Value, mask_ST: ir.Value, width: int) -> ir.Value:
        build = self._build
        mask = make_mask(build, mask_ST)
        one = build.constant([1])
        rows = build.op("Unsqueeze", [build.op("Unsqueeze", [mask_ST, one]), one])
        count = build.slice(product(build, rows, mask.columns), 0, 1, 3)
        total = product(build, rows, build.op("Unsqueeze", [x, one]))
        mean = build.op("Div", [total, build.cast(count, build.dtype)])
        return build.reshape(mean, [-1, width], ["S", width])

    def _read(self, x: ir.Value, is_inside: ir.Value, name: str, number: int) -> ir.Value:
        """A layer over all positions, each sentence from its own end where it is backward: [S, T, H]."""
        build, a = self._build, self._a
        given = self._product(x, f"{name}.0.input")
        # A sentence more, as a product with a vector sums in another order than one with a matrix.
        spare = [build.constant([0, 0, 0, 1, 0, 0]), build.constant([0, 0, 1, 0])]
        given = build.op("Pad", [given, spare[0]], ["S + 1", "T", 3 * a.units], mode="constant")
        inside = build.cast(is_inside, build.dtype)
        inside = build.op("Pad", [inside, spare[1]], ["S + 1", "T"], mode="constant")
        inside = build.op("Unsqueeze", [inside, build.constant([2])], ["S + 1", "T", 1])
        sizes = build.op("Concat", [build.size(given, 0), build.constant([a.units])], [2], axis=0)
        nothing = build.op("Expand", [build.number(0), sizes], ["S + 1", a.units])
        direction = int("backward" in name)
        _, outputs = build.ops(
            "Scan",
            [nothing, given, inside],
            [["S + 1", a.units], ["S + 1", "T", a.units]],
            body=self._position(name),
            num_scan_inputs=2,
            scan_input_axes=[1, 1],
            scan_output_axes=[1],
            scan_input_directions=[direction] * 2,
            scan_output_directions=[direction],
        )
        outputs = build.slice(outputs, 0, -1, 0, ["S", "T", a.units])
        return build.op("Add", [outputs, x], outputs.shape) if a.skip and number > 0 else outputs

    def _position(self, name: str) -> ir.Graph:
        """One position: the old state, what is given and whether it is inside -> the new state, twice."""
        build, rows = self._build, "S + 1"
        shape: Shape = [rows, self._a.units]
        with build.within(name) as body:
            hidden = build.input("hidden", shape, build.dtype)
            given = build.input("given", [rows, 3 * self._a.units], build.dtype)
            inside = build.input("inside", [rows, 1], build.dtype)
            new = hidden
            for cell in range(self._a.encoder_cells):
                new = self._cell(given if cell == 0 else None, new, f"{name}.{cell}")
            is_inside = build.op("Greater", [inside, build.number(0)], [rows, 1], BOOL)
            new = build.op("Where", [is_inside, new, hidden], shape, build.dtype)
            body.outputs.extend([new, build.op("Identity", [new], shape)])
        return body


class _Step(_Side):
    """One token for every row: candidates, forced scores, attention and the new state."""

    def write(self) -> ir.Model:
        build, a = self._build, self._a
        inputs = StepInputs.of(build)
        width = build.rows("attention.keys.bias")
        keys = build.input("memory.keys", ["S", "T", width], build.dtype)
        mask_ST = build.input("memory.mask", ["S", "T"], FLOAT)
        values = build.input("memory.values", ["S", "T", width], build.dtype)
        old = [build.input(f"state.hidden{n}", ["P", a.units], build.dtype) for n in range(a.decoder_layers)]
        parent_R = build.reshape(inputs.parent, [-1], [ROWS])
        old = [build.op("Gather", [value, parent_R], [ROWS, a.units], axis=0) for value in old]
        token_R = build.reshape(inputs.token, [-1], [ROWS])
        embedded = build.op("Gather", [build.weight(Name.TARGET), token_R], [ROWS, a.embedding_size], axis=0)
        hidden = self._cell(self._product(embedded, "decoder.0.0.input"), old[0], "decoder.0.0")
        sizes = build.op("Shape", [inputs.token], [2], INT64)
        context, attention = self._attend(hidden, keys, values, mask_ST, sizes)
        for cell in range(1, a.base_cells):
            read = self._product(context, f"decoder.0.{cell}.input") if cell == 1 else None
            hidden = self._cell(read, hidden, f"decoder.0.{cell}")
        new, x = [hidden], hidden
        for number in range(1, a.decoder_layers):
            hidden = old[number]
            for cell in range(a.high_cells):
                name = f"decoder.{number}.{cell}"
                read = self._product(x, f"{name}.input") if cell == 0 else None
                hidden = self._cell(read, hidden, name)
            new.append(hidden)
            x = build.op("Add", [hidden, x], x.shape) if a.skip else hidden
        parts = [("token", embedded), ("hidden", x), ("context", context)]
        token, *others = (self._dense(rows, f"readout.{name}") for name, rows in parts)
        for other in others:
            token = build.op("Add", [token, other], token.shape)
        end_step(build, build.op("Tanh", [token], token.shape), inputs)
        build.output("attention", attention, ["S", "K", "T"])
        for number, value in enumerate(new):
            build.output(f"next_state.hidden{number}", value, [ROWS, a.units])
        return build.model()

    def _attend(
        self, hidden: ir.Value, keys: ir.Value, values: ir.Value, mask_ST: ir.Value, sizes: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Additive attention (Bahdanau et al. 2015): context [R, M] and weights [S, K, T]."""
        build, one, width = self._build, self._build.constant([1]), width_of(keys)
        query = self._product(hidden, "attention.query")
        by_row = build.op("Concat", [sizes, build.constant([1, width])], [4], axis=0)
        query_SK1M = build.reshape(query, by_row, ["S", "K", 1, width])
        keys_S1TM = build.op("Unsqueeze", [keys, one], ["S", 1, "T", width])
        sums = build.op("Tanh", [build.op("Add", [query_SK1M, keys_S1TM])], ["S", "K", "T", width])
        weighed = build.op("Mul", [sums, build.weight("attention.direction")], sums.shape)
        scores = build.op("ReduceSum", [weighed, build.constant([-1])], ["S", "K", "T"], keepdims=0)
        scores_S1KT = build.op("Unsqueeze", [scores, one], ["S", 1, "K", "T"])
        weights = softmax(build, scores_S1KT, make_mask(build, mask_ST))
        context = product(build, weights, build.op("Unsqueeze", [values, one], ["S", 1, "T", width]))
        context = build.reshape(context, [-1, width], [ROWS, width])
        return context, build.op("Squeeze", [weights, one], ["S", "K", "T"])

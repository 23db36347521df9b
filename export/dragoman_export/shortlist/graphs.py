"""The two graphs that decode with a lexical shortlist, made from a decoder-step graph of any precision.

`shortlist` gathers a sentence's part of the output layer once, as memory; `decoder_step_shortlist` is the
step with a product over that part in place of the whole vocabulary. Padding, which has id -1 among the
candidates, is out of reach: its log-probability is -inf.

Shapes: S sentences, K beam, R = S·K rows, C candidates of a sentence, D width, V target vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from dragoman_bundle.manifest import SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH
from numpy.typing import NDArray
from onnx_ir.passes.common import RemoveUnusedNodesPass
from onnx_ir.tape import Tape

from dragoman_export.graphs.attention import LEAST_EXPONENT
from dragoman_export.graphs.builder import (
    KERNELS,
    OPSET,
    Graphs,
    Shape,
    initializer,
    make_value,
    stored_array,
)
from dragoman_export.graphs.rewrites import OutputProduct, find_output_product
from dragoman_export.graphs.step_end import BARRED
from dragoman_export.int8.graph import PRODUCT, ZERO_POINT


@dataclass(frozen=True)
class ShortlistGraphs:
    """The shortlist's graphs of one precision."""

    shortlist: ir.Model
    """candidates -> the memory that belongs to them."""
    decoder_step: ir.Model
    """As the step without a shortlist, but for that memory, and `forced` as a place among the candidates."""


def make_shortlist_graphs(graphs: Graphs) -> ShortlistGraphs:
    """The shortlist's graphs beside the given ones; they have the same constants as the step."""
    product = find_output_product(graphs.decoder_step.graph)
    return ShortlistGraphs(_gather_graph(product), _step_graph(graphs.decoder_step.clone()))


class _Builder:
    """Nodes and small constants of a graph."""

    def __init__(self, graph: ir.Graph, tape: Tape) -> None:
        self._graph = graph
        self.op = tape.op
        self.ops = tape.op_multi_out

    def constant(self, name: str, value: NDArray[np.generic] | np.generic) -> ir.Value:
        """The initializer of that name, made where there is none yet."""
        return initializer(self._graph, f"shortlist.{name}", value)

    def axis(self, number: int) -> ir.Value:
        return self.constant(f"axis_{number}", np.array([number], np.int64))


def _gather_graph(product: OutputProduct) -> ir.Model:
    """candidates [S, C], -1 for padding -> the memory of `_MEMORY`."""
    candidates = make_value("candidates", ["S", "C"], ir.DataType.INT64)
    graph = ir.Graph([candidates], [], nodes=[], opset_imports={"": OPSET}, name=SHORTLIST_GRAPH)
    tape = Tape()
    build = _Builder(graph, tape)
    zero = build.constant("zero", np.int64(0))
    candidate = build.op("Max", [candidates, zero])
    # The same [V, D] that the step has: what is equal is stored once for all graphs.
    weight = initializer(graph, str(product.weight.name), stored_array(product.weight))
    weight = build.op("Gather", [weight, candidate])
    weight = build.op("Transpose", [weight], {"perm": [0, 2, 1]})
    bias = initializer(graph, "shortlist.bias", stored_array(product.bias).astype(np.float32))
    outputs = {
        "memory.candidate": candidate,
        "memory.candidate_mask": build.op("GreaterOrEqual", [candidates, zero]),
        "memory.output_bias": build.op("Gather", [bias, candidate]),
        "memory.output_weight": weight,
    }
    if product.weight_scale is not None:
        scale = initializer(graph, str(product.weight_scale.name), stored_array(product.weight_scale))
        outputs["memory.output_scale"] = build.op("Gather", [scale, candidate])
    graph.extend(tape.nodes)
    for given in _memory(product):
        value = outputs[str(given.name)]
        value.name, value.type, value.shape = given.name, given.type, given.shape
        graph.outputs.append(value)
    return ir.Model(graph, ir_version=10)


def _step_graph(model: ir.Model) -> ir.Model:
    graph = model.graph
    product = find_output_product(graph)
    inputs = {str(value.name): value for value in graph.inputs}
    vocabulary, width = product.shape
    tape = Tape()
    build = _Builder(graph, tape)
    memory = {str(value.name): value for value in _memory(product)}
    graph.inputs.extend(memory.values())

    token, score_SK = inputs["token"], inputs["score"]
    sizes = build.op("Shape", [token])
    logits_SKC = _logits(build, product, memory, sizes, width)
    infinity = build.constant("out_of_reach", np.float32(-np.inf))
    bias_SC = build.op("Where", [memory["memory.candidate_mask"], memory["memory.output_bias"], infinity])
    logits_SKC = build.op("Add", [logits_SKC, build.op("Unsqueeze", [bias_SC, build.axis(1)])])

    # The log-softmax in parts, as much of what a sentence's neighbours have more of is out of reach.
    last = build.axis(-1)
    below_largest_SKC = build.op("Sub", [logits_SKC, build.op("ReduceMax", [logits_SKC, last])])
    least = build.constant("least_exponent", np.float32(LEAST_EXPONENT))
    power_SKC = build.op("Exp", [build.op("Max", [below_largest_SKC, least])])
    sum_SK1 = build.op("ReduceSum", [power_SKC, last])
    # Of one number each: "Log" rounds otherwise at an array's end, and a sentence may stand anywhere in it.
    log_sum_SK1 = build.op("ReduceLogSum", [sum_SK1, last])
    start_SK1 = build.op("Sub", [build.op("Unsqueeze", [score_SK, last]), log_sum_SK1])
    running_SKC = build.op("Add", [below_largest_SKC, start_SK1])
    if BARRED in graph.initializers:
        barred_SC = build.op("Gather", [graph.initializers[BARRED], memory["memory.candidate"]])
        running_SKC = build.op("Add", [running_SKC, build.op("Unsqueeze", [barred_SC, build.axis(1)])])

    forced_SK1 = build.op("Unsqueeze", [inputs["forced"], last])
    forced_SK1 = build.op("GatherElements", [running_SKC, forced_SK1], {"axis": -1})
    forced_score = build.op("Squeeze", [forced_SK1, last])

    running_SX = build.op("Reshape", [running_SKC, build.constant("by_sentence", np.array([0, -1]))])
    beam = build.op("Shape", [token], {"start": 1, "end": 2})
    twice = build.op("Mul", [beam, build.constant("two", np.int64(2))])
    top_score, place = build.ops("TopK", [running_SX, twice], num_outputs=2)
    # A place among a sentence's rows of candidates -> row * vocabulary + token.
    num_candidates = build.op("Shape", [memory["memory.candidate"]], {"start": 1, "end": 2})
    row = build.op("Div", [place, num_candidates])
    column = build.op("Sub", [place, build.op("Mul", [row, num_candidates])])
    found = build.op("GatherElements", [memory["memory.candidate"], column], {"axis": 1})
    row_start = build.op("Mul", [row, build.constant("vocabulary", np.int64(vocabulary))])
    top_index = build.op("Add", [row_start, found])

    graph.extend(tape.nodes)
    results = {"top_score": top_score, "top_index": top_index, "forced_score": forced_score}
    for place_of_output, old in enumerate(list(graph.outputs)):
        if old.name in results:
            new = results[old.name]
            old.name, new.name = f"{old.name}.whole_vocabulary", old.name
            new.shape, new.type = old.shape, old.type
            graph.outputs[place_of_output] = new
    graph.name = SHORTLIST_STEP_GRAPH
    RemoveUnusedNodesPass()(model)
    return model


def _logits(
    build: _Builder, product: OutputProduct, memory: dict[str, ir.Value], sizes: ir.Value, width: int
) -> ir.Value:
    """[S, K, C] float32, without the bias."""

    def by_sentence(rows: ir.Value, width: int) -> ir.Value:
        shape = build.op("Concat", [sizes, build.axis(width)], {"axis": 0})
        return build.op("Reshape", [rows, shape])

    rows_SKD, weight_SDC = by_sentence(product.rows, width), memory["memory.output_weight"]
    if product.weight_scale is None:
        logits_SKC = build.op("MatMul", [rows_SKD, weight_SDC])
        is_float16 = product.weight.dtype == ir.DataType.FLOAT16
        return build.op("Cast", [logits_SKC], {"to": ir.DataType.FLOAT}) if is_float16 else logits_SKC
    zero_point = build.constant("zero_point", np.uint8(ZERO_POINT))
    scale_S1C = build.op("Unsqueeze", [memory["memory.output_scale"], build.axis(1)])
    logits_SKC = build.op(
        PRODUCT, [rows_SKD, weight_SDC, product.step, scale_S1C, zero_point], domain=KERNELS
    )
    if product.row_step is None:
        return logits_SKC
    return build.op("Mul", [logits_SKC, by_sentence(product.row_step, 1)])


def _memory(product: OutputProduct) -> list[ir.Value]:
    """The memory of a sentence's candidates, in the order of names."""
    types = {
        "candidate": ir.DataType.INT64,
        "candidate_mask": ir.DataType.BOOL,
        "output_bias": ir.DataType.FLOAT,
        "output_scale": ir.DataType.FLOAT,
        "output_weight": ir.DataType.from_numpy(stored_array(product.weight).dtype),
    }
    if product.weight_scale is None:
        del types["output_scale"]
    shapes: dict[str, Shape] = {"output_weight": ["S", product.shape[1], "C"]}
    return [
        make_value(f"memory.{name}", shapes.get(name, ["S", "C"]), dtype) for name, dtype in types.items()
    ]

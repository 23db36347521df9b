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
from onnx_ir.passes.common import RemoveUnusedNodesPass

from dragoman_export.graphs.attention import LEAST_EXPONENT
from dragoman_export.graphs.builder import KERNELS, OPSET, Graphs, Nodes, Shape, stored_array
from dragoman_export.graphs.rewrites import OutputProduct, find_output_product
from dragoman_export.graphs.step_end import BARRED
from dragoman_export.int8.graph import PRODUCT, ZERO_POINT


@dataclass(frozen=True)
class ShortlistGraphs:
    """The shortlist's graphs of one precision."""

    shortlist: ir.Model
    """candidates -> the memory that belongs to them."""
    decoder_step: ir.Model
    """The step without a shortlist, but for that memory, and `forced` as a place among the candidates."""


def make_shortlist_graphs(graphs: Graphs) -> ShortlistGraphs:
    """The shortlist's graphs beside the given ones; they have the same constants as the step."""
    product = find_output_product(graphs.decoder_step.graph)
    return ShortlistGraphs(_gather_graph(product), _step_graph(graphs.decoder_step.clone()))


def _axis(build: Nodes, number: int) -> ir.Value:
    return build.named(f"shortlist.axis_{number}", np.array([number], np.int64))


def _gather_graph(product: OutputProduct) -> ir.Model:
    """candidates [S, C], -1 for padding -> the memory of `_memory`."""
    build = Nodes(ir.Graph([], [], nodes=[], opset_imports={"": OPSET}, name=SHORTLIST_GRAPH))
    candidates = build.input("candidates", ["S", "C"], ir.DataType.INT64)
    zero = build.named("shortlist.zero", np.int64(0))
    candidate = build.op("Max", [candidates, zero])
    # The same [V, D] that the step has: what is equal is stored once for all graphs.
    weight = build.named(str(product.weight.name), stored_array(product.weight))
    weight = build.op("Gather", [weight, candidate])
    weight = build.op("Transpose", [weight], perm=[0, 2, 1])
    bias = build.named("shortlist.bias", stored_array(product.bias).astype(np.float32))
    outputs = {
        "candidate": candidate,
        "candidate_mask": build.op("GreaterOrEqual", [candidates, zero]),
        "output_bias": build.op("Gather", [bias, candidate]),
        "output_weight": weight,
    }
    if product.weight_scale is not None:
        scale = build.named(str(product.weight_scale.name), stored_array(product.weight_scale))
        outputs["output_scale"] = build.op("Gather", [scale, candidate])
    for name, (dtype, shape) in _memory(product).items():
        outputs[name].dtype = dtype
        build.output(f"memory.{name}", outputs[name], shape)
    return build.model()


def _step_graph(model: ir.Model) -> ir.Model:
    graph = model.graph
    product = find_output_product(graph)
    inputs = {str(value.name): value for value in graph.inputs}
    build = Nodes(graph)
    specs = _memory(product).items()
    memory = {name: build.input(f"memory.{name}", shape, dtype) for name, (dtype, shape) in specs}

    token, score_SK = inputs["token"], inputs["score"]
    logits_SKC = _logits(build, product, memory, build.op("Shape", [token]))
    infinity = build.named("shortlist.out_of_reach", np.float32(-np.inf))
    bias_SC = build.op("Where", [memory["candidate_mask"], memory["output_bias"], infinity])
    logits_SKC = build.op("Add", [logits_SKC, build.op("Unsqueeze", [bias_SC, _axis(build, 1)])])

    # The log-softmax in parts, as much of what a sentence's neighbours have more of is out of reach.
    last = _axis(build, -1)
    below_largest_SKC = build.op("Sub", [logits_SKC, build.op("ReduceMax", [logits_SKC, last])])
    least = build.named("shortlist.least_exponent", np.float32(LEAST_EXPONENT))
    power_SKC = build.op("Exp", [build.op("Max", [below_largest_SKC, least])])
    sum_SK1 = build.op("ReduceSum", [power_SKC, last])
    # Of one number each: "Log" rounds otherwise at an array's end, and a sentence may stand anywhere in it.
    log_sum_SK1 = build.op("ReduceLogSum", [sum_SK1, last])
    start_SK1 = build.op("Sub", [build.op("Unsqueeze", [score_SK, last]), log_sum_SK1])
    running_SKC = build.op("Add", [below_largest_SKC, start_SK1])
    if BARRED in graph.initializers:
        barred_SC = build.op("Gather", [graph.initializers[BARRED], memory["candidate"]])
        running_SKC = build.op("Add", [running_SKC, build.op("Unsqueeze", [barred_SC, _axis(build, 1)])])

    forced_SK1 = build.op("Unsqueeze", [inputs["forced"], last])
    forced_SK1 = build.op("GatherElements", [running_SKC, forced_SK1], axis=-1)
    forced_score = build.op("Squeeze", [forced_SK1, last])

    running_SX = build.op("Reshape", [running_SKC, build.named("shortlist.by_sentence", np.array([0, -1]))])
    beam = build.op("Shape", [token], start=1, end=2)
    twice = build.op("Mul", [beam, build.named("shortlist.two", np.int64(2))])
    top_score, place = build.ops("TopK", [running_SX, twice], [None] * 2)
    # A place among a sentence's rows of candidates -> row * vocabulary + token.
    num_candidates = build.op("Shape", [memory["candidate"]], start=1, end=2)
    row = build.op("Div", [place, num_candidates])
    column = build.op("Sub", [place, build.op("Mul", [row, num_candidates])])
    found = build.op("GatherElements", [memory["candidate"], column], axis=1)
    row_start = build.op("Mul", [row, build.named("shortlist.vocabulary", np.int64(product.shape[0]))])
    top_index = build.op("Add", [row_start, found])

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


def _logits(build: Nodes, product: OutputProduct, memory: dict[str, ir.Value], sizes: ir.Value) -> ir.Value:
    """[S, K, C] float32, without the bias."""

    def by_sentence(rows: ir.Value, width: int) -> ir.Value:
        return build.op("Reshape", [rows, build.op("Concat", [sizes, _axis(build, width)], axis=0)])

    rows_SKD, weight_SDC = by_sentence(product.rows, product.shape[1]), memory["output_weight"]
    if product.weight_scale is None:
        logits_SKC = build.op("MatMul", [rows_SKD, weight_SDC])
        is_float16 = product.weight.dtype == ir.DataType.FLOAT16
        return build.op("Cast", [logits_SKC], to=ir.DataType.FLOAT) if is_float16 else logits_SKC
    zero_point = build.named("shortlist.zero_point", np.uint8(ZERO_POINT))
    scale_S1C = build.op("Unsqueeze", [memory["output_scale"], _axis(build, 1)])
    factors = [rows_SKD, weight_SDC, product.step, scale_S1C, zero_point]
    logits_SKC = build.op(PRODUCT, factors, domain=KERNELS)
    if product.row_step is None:
        return logits_SKC
    return build.op("Mul", [logits_SKC, by_sentence(product.row_step, 1)])


def _memory(product: OutputProduct) -> dict[str, tuple[ir.DataType, Shape]]:
    """Types and shapes of the memory of a sentence's candidates, in the order of names."""
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
    return {name: (dtype, shapes.get(name, ["S", "C"])) for name, dtype in types.items()}

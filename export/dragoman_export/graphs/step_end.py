"""The end of every decoder step as nodes: logits, log-softmax, a forced token's score, the best to go on.

Who searches all scores for the best few compares them one by one; the best of a block is a maximum, which a
processor finds many scores at a time. The 2K best lie in the 2K blocks whose best are best, so only those are
searched: the same result, for a third of the time.

Shapes: S sentences, K beam, R = S·K rows, D width, V vocabulary, N blocks a row, B scores a block, C = 2K.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from dragoman_export.graphs.builder import GraphBuilder
from dragoman_export.reference.imported import Name
from dragoman_export.reference.model import OUT_OF_REACH

FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64
BARRED = "output.barred"
MAX_STRETCH = 4
"""Most times that a block may be longer than the square root of the vocabulary, about which it is best."""


@dataclass(frozen=True)
class StepInputs:
    """What every step is given for each row, [S, K]."""

    token: ir.Value
    parent: ir.Value
    score: ir.Value
    forced: ir.Value

    @classmethod
    def of(cls, build: GraphBuilder) -> "StepInputs":
        """The graph's inputs of these names."""
        types = {"token": INT64, "parent": INT64, "score": FLOAT, "forced": INT64}
        return cls(**{name: build.input(name, ["S", "K"], dtype) for name, dtype in types.items()})


def with_reach(
    weights: Mapping[str, NDArray[np.float32]], never_produced: Sequence[int], barred: Sequence[int]
) -> dict[str, NDArray[np.float32]]:
    """The weights of a step: what is never produced has no logit to speak of, and what is barred no score.

    The probabilities of the others are taken without the former, and with the latter.
    """
    unsaid, unscored = (np.zeros_like(weights[Name.BIAS]) for _ in range(2))
    unsaid[list(never_produced)] = OUT_OF_REACH
    unscored[list(barred)] = OUT_OF_REACH
    more = {BARRED: unscored} if barred else {}
    return {**weights, **more, Name.BIAS: weights[Name.BIAS] + unsaid}


def end_step(build: GraphBuilder, features_RD: ir.Value, inputs: StepInputs) -> None:
    """Has the graph, whose weights are `with_reach`, return `top_score`, `top_index` and `forced_score`."""
    vocabulary = build.rows(Name.OUTPUT)
    matrix = build.op("Transpose", [build.weight(Name.OUTPUT)], [None, vocabulary], perm=[1, 0])
    # Apart, as a shortlist looks for them (`find_output_product`).
    logits = build.op("MatMul", [features_RD, matrix], ["K*S", vocabulary])
    logits = build.op("Add", [logits, build.weight(Name.BIAS)], logits.shape)
    scores_RV = build.op("LogSoftmax", [build.cast(logits, FLOAT)], logits.shape, axis=-1)
    barred_V = build.cast(build.weight(BARRED), FLOAT) if build.has(BARRED) else None
    top_score, top_index = _best(build, scores_RV, inputs, barred_V)
    build.output("top_score", top_score, ["S", "2*K"])
    build.output("top_index", top_index, ["S", "2*K"])
    forced_R1 = build.reshape(inputs.forced, [-1, 1], ["K*S", 1])
    forced = build.op("GatherElements", [scores_RV, forced_R1], axis=1)
    if barred_V is not None:
        forced = build.op("Add", [forced, build.op("Gather", [barred_V, forced_R1], axis=0)])
    forced = build.reshape(forced, build.op("Shape", [inputs.score], [2], INT64), ["S", "K"])
    build.output("forced_score", build.op("Add", [forced, inputs.score]), ["S", "K"])


def _best(
    build: GraphBuilder, scores_RV: ir.Value, inputs: StepInputs, barred_V: ir.Value | None
) -> tuple[ir.Value, ir.Value]:
    """The 2K best running scores of each sentence, descending, and their places among its K·V: [S, C]
    each."""
    rows_R1, vocabulary = build.reshape(inputs.score, [-1, 1], ["K*S", 1]), build.rows(Name.OUTPUT)
    num_sentences, beam = build.size(inputs.score, 0), build.size(inputs.score, 1)
    by_sentence = build.op("Concat", [num_sentences, build.constant([-1])], axis=0)
    twice = build.op("Mul", [beam, build.constant([2])])
    size = block_size(vocabulary)
    # A block whose best is barred may take the place of a better one: so many more are searched.
    harmed = 0 if barred_V is None or size is None else len({each // size for each in build.places(BARRED)})
    if size is None or vocabulary // size < 2 + harmed:
        if barred_V is not None:
            scores_RV = build.op("Add", [scores_RV, barred_V], scores_RV.shape)
        running = build.op("Add", [scores_RV, rows_R1])
        return _top(build, build.reshape(running, by_sentence, ["S", None]), twice)
    blocks = vocabulary // size
    scores_RNB = build.reshape(scores_RV, [0, blocks, size])
    best_RN = build.op("ReduceMax", [scores_RNB, build.constant([-1])], keepdims=0)
    best_RN = build.op("Add", [best_RN, rows_R1])
    searched = build.op("Mul", [beam, build.constant([2 + harmed])]) if harmed else twice
    _, block_SC = _top(build, build.reshape(best_RN, by_sentence, ["S", None]), searched)
    sizes = build.op("Concat", [num_sentences, build.constant([-1, size])], axis=0)
    of_sentence = build.reshape(scores_RV, sizes, ["S", None, size])
    places_SC1 = build.op("Unsqueeze", [block_SC, build.constant([2])])
    chosen_SCB = build.op("GatherND", [of_sentence, places_SC1], batch_dims=1)
    if barred_V is not None:
        number_SC = build.op("Mod", [block_SC, build.constant(blocks)])
        barred_SCB = build.op("Gather", [build.reshape(barred_V, [blocks, size]), number_SC], axis=0)
        chosen_SCB = build.op("Add", [chosen_SCB, barred_SCB])
    row_SC = build.op("Div", [block_SC, build.constant(blocks)])
    row_score = build.op("GatherElements", [inputs.score, row_SC], axis=1)
    running_SCB = build.op("Add", [chosen_SCB, build.op("Unsqueeze", [row_score, build.constant([2])])])
    top_score, place = _top(build, build.reshape(running_SCB, by_sentence, ["S", None]), twice)
    # Behind (block - number) · size places of blocks that were not chosen.
    number_SC = build.op("Div", [place, build.constant(size)])
    left_out = build.op("Sub", [build.op("GatherElements", [block_SC, number_SC], axis=1), number_SC])
    return top_score, build.op("Add", [build.op("Mul", [left_out, build.constant(size)]), place])


def _top(build: GraphBuilder, values: ir.Value, count: ir.Value) -> tuple[ir.Value, ir.Value]:
    shape = ["S", "2*K"]
    best, places = build.ops("TopK", [values, count], [shape, shape], [values.dtype, INT64], axis=1)
    return best, places


def block_size(vocabulary: int) -> int | None:
    """Scores a block: about the square root of the vocabulary, which it divides; None where nothing does."""
    least = math.isqrt(vocabulary - 1) + 1
    sizes = (size for size in range(least, MAX_STRETCH * least + 1) if vocabulary % size == 0)
    return next((size for size in sizes if 2 * size <= vocabulary), None)


def searchable_size(vocabulary: int) -> int:
    """The least vocabulary from this on that is searched by blocks."""
    return next(size for size in itertools.count(vocabulary) if block_size(size) is not None)

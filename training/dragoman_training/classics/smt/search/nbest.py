"""The best ways through a search's graph, in their order.

The score of every hypothesis is that of the best way to it, so a search from the end towards the beginning
(A*, whose estimate is exact) finds the ways in their order.
"""

import heapq

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Offsets
from dragoman_training.classics.smt.search.options import Options
from dragoman_training.classics.smt.search.stacks import ALTERNATIVE, BACK, NOTHING, OPTION, Graph

MAX_WAYS = 20
"""Ways looked at for each translation wanted: many lead to the same words."""


@njit(cache=True, nogil=True)
def best_ways(
    graph: Graph, options: Options, same_J: Offsets, num_best: int
) -> tuple[list[NDArray[np.int64]], list[float]]:
    """The options of each way, in the order of the translation, and its score. No two have the same words.

    `same_J` has the same number for source words that are the same: they may be passed through.
    """
    ways: list[NDArray[np.int64]] = []
    scores: list[float] = []
    seen = {0}
    # What a way consists of behind a hypothesis, as a chain: the option, and where the chain goes on.
    options_of, rest_of = [NOTHING], [NOTHING]
    queue = [(-graph.score_H[graph.best], 0, graph.best)]
    num_seen = 0
    while queue and len(ways) < num_best and num_seen < MAX_WAYS * num_best:
        negative, chain, node = heapq.heappop(queue)
        if node != 0:
            arc = node
            while arc != NOTHING:
                options_of.append(graph.number_H8[arc, OPTION])
                rest_of.append(chain)
                loss = graph.score_H[node] - graph.score_H[arc]
                heapq.heappush(queue, (negative + loss, len(rest_of) - 1, graph.number_H8[arc, BACK]))
                arc = graph.number_H8[arc, ALTERNATIVE]
            continue
        num_seen += 1
        way, signature = [0 for _ in range(0)], 7
        while chain != 0:
            option = options_of[chain]
            way.append(option)
            chain = rest_of[chain]
            for place in range(options.word_first_O[option], options.word_first_O[option + 1]):
                passed = options.pair_O[option] < 0
                word = int(-1 - same_J[options.start_O[option]] if passed else options.word_W[place])
                signature = (signature ^ word) * 1099511628211
                signature ^= signature >> 31
        if signature not in seen:
            seen.add(signature)
            ways.append(np.array(way))
            scores.append(-negative)
    return ways, scores

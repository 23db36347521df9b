"""The search of the best translation: hypotheses in stacks by how many source words they translate.

Stack decoding (Koehn et al. 2003, section 3; Koehn 2004). Two hypotheses are recombined if nothing that
follows can tell them apart: they cover the same words, end at the same place, and are in one state of the
language model. The worse stays as another way to the better's place, for lists of the best translations.

Shapes: J source words, O options of a sentence, W words of their targets, H hypotheses.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Ids, Offsets
from dragoman_training.classics.smt.language_model import LanguageModel, advance

Scores = NDArray[np.float64]
Table = NDArray[np.int64]
Key = tuple[np.int64, np.int64, np.int64, np.int64]
"""What recombined hypotheses share: the first open word, what is covered behind it, the end, the state."""
NOTHING = -1
# Columns of a hypothesis' whole numbers:
BACK, OPTION, GAP, MASK, END, STATE, ALTERNATIVE, PLACE = range(8)
MAX_DISTORTION = 40
"""What is covered behind the first open word, and a phrase, has to fit into 63 bits."""


class Options(NamedTuple):
    """Ways to translate a part of a sentence, by first word, then by length, the best first."""

    first_J: Offsets
    """[J + 1]: where the options of each first word begin, and the end."""
    start_O: Offsets
    end_O: Offsets
    """The position behind the last source word."""
    pair_O: Offsets
    """Which pair of the phrase table, or `PASSED_THROUGH`."""
    score_O: Scores
    """The score of all features that depend on the phrase alone."""
    bound_O: Scores
    """The score with the language model's estimate of all words but the first, which depends most on the
    context."""
    word_first_O: Offsets
    """[O + 1]"""
    word_W: Ids
    future_JJ: Scores
    """[J + 1, J + 1]: the best score of each part of the sentence, without distortion."""


class Graph(NamedTuple):
    """All hypotheses that were kept."""

    number_H8: Table
    """The hypothesis before; the option it ends with; the first open source word; which words behind that are
    covered, as bits; the position behind its last source phrase; the language model's state; the next that
    was recombined with it; where it is in its stack."""
    score_H: Scores
    best: int
    """The best of those that cover all; `NOTHING` where none does."""


@njit(cache=True, nogil=True)
def search(
    options: Options,
    model: LanguageModel,
    language_weight: float,
    distortion_weight: float,
    stack_size: int,
    distortion_limit: int,
) -> Graph:
    """Translates one sentence of at least one word.

    No jump is over more than `distortion_limit` words, and no phrase behind an open word ends farther from
    it, so that it can always be returned to.
    """
    num_words = len(options.first_J) - 1
    number_H8, score_H, total_H = np.zeros((1024, 8), np.int64), np.zeros(1024), np.zeros(1024)
    number_H8[0] = (NOTHING, NOTHING, 0, 0, 0, model.state_T[model.num_words + 3], NOTHING, 0)
    num_hypotheses = 1
    # The best hypothesis of each kind. The first entry is of none: it gives the types.
    best_of = {(np.int64(0), np.int64(0), np.int64(-1), np.int64(0)): np.int64(NOTHING)}
    stacks = np.full((num_words + 1, 2 * stack_size), NOTHING, np.int64)
    counts = np.zeros(num_words + 1, np.int64)
    worst = np.full(num_words + 1, -np.inf)
    stacks[0, 0], counts[0] = 0, 1
    for num_covered in range(num_words):
        _prune(stacks, counts, worst, num_covered, stack_size, number_H8, total_H)
        for place in range(counts[num_covered]):
            old = stacks[num_covered, place]
            gap, mask, last_end = number_H8[old, GAP], number_H8[old, MASK], number_H8[old, END]
            for start in range(max(gap, last_end - distortion_limit), num_words):
                if start > gap + distortion_limit or start - last_end > distortion_limit:
                    break
                if start - gap < 63 and (mask >> (start - gap)) & 1:
                    continue
                end, rest, new_gap, new_mask = -1, 0.0, 0, np.int64(0)
                for option in range(options.first_J[start], options.first_J[start + 1]):
                    if options.end_O[option] != end:
                        end = options.end_O[option]
                        covered = ((np.int64(1) << (end - start)) - 1) << (start - gap)
                        if mask & covered or (start > gap and end - gap > distortion_limit):
                            break
                        new_gap, new_mask = gap, mask | covered
                        while new_mask & 1:
                            new_gap, new_mask = new_gap + 1, new_mask >> 1
                        rest = _rest(options.future_JJ, new_gap, new_mask)
                        rest -= distortion_weight * abs(start - last_end)
                    stack = num_covered + end - start
                    if score_H[old] + options.bound_O[option] + rest <= worst[stack]:
                        continue  # Hardly ever would its first word save it.
                    log, state = _say(options, option, model, number_H8[old, STATE], new_gap == num_words)
                    score = score_H[old] + options.score_O[option] + language_weight * log
                    total = score + rest
                    score -= distortion_weight * abs(start - last_end)
                    if total <= worst[stack]:
                        continue
                    if num_hypotheses == len(number_H8):
                        number_H8, score_H, total_H = _grown(number_H8), _grown(score_H), _grown(total_H)
                    # Where nothing is left to do, how it ended means nothing.
                    at_end = end if new_gap < num_words else num_words
                    new = num_hypotheses
                    number_H8[new] = (old, option, new_gap, new_mask, at_end, state, NOTHING, NOTHING)
                    score_H[new], total_H[new] = score, total
                    num_hypotheses += 1
                    key = (np.int64(new_gap), np.int64(new_mask), np.int64(at_end), np.int64(state))
                    if _recombine(number_H8, score_H, best_of, key, stacks[stack], new):
                        if counts[stack] == stacks.shape[1]:
                            _prune(stacks, counts, worst, stack, stack_size, number_H8, total_H)
                        stacks[stack, counts[stack]] = new
                        number_H8[new, PLACE] = counts[stack]
                        counts[stack] += 1
    complete = stacks[num_words, : counts[num_words]]
    best = complete[np.argmax(score_H[complete])] if len(complete) else NOTHING
    return Graph(number_H8[:num_hypotheses], score_H[:num_hypotheses], best)


@njit(cache=True, nogil=True)
def _say(options: Options, option: int, model: LanguageModel, state: int, is_last: bool) -> tuple[float, int]:
    """The log-probability of an option's words, and of the end behind the last, and the state behind them."""
    log = 0.0
    for word in range(options.word_first_O[option], options.word_first_O[option + 1]):
        step, state = advance(model, state, options.word_W[word])
        log += step
    if is_last:
        step, state = advance(model, state, model.num_words + 1)
        log += step
    return log, state


@njit(cache=True, nogil=True)
def _recombine(
    number_H8: Table, score_H: Scores, best_of: dict[Key, np.int64], key: Key, stack: Table, new: int
) -> bool:
    """Recombines a hypothesis with those that nothing later can tell apart; whether it needs a new place.

    The better of two has the place in the stack, the other is its alternative.
    """
    rival = best_of[key] if key in best_of else np.int64(NOTHING)
    # One that was pruned is worse than this: its stack has only become better since.
    is_first: bool = rival == NOTHING or number_H8[rival, PLACE] == NOTHING
    if is_first or score_H[new] > score_H[rival]:
        number_H8[new, ALTERNATIVE] = rival
        best_of[key] = np.int64(new)
        if not is_first:
            number_H8[new, PLACE] = number_H8[rival, PLACE]
            stack[number_H8[rival, PLACE]] = new
            number_H8[rival, PLACE] = NOTHING
    else:
        number_H8[new, ALTERNATIVE] = number_H8[rival, ALTERNATIVE]
        number_H8[rival, ALTERNATIVE] = new
    return is_first


@njit(cache=True, nogil=True)
def _rest(future_JJ: Scores, gap: int, mask: int) -> float:
    """The best score of all open words: of each run of them its own."""
    num_words = len(future_JJ) - 1
    rest, start, position = 0.0, gap, gap
    while mask:
        if mask & 1:
            if start < position:
                rest += future_JJ[start, position]
            start = position + 1
        mask >>= 1
        position += 1
    if start < num_words:
        rest += future_JJ[start, num_words]
    return rest


@njit(cache=True, nogil=True)
def _prune(
    stacks: Table, counts: Offsets, worst: Scores, stack: int, size: int, number_H8: Table, total_H: Scores
) -> None:
    """Keeps the best of a stack. What is not better than the worst of them need not come any more."""
    members = stacks[stack, : counts[stack]].copy()
    order = np.argsort(-total_H[members], kind="mergesort")
    for rank in range(len(order)):
        member = members[order[rank]]
        number_H8[member, PLACE] = rank if rank < size else NOTHING
        if rank < size:
            stacks[stack, rank] = member
    counts[stack] = min(counts[stack], size)
    if len(order) >= size:
        worst[stack] = total_H[stacks[stack, size - 1]]


@njit(cache=True, nogil=True)
def _grown(values: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((values, np.zeros_like(values)))


MAX_WAYS = 20
"""Ways looked at for each translation wanted: many lead to the same words."""


@njit(cache=True, nogil=True)
def best_ways(
    graph: Graph, options: Options, same_J: Offsets, num_best: int
) -> tuple[list[Table], list[float]]:
    """The options of each way, in the order of the translation, and its score. No two have the same words.

    `same_J` has the same number for source words that are the same: they may be passed through.
    """
    ways: list[Table] = []
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

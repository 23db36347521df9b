"""The search itself: hypotheses in stacks by how many source words they translate.

Two hypotheses are recombined if nothing that follows can tell them apart: they cover the same words, end at
the same place, and are in one state of the language model. The worse stays as another way to the better's
place, for lists of the best translations.

Shapes: J source words, O options, H hypotheses.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Offsets
from dragoman_training.classics.smt.language_model.model import Automaton, advance
from dragoman_training.classics.smt.search.options import Options

NOTHING = -1
# Columns of a hypothesis' whole numbers:
BACK, OPTION, GAP, MASK, END, STATE, ALTERNATIVE, PLACE = range(8)
MAX_DISTORTION = 40
"""What is covered behind the first open word, and a phrase, has to fit into 63 bits."""


class Graph(NamedTuple):
    """All hypotheses that were kept."""

    number_H8: NDArray[np.int64]
    """The hypothesis before; the option it ends with; the first open source word; which words behind that are
    covered, as bits; the position behind its last source phrase; the language model's state; the next that
    was recombined with it; where it is in its stack."""
    score_H: NDArray[np.float64]
    best: int
    """The best of those that cover all; `NOTHING` where none does."""


@njit(cache=True, nogil=True)
def search(
    options: Options,
    automaton: Automaton,
    begin_state: int,
    end_word: int,
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
    number_H8[0] = (NOTHING, NOTHING, 0, 0, 0, begin_state, NOTHING, 0)
    num_hypotheses = 1
    slots = np.full(4096, NOTHING, np.int64)
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
                    state, log = number_H8[old, STATE], 0.0
                    for word in range(options.word_first_O[option], options.word_first_O[option + 1]):
                        step, state = advance(automaton, state, options.word_W[word])
                        log += step
                    if new_gap == num_words:
                        step, state = advance(automaton, state, end_word)
                        log += step
                    score = score_H[old] + options.score_O[option] + language_weight * log
                    total = score + rest
                    score -= distortion_weight * abs(start - last_end)
                    if total <= worst[stack]:
                        continue
                    if num_hypotheses == len(number_H8):
                        number_H8, score_H, total_H = _grown(number_H8), _grown(score_H), _grown(total_H)
                    if 2 * num_hypotheses > len(slots):
                        slots = _rehashed(slots, number_H8)
                    new = num_hypotheses
                    # Where nothing is left to do, how it ended means nothing.
                    at_end = end if new_gap < num_words else num_words
                    number_H8[new] = (old, option, new_gap, new_mask, at_end, state, NOTHING, NOTHING)
                    score_H[new], total_H[new] = score, total
                    num_hypotheses += 1
                    slot = _find(slots, number_H8, new)
                    rival = slots[slot]
                    if rival == NOTHING or number_H8[rival, PLACE] == NOTHING:
                        # One that was pruned is worse than this: its stack has only become better since.
                        number_H8[new, ALTERNATIVE] = rival
                        slots[slot] = new
                        if counts[stack] == stacks.shape[1]:
                            _prune(stacks, counts, worst, stack, stack_size, number_H8, total_H)
                        stacks[stack, counts[stack]] = new
                        number_H8[new, PLACE] = counts[stack]
                        counts[stack] += 1
                    elif score > score_H[rival]:
                        number_H8[new, ALTERNATIVE] = rival
                        slots[slot] = new
                        number_H8[new, PLACE] = number_H8[rival, PLACE]
                        stacks[stack, number_H8[rival, PLACE]] = new
                        number_H8[rival, PLACE] = NOTHING
                    else:
                        number_H8[new, ALTERNATIVE] = number_H8[rival, ALTERNATIVE]
                        number_H8[rival, ALTERNATIVE] = new
    best = NOTHING
    for place in range(counts[num_words]):
        one = stacks[num_words, place]
        if best == NOTHING or score_H[one] > score_H[best]:
            best = one
    return Graph(number_H8[:num_hypotheses], score_H[:num_hypotheses], best)


@njit(cache=True, nogil=True)
def _rest(future_JJ: NDArray[np.float64], gap: int, mask: int) -> float:
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
    stacks: NDArray[np.int64],
    counts: Offsets,
    worst: NDArray[np.float64],
    stack: int,
    size: int,
    number_H8: NDArray[np.int64],
    total_H: NDArray[np.float64],
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


@njit(cache=True, nogil=True)
def _find(slots: NDArray[np.int64], number_H8: NDArray[np.int64], hypothesis: int) -> int:
    """The slot of what can't be told apart from a hypothesis, or the free one where it belongs."""
    key = np.int64(17)
    for column in range(GAP, STATE + 1):
        key = (key ^ number_H8[hypothesis, column]) * np.int64(1099511628211)
        key ^= (key >> 29) & np.int64(0x7FFFFFFFF)
    slot = key & (len(slots) - 1)
    while slots[slot] != NOTHING:
        same = True
        for column in range(GAP, STATE + 1):
            same = same and number_H8[slots[slot], column] == number_H8[hypothesis, column]
        if same:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return int(slot)


@njit(cache=True, nogil=True)
def _rehashed(slots: NDArray[np.int64], number_H8: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same in twice the room."""
    larger = np.full(2 * len(slots), NOTHING, np.int64)
    for slot in range(len(slots)):
        if slots[slot] != NOTHING:
            larger[_find(larger, number_H8, slots[slot])] = slots[slot]
    return larger

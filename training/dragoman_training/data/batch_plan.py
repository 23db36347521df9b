"""Which pairs of a corpus go into which batch of an epoch: numbers alone, no text and no tokens.

Shapes: P pairs, N entries of an epoch, B batches.
"""

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dragoman_training.data.token_ids import Numbers

PairNumbers = NDArray[np.uint32]
Shuffler = np.random.RandomState
"""NumPy's frozen generator: a seed gives the same order in every version, which resumed runs rest on."""


def shuffler_of(seed: int) -> Shuffler:
    """The shuffler of a seed of any size."""
    return Shuffler(np.random.MT19937(seed))


class BatchPlan(Sequence[list[int]]):
    """The batches of an epoch in their order, each a list of pair numbers."""

    def __init__(self, numbers_N: PairNumbers, first_B: NDArray[np.int64], order_B: PairNumbers) -> None:
        """`first_B` [B + 1] cuts the numbers into batches; `order_B` says which comes when."""
        self._numbers_N, self._first_B, self._order_B = numbers_N, first_B, order_B

    def __len__(self) -> int:
        return len(self._order_B)

    @overload
    def __getitem__(self, index: int) -> list[int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[int]]: ...
    def __getitem__(self, index: int | slice) -> list[int] | list[list[int]]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        batch = self._order_B[index]
        numbers: list[int] = self._numbers_N[self._first_B[batch] : self._first_B[batch + 1]].tolist()
        return numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchPlan) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def draw_pairs(shares: Sequence[tuple[int, float]], shuffler: Shuffler) -> PairNumbers:
    """The numbers of the pairs of an epoch; `shares` are how many pairs stand together, and their weight.

    Each comes as often as the weight says; what is behind the comma is a share of them, drawn at random.
    """
    drawn: list[PairNumbers] = []
    first = 0
    for num_pairs, weight in shares:
        numbers = np.arange(first, first + num_pairs, dtype=np.uint32)
        times = int(weight)
        drawn += [numbers] * times
        if count := round((weight - times) * num_pairs):
            some = numbers.copy()
            shuffler.shuffle(some)
            drawn.append(np.sort(some[:count]))
        first += num_pairs
    return np.concatenate(drawn)


def plan_batches(
    source_length_P: Numbers,
    target_length_P: Numbers,
    budget_tokens: int,
    *,
    shuffler: Shuffler | None,
    numbers_N: PairNumbers | None = None,
) -> BatchPlan:
    """Cuts pairs into batches: of like lengths, within a budget of padded tokens on either side.

    They are those of `numbers_N`, which is changed, or each once. A single pair that is longer is a batch of
    its own. Pairs of equal lengths come in random order and so do batches; without a shuffler in the order of
    their numbers and of their lengths.
    """
    if numbers_N is None:
        numbers_N = np.arange(len(source_length_P), dtype=np.uint32)
    if shuffler:
        shuffler.shuffle(numbers_N)
    numbers_N = _by_length(numbers_N, source_length_P, target_length_P)
    longest_N = np.maximum(source_length_P, target_length_P)[numbers_N]
    first_B = _cut(longest_N, budget_tokens)
    order_B = np.arange(len(first_B) - 1, dtype=np.uint32)
    if shuffler:
        shuffler.shuffle(order_B)
    return BatchPlan(numbers_N, first_B, order_B)


def _by_length(numbers_N: PairNumbers, source_length_P: Numbers, target_length_P: Numbers) -> PairNumbers:
    """The numbers by their pairs' target lengths, then by source lengths; of equal ones the order stays."""
    if not len(numbers_N):
        return numbers_N
    width = int(source_length_P.max()) + 1
    largest = (int(target_length_P.max()) + 1) * width
    # Sixteen bits are sorted by radix, in a tenth of the time.
    dtype = np.uint16 if largest <= 1 << 16 else np.uint64
    key_P = np.multiply(target_length_P, width, dtype=dtype, casting="unsafe")
    np.add(key_P, source_length_P, out=key_P, casting="unsafe")
    return numbers_N[np.argsort(key_P[numbers_N], kind="stable")]


def _cut(longest_N: Numbers, budget_tokens: int) -> NDArray[np.int64]:
    """[B + 1]: where batches begin, and the end; `longest_N` are pairs' longer sides, without their end."""
    first_B, begin = [0], 0
    while begin < len(longest_N):
        most = max(1, budget_tokens // (int(longest_N[begin]) + 1))
        side = np.maximum.accumulate(longest_N[begin : begin + most].astype(np.int64)) + 1
        padded = side * np.arange(1, len(side) + 1)
        begin += max(1, int(np.searchsorted(padded, budget_tokens, side="right")))
        first_B.append(begin)
    return np.array(first_B, np.int64)

"""How far a batch's tensors are padded: few shapes, which cost less than the padding does."""

_POSITIONS = 8
_CANDIDATES = 64
# Below it a float product sums in another order.
_MIN_CANDIDATES = 128


def padded_positions(length: int) -> int:
    """Source positions of a batch whose longest sentence has this length: a multiple of eight."""
    return -(-length // _POSITIONS) * _POSITIONS


def padded_candidates(num_candidates: int) -> int:
    """Candidates that a batch is padded to: a multiple of 64, at least 128, so that sums run in one order."""
    return max(_MIN_CANDIDATES, -(-num_candidates // _CANDIDATES) * _CANDIDATES)


def worth_trimming(needed: int, current: int) -> bool:
    """Whether to trim, and so to copy, a batch's tensors of a `current` length to what is `needed`."""
    return needed * 4 <= current * 3


def padded_rows(count: int) -> int:
    """The number of rows or sentences after padding: of 1, 2, 3, 4, 6, 8, ... the least from `count`.

    Less than a third of it is padding. A GPU takes hardly longer for a few rows more, and a shape that it has
    not seen takes memory of its own.
    """
    power = 1 << (count - 1).bit_length()
    return power * 3 // 4 if count <= power * 3 // 4 else power

"""Sentence pairs in memory, and the fingerprint by which a corpus of any size is recognised."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

FEWEST_PAIRS = 100
_POLYNOMIAL = 0xEDB88320
"""CRC-32's, its lowest power as the highest bit."""


class CorpusError(ValueError):
    """Training or validation files that can't be used; the message names file and line."""


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs, line by line; a language model's have empty sources."""

    sources: list[str]
    targets: list[str]
    num_one_sided: int = 0
    """Pairs of the files that were left out because a side is empty."""

    def __len__(self) -> int:
        return len(self.sources)

    def part(self, numbers: Iterable[int]) -> "Corpus":
        """The pairs of these numbers, in their order."""
        chosen = list(numbers)
        return Corpus([self.sources[n] for n in chosen], [self.targets[n] for n in chosen])

    def fingerprint(self) -> str:
        """How many pairs there are and a checksum of their text, by which a resumed run recognises them."""
        found = Fingerprint()
        found.add(len(self), checksums(self))
        return str(found)


def spread(corpus: Corpus, count: int) -> Corpus:
    """A corpus of at most `count` pairs, evenly spread over this one; all of them for 0."""
    if not 0 < count < len(corpus):
        return corpus
    return corpus.part(evenly_spaced(len(corpus), count))


def hold_out(corpus: Corpus, count: int) -> tuple[Corpus, Corpus]:
    """The pairs to train on, and at most `count` to measure by, evenly spread over the different sources.

    No sentence that is held out, on either side, is among those to train on. Raises CorpusError for so few
    pairs that they would teach nothing, and measure nothing.
    """
    if len(corpus) < FEWEST_PAIRS:
        raise CorpusError(f"there are {len(corpus)} pairs; training takes {FEWEST_PAIRS} at the least")
    first = list({source: number for number, source in reversed(list(enumerate(corpus.sources)))}.values())
    held_out = corpus.part(sorted(first[index] for index in evenly_spaced(len(first), count)))
    sources, targets = set(held_out.sources), set(held_out.targets)
    pairs = enumerate(zip(corpus.sources, corpus.targets, strict=True))
    left = (number for number, (one, other) in pairs if one not in sources and other not in targets)
    return corpus.part(left), held_out


def evenly_spaced(length: int, count: int) -> list[int]:
    """The numbers of at most `count` places, evenly spread over a list of that length."""
    count = min(count, length)
    return [index * length // count for index in range(count)]


Checksums = tuple[tuple[int, int], tuple[int, int]]
"""CRC-32 and length in bytes of all lines of a side, their ends included, for sources and targets."""


def checksums(corpus: Corpus) -> Checksums:
    """The checksums of both sides."""
    sides = corpus.sources, corpus.targets
    source, target = ("".join(f"{line}\n" for line in side).encode() for side in sides)
    return (zlib.crc32(source), len(source)), (zlib.crc32(target), len(target))


@dataclass
class Fingerprint:
    """Summed up over blocks of a corpus, which are never in memory together."""

    num_pairs: int = 0
    sides: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 0)])
    """Checksums so far, as `Checksums` has them."""

    def add(self, num_pairs: int, block: Checksums) -> None:
        """Takes in the block that comes next."""
        self.num_pairs += num_pairs
        self.sides = [_joined(before, after) for before, after in zip(self.sides, block, strict=True)]

    def __str__(self) -> str:
        """The number of pairs, and the CRC-32 of all sources with all targets behind them."""
        checksum, _ = _joined(*self.sides)
        return f"{self.num_pairs:,} pairs, checksum {checksum:08x}"


def _joined(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """CRC-32 and length of a text and another behind it, from those of each.

    Zeros behind a text multiply its checksum, as a polynomial over GF(2), by a power of x.
    """
    (crc, length), (second_crc, second_length) = first, second
    return _multiply(_power(8 * second_length), crc) ^ second_crc, length + second_length


@lru_cache(maxsize=4096)
def _power(exponent: int) -> int:
    """x to the power, modulo the polynomial."""
    result, square = 1 << 31, 1 << 30
    while exponent:
        if exponent & 1:
            result = _multiply(result, square)
        square = _multiply(square, square)
        exponent >>= 1
    return result


def _multiply(one: int, other: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product

"""The checksum of two texts in a row, from those of each: who reads a block knows no other."""

from functools import lru_cache

_POLYNOMIAL = 0xEDB88320


def combine_crc32(first: int, second: int, second_length: int) -> int:
    """CRC-32 of one text and another behind it; `second_length` is the other's, in bytes.

    Zeros behind a text multiply its checksum, as a polynomial over GF(2), by a power of x.
    """
    return _multiply(_power(8 * second_length), first) ^ second


@lru_cache(maxsize=4096)
def _power(exponent: int) -> int:
    """x to the power, modulo CRC-32's polynomial; the lowest power is the highest bit."""
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

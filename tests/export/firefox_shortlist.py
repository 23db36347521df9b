"""Firefox's binary form of a shortlist, written as Marian's fork reads it."""

import struct
from collections.abc import Sequence
from itertools import accumulate

from dragoman_export.shortlist.lexicon import MAGIC


def binary_shortlist(rows: Sequence[Sequence[int]], num_first: int) -> bytes:
    """A file as Firefox's has it, its checksum summed as Marian's fork sums it."""
    offsets = list(accumulate(map(len, rows), initial=0))
    entries = [entry for row in rows for entry in row]
    body = struct.pack("<4Q", num_first, 2, len(offsets), len(entries))
    body += struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(entries)}I", *entries)
    seed, modulus = 0, 1 << 64
    for place in range(0, len(body) - 7, 8):
        word = int.from_bytes(body[place : place + 8], "little")
        seed ^= (word + 0x9E3779B9 + seed * 64 + seed // 4) % modulus
    return struct.pack("<2Q", MAGIC, seed) + body

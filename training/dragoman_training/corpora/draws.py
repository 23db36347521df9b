"""Choices that depend on a text alone, so that neither order nor other texts change them."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def draw(text: str, purpose: str) -> float:
    """A number in [0, 1) that is always the same for the text and the purpose."""
    digest = blake2b(f"{purpose}\0{text}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 2**56


def pick(choices: Sequence[T], text: str, purpose: str) -> T:
    """One of the choices, always the same for the text and the purpose."""
    return choices[int(draw(text, purpose) * len(choices))]

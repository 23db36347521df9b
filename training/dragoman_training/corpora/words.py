"""The words and sentences that pairs are made with, and choices that depend on a text alone.

Neither order nor other texts change such a choice.
"""

import tomllib
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def words() -> dict[str, Any]:
    """The tables of `words.toml`, which says what is in them."""
    return tomllib.loads(
        files("dragoman_training.corpora").joinpath("words.toml").read_text(encoding="utf-8")
    )


@cache
def stop_words(language: str) -> frozenset[str]:
    """Words by which a text of the language is recognised."""
    return frozenset(words()["stop_words"][language].split())


def draw(text: str, purpose: str) -> float:
    """A number in [0, 1) that is always the same for the text and the purpose."""
    digest = blake2b(f"{purpose}\0{text}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 2**56


def pick(choices: Sequence[T], text: str, purpose: str) -> T:
    """One of the choices, always the same for the text and the purpose."""
    return choices[int(draw(text, purpose) * len(choices))]

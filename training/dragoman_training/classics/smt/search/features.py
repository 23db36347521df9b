"""What a translation is judged by, and how much each counts: a log-linear model (Och & Ney 2002).

score(e, f) = Σ λ_k h_k(e, f). The noisy channel is the case of two features of equal weight, the backward
phrase probability and the language model.

Shapes: F features.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
UNKNOWN_SCORE = -100.0
"""Of a word that is passed through, so that no other translation loses against it. It has no weight."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """λ of each feature. As they are before tuning, all but the order of magnitude is left to it."""

    phrase: float = 0.2
    """log φ(e|f)."""
    lexical: float = 0.2
    """log lex(e|f)."""
    phrase_backward: float = 0.2
    """log φ(f|e)."""
    lexical_backward: float = 0.2
    """log lex(f|e)."""
    language_model: float = 0.5
    """log P(e)."""
    distortion: float = 0.3
    """Minus the words jumped over between source phrases."""
    words: float = -0.5
    """Minus the words of the translation: below 0, longer ones are favoured."""
    phrases: float = 0.1
    """Minus the phrases used."""

    def __post_init__(self) -> None:
        for name, weight in zip(FEATURES, self.vector().tolist(), strict=True):
            if not math.isfinite(weight):
                raise ValueError(f"the weight of {name} is {weight}: it has to be a finite number")

    def vector(self) -> Vector:
        """In the order of `FEATURES`. [F]"""
        return np.array([getattr(self, field.name) for field in fields(self)], np.float64)

    @classmethod
    def of(cls, vector: Vector) -> "Weights":
        """The reverse of `vector`."""
        return cls(**dict(zip(FEATURES, vector.tolist(), strict=True)))


FEATURES = tuple(field.name for field in fields(Weights))


def parse_weights(text: str) -> Weights:
    """Weights written as `name=number,…`; features that are not named have none."""
    given = dict.fromkeys(FEATURES, 0.0)
    for part in text.split(","):
        name, _, number = map(str.strip, part.partition("="))
        with suppress(ValueError):
            if name in given:
                given[name] = float(number)
                continue
        raise ValueError(f"--weights: {part!r} is no NAME=NUMBER with a name of {', '.join(FEATURES)}")
    return Weights(**given)

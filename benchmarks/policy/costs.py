"""What an engine's work takes: `models/de-en/1` in int8 on one core with AVX-512, beam 5. Milliseconds.

Real machines differ. What counts is how much a row, a turn and an encoding cost beside each other.
"""

import numpy as np

_BEAM_SIZE = 5
_SENTENCES = (1, 2, 4, 8, 16, 32, 48, 64)
_STEP = (0.345, 0.445, 0.558, 0.894, 1.6, 3.3, 5.9, 8.0)
_HOST = 0.3


def step(num_rows: int, source_positions: float) -> float:
    """A decoder step, and what the host does about it."""
    return (
        float(np.interp(num_rows / _BEAM_SIZE, _SENTENCES, _STEP)) * (0.88 + 0.0075 * source_positions)
        + _HOST
    )


def encoding(num_sentences: int, source_positions: int) -> float:
    """A group encoded together."""
    return 0.4 + source_positions * (0.055 + 0.027 * num_sentences)


def regrouping(num_sentences: int, num_joining: int) -> float:
    """Sentences leave and join a running batch."""
    return 0.2 + 0.005 * num_sentences + 0.03 * num_joining

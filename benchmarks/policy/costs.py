"""What an engine's work takes: `models/de-en/1` in int8 on one core with AVX-512, beam 5. Seconds.

Real machines differ. What counts is how much a row, a turn and an encoding cost beside each other.
"""

import numpy as np

_BEAM_SIZE = 5
_SENTENCES = (1, 2, 4, 8, 16, 32, 48, 64)
_STEP = (0.000345, 0.000445, 0.000558, 0.000894, 0.0016, 0.0033, 0.0059, 0.008)
_HOST = 0.0003


def step(num_rows: int, source_positions: float) -> float:
    """A decoder step, and what the host does about it."""
    return (
        float(np.interp(num_rows / _BEAM_SIZE, _SENTENCES, _STEP)) * (0.88 + 0.0075 * source_positions)
        + _HOST
    )


def encoding(num_sentences: int, source_positions: int) -> float:
    """A group encoded together."""
    return 0.0004 + source_positions * (0.000055 + 0.000027 * num_sentences)


def regrouping(num_sentences: int, num_joining: int) -> float:
    """Sentences leave and join a running batch."""
    return 0.0002 + 0.000005 * num_sentences + 0.00003 * num_joining

"""Which of a sentence's ended hypotheses are returned."""

from collections.abc import Sequence
from typing import NamedTuple

from dragoman_server.engine.request import FinishReason


class Ending(NamedTuple):
    """Where a hypothesis ended: enough to rank it and to trace it back."""

    log_probability: float
    """Of all its tokens, the end of the sentence included where there is one."""
    num_tokens: int
    """The end of the sentence included where there is one."""
    row: int
    """STOP: the sentence's row that was ended; LENGTH: the row that the last token went to."""
    finish_reason: FinishReason
    """Why it ended."""


def normalised_score(log_probability: float, num_tokens: int, length_penalty: float) -> float:
    """Log-probability over the length penalty, Wu et al. (2016), eq. 14; `num_tokens` counts the end."""
    penalty: float = ((5 + num_tokens) / 6) ** length_penalty
    return log_probability / penalty


def rank(
    endings: Sequence[Ending], *, length_penalty: float, num_hypotheses: int
) -> list[tuple[float, Ending]]:
    """The best endings with their normalised scores, best first; of equal ones, the first to end."""
    scored = [
        (normalised_score(ending.log_probability, ending.num_tokens, length_penalty), ending)
        for ending in endings
    ]
    scored.sort(key=lambda pair: -pair[0])
    return scored[:num_hypotheses]

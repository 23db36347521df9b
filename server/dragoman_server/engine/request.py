"""The engine's input and output: sentences as token ids, hypotheses as token ids.

Knows no text, no batches and no arrays of a decoder.
"""

import enum
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How one sentence is searched. Raises ValueError, naming the field, for values that make no sense."""

    beam_size: int
    """Hypotheses kept at every step; 1 is greedy."""
    num_hypotheses: int
    """Hypotheses returned, best first; at most `beam_size`."""
    length_penalty: float
    """Exponent alpha of Wu et al. (2016), eq. 14; 0 ranks by log-probability alone."""
    max_output_tokens: int
    """Most tokens a hypothesis may have, its end-of-sentence included."""

    def __post_init__(self) -> None:
        if self.beam_size < 1:
            raise ValueError(f"beam_size is {self.beam_size}; it must be at least 1")
        if not 1 <= self.num_hypotheses <= self.beam_size:
            raise ValueError(
                f"num_hypotheses is {self.num_hypotheses}; "
                f"it must be from 1 to the beam_size, {self.beam_size}"
            )
        if not (math.isfinite(self.length_penalty) and self.length_penalty >= 0):
            raise ValueError(f"length_penalty is {self.length_penalty}; it must be 0 or a positive number")
        if self.max_output_tokens < 1:
            raise ValueError(f"max_output_tokens is {self.max_output_tokens}; it must be at least 1")


class Priority(enum.Enum):
    """Which sentences go first where not all fit, in this order."""

    INTERACTIVE = "interactive"
    """Somebody waits for the answer."""
    BULK = "bulk"
    """Part of a job: fills what interactive sentences leave free."""

    # Enum's own is written in Python, and much is looked up by priority for every sentence and step.
    __hash__ = object.__hash__


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence to translate. Raises ValueError where its parts contradict each other."""

    source: tuple[int, ...]
    """Source token ids, the last one the end of the sentence."""
    options: SearchOptions
    """How it is searched."""
    target_start: tuple[int, ...] = ()
    """Target token ids that the decoder reads behind its own first, such as that of a language. They are no
    part of a hypothesis: not returned, not scored and not counted."""
    target_prefix: tuple[int, ...] = ()
    """Target token ids that every hypothesis begins with."""
    return_attention: bool = False
    """Whether the hypotheses carry their attention."""
    deadline: float | None = None
    """When the answer is no longer wanted, in seconds of `time.monotonic`."""
    priority: Priority = Priority.INTERACTIVE
    """Which sentences go first."""
    caller: str = ""
    """The caller that waits for it: callers take turns."""

    def __post_init__(self) -> None:
        if not self.source:
            raise ValueError("source is empty; it needs at least the end-of-sentence token")
        if len(self.target_prefix) >= self.options.max_output_tokens:
            raise ValueError(
                f"target_prefix has {len(self.target_prefix)} tokens, "
                f"which leaves none of max_output_tokens = {self.options.max_output_tokens}"
            )


class FinishReason(enum.Enum):
    """Why a hypothesis ended."""

    STOP = "stop"
    """The model ended it."""
    LENGTH = "length"
    """It reached `max_output_tokens`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hypothesis:
    """A translation that the search found."""

    tokens: tuple[int, ...]
    """Target token ids, the prefix included, the end of the sentence not."""
    score: float
    """Length-normalised log-probability, which hypotheses are ranked by."""
    log_probability: float
    """Natural log of the model's probability, the end of the sentence included where there is one; with a
    shortlist that among the sentence's candidates."""
    finish_reason: FinishReason
    """Why it ended."""
    attention: npt.NDArray[np.float32] | None
    """[U, T]: for each target token, the end of the sentence included, its weights over the source tokens."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceResult:
    """The answer to a sentence."""

    hypotheses: tuple[Hypothesis, ...]
    """Best first; at least one, at most `num_hypotheses`."""
    queue_seconds: float
    """Time from acceptance to the start of encoding."""
    encode_seconds: float
    """Encoding the group of sentences it was encoded with."""
    decode_seconds: float
    """Time from the end of encoding to the last step."""

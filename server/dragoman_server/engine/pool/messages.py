"""What an engine in a process of its own and its callers tell each other, through pipes and pickled.

Over there come events, too, as the engine tells them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Sentence, SentenceResult


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message to the process."""

    opener: Callable[[], Decoder[Any]]
    """Opens the decoder; whatever it raises comes back as `Failed`."""
    limits: EngineLimits
    warm_up: Sentence | None
    """Translated before all others, and told to nobody."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How long does a step of this sentence take? Before `Start` alone."""

    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Measured:
    """So long does it."""

    step_seconds: float


@dataclass(frozen=True, slots=True)
class Start:
    """From now on the process decodes."""

    num_engines: int
    """Its engines, each a thread over the one decoder."""
    first_number: int
    """Number of the first of them among the engines of the model."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Sentences for the engine."""

    numbers: Sequence[int]
    """What each is called in other messages."""
    sentences: Sequence[Sentence]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody waits any more for the sentence of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Is the engine's thread still there?"""


@dataclass(frozen=True, slots=True)
class Pong:
    """It is, and has just come from one turn to the next."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The answer to `Start`."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The process cannot decode, and ends."""

    reason: Exception


@dataclass(frozen=True, slots=True)
class Answer:
    """How the sentence of this number ended, unless it was cancelled."""

    number: int
    answer: SentenceResult | Exception

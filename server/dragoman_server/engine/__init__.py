"""Continuously batched beam search over a decoder. Knows no gRPC, no text and no metrics library."""

from dragoman_server.engine.decoder import StepInput, StepOutput
from dragoman_server.engine.errors import (
    DeadlineExpiredError,
    DecoderError,
    DeviceUnavailableError,
    EngineClosedError,
    EngineError,
    EngineLostError,
    PrecisionUnavailableError,
    QueueFullError,
    SentenceError,
)
from dragoman_server.engine.events import BatchStepped, Event
from dragoman_server.engine.limits import Admission, EngineLimits
from dragoman_server.engine.loop import Engine, warm
from dragoman_server.engine.request import (
    FinishReason,
    Hypothesis,
    Priority,
    SearchOptions,
    Sentence,
    SentenceResult,
)

__all__ = [
    "Admission",
    "BatchStepped",
    "DeadlineExpiredError",
    "DecoderError",
    "DeviceUnavailableError",
    "Engine",
    "EngineClosedError",
    "EngineError",
    "EngineLimits",
    "EngineLostError",
    "Event",
    "FinishReason",
    "Hypothesis",
    "PrecisionUnavailableError",
    "Priority",
    "QueueFullError",
    "SearchOptions",
    "Sentence",
    "SentenceError",
    "SentenceResult",
    "StepInput",
    "StepOutput",
    "warm",
]

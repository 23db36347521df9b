"""The one table that says which status each error of `errors` and of the engine is.

Every status carries an ErrorInfo whose reason is stable, for programs. grpc itself refuses what comes to no
handler, such as a message over --max-message-bytes: without one, in no log and no metric.
"""

import enum
from dataclasses import dataclass

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from dragoman_server.engine import (
    DeadlineExpiredError,
    EngineClosedError,
    EngineLostError,
    QueueFullError,
    SentenceError,
)
from dragoman_server.errors import (
    AlignerNotFoundError,
    BodyTooLargeError,
    CallerLimitError,
    GlossaryNotFoundError,
    IdleStreamError,
    InvalidRequestError,
    ModelNotFoundError,
    ModelNotLoadedError,
    NotServingError,
    SlowRequestError,
    TooManyCallsError,
    TooManyDocumentsError,
    TooManyWatchesError,
    UnknownCallerError,
    UnsupportedError,
    UnwantedError,
)

DOMAIN = "dragoman.v1"
"""ErrorInfo.domain of every status."""

# A caller's clock starts before the server's: what ends a call by its deadline comes a moment before that has
# passed here.
_DEADLINE_SLACK_SECONDS = 0.05


# Whoever is told to come later than that would not come at all.
_MAX_RETRY_SECONDS = 60.0


class Code(enum.Enum):
    """The codes of google.rpc.Code that calls end with, and gRPC's by name and number."""

    OK = 0
    CANCELLED = 1
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


@dataclass(frozen=True, kw_only=True)
class _Answer:
    code: Code
    reason: str
    retry_seconds: float | None = None


_TABLE: dict[type[Exception], _Answer] = {
    InvalidRequestError: _Answer(code=Code.INVALID_ARGUMENT, reason="INVALID_REQUEST"),
    ModelNotFoundError: _Answer(code=Code.NOT_FOUND, reason="MODEL_NOT_FOUND"),
    GlossaryNotFoundError: _Answer(code=Code.NOT_FOUND, reason="GLOSSARY_NOT_FOUND"),
    AlignerNotFoundError: _Answer(code=Code.NOT_FOUND, reason="ALIGNER_NOT_FOUND"),
    TooManyCallsError: _Answer(code=Code.RESOURCE_EXHAUSTED, reason="TOO_MANY_CALLS", retry_seconds=1.0),
    TooManyDocumentsError: _Answer(
        code=Code.RESOURCE_EXHAUSTED, reason="TOO_MANY_DOCUMENTS", retry_seconds=1.0
    ),
    # What it says itself is when.
    CallerLimitError: _Answer(code=Code.RESOURCE_EXHAUSTED, reason="CALLER_LIMIT", retry_seconds=1.0),
    TooManyWatchesError: _Answer(code=Code.RESOURCE_EXHAUSTED, reason="TOO_MANY_WATCHES", retry_seconds=1.0),
    UnknownCallerError: _Answer(code=Code.UNAUTHENTICATED, reason="UNKNOWN_CALLER"),
    IdleStreamError: _Answer(code=Code.ABORTED, reason="STREAM_IDLE"),
    NotServingError: _Answer(code=Code.UNAVAILABLE, reason="NOT_SERVING", retry_seconds=1.0),
    # What it says itself is when.
    ModelNotLoadedError: _Answer(code=Code.UNAVAILABLE, reason="MODEL_NOT_LOADED", retry_seconds=1.0),
    BodyTooLargeError: _Answer(code=Code.INVALID_ARGUMENT, reason="BODY_TOO_LARGE"),
    SlowRequestError: _Answer(code=Code.DEADLINE_EXCEEDED, reason="SLOW_REQUEST"),
    UnwantedError: _Answer(code=Code.DEADLINE_EXCEEDED, reason="DEADLINE_EXCEEDED"),
    UnsupportedError: _Answer(code=Code.UNIMPLEMENTED, reason="UNSUPPORTED"),
    SentenceError: _Answer(code=Code.INVALID_ARGUMENT, reason="SENTENCE_TOO_LARGE"),
    QueueFullError: _Answer(code=Code.RESOURCE_EXHAUSTED, reason="QUEUE_FULL", retry_seconds=1.0),
    EngineClosedError: _Answer(code=Code.UNAVAILABLE, reason="NOT_SERVING", retry_seconds=1.0),
    EngineLostError: _Answer(code=Code.UNAVAILABLE, reason="ENGINE_LOST", retry_seconds=1.0),
    DeadlineExpiredError: _Answer(code=Code.DEADLINE_EXCEEDED, reason="DEADLINE_EXCEEDED"),
}
_INTERNAL = _Answer(code=Code.INTERNAL, reason="INTERNAL")


def code_of(error: Exception) -> Code:
    """The status code of an error."""
    return _answer(error).code


def status_of(error: Exception) -> status_pb2.Status:
    """The status of an error, with its details."""
    answer = _answer(error)
    message = "internal error; the server's log has the cause" if answer is _INTERNAL else str(error)
    return status_pb2.Status(
        code=answer.code.value, message=message, details=map(_pack, _details(error, answer))
    )


def cancellation_code(remaining_seconds: float | None) -> Code:
    """Why a call's work is cancelled: its deadline, so far away, passed, or the caller went away."""
    if remaining_seconds is not None and remaining_seconds <= _DEADLINE_SLACK_SECONDS:
        return Code.DEADLINE_EXCEEDED
    return Code.CANCELLED


def _answer(error: Exception) -> _Answer:
    return next((answer for type_, answer in _TABLE.items() if isinstance(error, type_)), _INTERNAL)


def _details(error: Exception, answer: _Answer) -> list[Message]:
    details: list[Message] = [error_details_pb2.ErrorInfo(reason=answer.reason, domain=DOMAIN)]
    if isinstance(error, InvalidRequestError):
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=item.field, description=item.description)
            for item in error.violations
        ]
        details.append(error_details_pb2.BadRequest(field_violations=violations))
    if (retry_seconds := answer.retry_seconds) is not None:
        if isinstance(error, QueueFullError):
            retry_seconds = min(max(retry_seconds, error.expected_seconds), _MAX_RETRY_SECONDS)
        elif isinstance(error, ModelNotLoadedError | CallerLimitError):
            retry_seconds = error.retry_seconds
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(retry_seconds * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return details


def _pack(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed

"""The one table that says which status each error of `errors` and of the engine is.

Every status carries an ErrorInfo whose reason is stable, for programs. grpc itself refuses what comes to no
handler, such as a message over --max-message-bytes: without one, in no log and no metric.
"""

import enum
from typing import NamedTuple

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from dragoman_server import engine, errors

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


class _Answer(NamedTuple):
    code: Code
    reason: str
    retry_seconds: float | None = None


_TABLE: dict[type[Exception], _Answer] = {
    errors.InvalidRequestError: _Answer(Code.INVALID_ARGUMENT, "INVALID_REQUEST"),
    errors.ModelNotFoundError: _Answer(Code.NOT_FOUND, "MODEL_NOT_FOUND"),
    errors.GlossaryNotFoundError: _Answer(Code.NOT_FOUND, "GLOSSARY_NOT_FOUND"),
    errors.AlignerNotFoundError: _Answer(Code.NOT_FOUND, "ALIGNER_NOT_FOUND"),
    errors.TooManyCallsError: _Answer(Code.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS", 1.0),
    errors.TooManyDocumentsError: _Answer(Code.RESOURCE_EXHAUSTED, "TOO_MANY_DOCUMENTS", 1.0),
    # What it says itself is when.
    errors.CallerLimitError: _Answer(Code.RESOURCE_EXHAUSTED, "CALLER_LIMIT", 1.0),
    errors.TooManyWatchesError: _Answer(Code.RESOURCE_EXHAUSTED, "TOO_MANY_WATCHES", 1.0),
    errors.UnknownCallerError: _Answer(Code.UNAUTHENTICATED, "UNKNOWN_CALLER"),
    errors.IdleStreamError: _Answer(Code.ABORTED, "STREAM_IDLE"),
    errors.NotServingError: _Answer(Code.UNAVAILABLE, "NOT_SERVING", 1.0),
    # What it says itself is when.
    errors.ModelNotLoadedError: _Answer(Code.UNAVAILABLE, "MODEL_NOT_LOADED", 1.0),
    errors.BodyTooLargeError: _Answer(Code.INVALID_ARGUMENT, "BODY_TOO_LARGE"),
    errors.SlowRequestError: _Answer(Code.DEADLINE_EXCEEDED, "SLOW_REQUEST"),
    errors.UnwantedError: _Answer(Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    errors.UnsupportedError: _Answer(Code.UNIMPLEMENTED, "UNSUPPORTED"),
    engine.SentenceError: _Answer(Code.INVALID_ARGUMENT, "SENTENCE_TOO_LARGE"),
    engine.QueueFullError: _Answer(Code.RESOURCE_EXHAUSTED, "QUEUE_FULL", 1.0),
    engine.EngineClosedError: _Answer(Code.UNAVAILABLE, "NOT_SERVING", 1.0),
    engine.EngineLostError: _Answer(Code.UNAVAILABLE, "ENGINE_LOST", 1.0),
    engine.DeadlineExpiredError: _Answer(Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
}
_INTERNAL = _Answer(Code.INTERNAL, "INTERNAL")


def code_of(error: Exception) -> Code:
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
    if isinstance(error, errors.InvalidRequestError):
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=item.field, description=item.description)
            for item in error.violations
        ]
        details.append(error_details_pb2.BadRequest(field_violations=violations))
    if (retry_seconds := answer.retry_seconds) is not None:
        if isinstance(error, engine.QueueFullError):
            retry_seconds = min(max(retry_seconds, error.expected_seconds), _MAX_RETRY_SECONDS)
        elif isinstance(error, errors.ModelNotLoadedError | errors.CallerLimitError):
            retry_seconds = error.retry_seconds
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(retry_seconds * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return details


def _pack(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed

"""What can go wrong in a call, and the one table that says which status each error is.

Exception
├── RequestError                 the server refuses the call
│   ├── InvalidRequestError      INVALID_ARGUMENT, a violation for each field
│   ├── ModelNotFoundError       NOT_FOUND, naming what there is
│   ├── TooManyCallsError        RESOURCE_EXHAUSTED, with the time to wait before trying again
│   ├── UnknownCallerError       UNAUTHENTICATED
│   ├── IdleStreamError          ABORTED: a stream begins anew when there is something to translate
│   └── NotServingError          UNAVAILABLE: the models are loading, or the server drains
├── engine.SentenceError         INVALID_ARGUMENT: no batch could ever hold the sentence
├── engine.QueueFullError        RESOURCE_EXHAUSTED, with the time to wait before trying again
├── engine.EngineClosedError     UNAVAILABLE
├── engine.DeadlineExpiredError  DEADLINE_EXCEEDED
└── anything else                INTERNAL, without a word of what it was: the log has that

Every status carries an ErrorInfo whose reason is stable, for programs. grpc itself refuses what comes to no
handler, such as a message over --max-message-bytes: without one, in no log and no metric.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from dragoman_server.engine import DeadlineExpiredError, EngineClosedError, QueueFullError, SentenceError

DOMAIN = "dragoman.v1"
"""ErrorInfo.domain of every status."""
MAX_VIOLATIONS = 8
"""Most violations that a status tells of. It travels in a call's trailer, which gRPC bounds at 8 KiB."""
MAX_QUOTED_CHARACTERS = 80
"""Most characters that a status repeats of what a caller wrote, for the same reason."""
MAX_LISTED_NAMES = 20
"""Most names that a status lists of what there is, for the same reason."""

# A caller's clock starts before the server's: what ends a call by its deadline comes a moment before that has
# passed here.
_DEADLINE_SLACK_SECONDS = 0.05


class RequestError(Exception):
    """Base of what the server refuses on its own."""


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A field that is wrong."""

    field: str
    """Path of the field in the request, such as "options.beam_size" or "texts[3]"; "" for all of it."""
    description: str
    """The value, the limit and the way out."""


class InvalidRequestError(RequestError, ValueError):
    """The request holds values that the server does not take."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations[:MAX_VIOLATIONS])
        told = [
            f"{violation.field}: {violation.description}" if violation.field else violation.description
            for violation in self.violations
        ]
        if num_more := len(violations) - len(self.violations):
            told.append(f"and {num_more} more")
        super().__init__("; ".join(told))


class ModelNotFoundError(RequestError, LookupError):
    """There is no such model, or none for the languages."""


class TooManyCallsError(RequestError):
    """As many calls are in as the server takes at a time."""

    def __init__(self, max_calls: int) -> None:
        super().__init__(
            f"the server is at work on {max_calls} calls, as many as its --max-calls lets in; try again later"
        )


class UnknownCallerError(RequestError):
    """A call shows no token, or one that is nobody's."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; a call shows its token in its metadata, as `authorization: Bearer TOKEN`")


class IdleStreamError(RequestError):
    """A stream held its place for nothing."""

    def __init__(self, max_idle_seconds: float) -> None:
        super().__init__(
            f"nothing was sent or read on the stream for {max_idle_seconds:g} seconds, as long as the "
            "server's --max-stream-idle-seconds lets it be idle; open another when there is something to "
            "translate"
        )


class NotServingError(RequestError):
    """The server takes no calls at the moment."""

    def __init__(self, why: Literal["loading", "draining"]) -> None:
        super().__init__(
            "the server is loading its models" if why == "loading" else "the server is shutting down"
        )


@dataclass(frozen=True, kw_only=True)
class _Answer:
    code: grpc.StatusCode
    reason: str
    retry_seconds: float | None = None


_TABLE: dict[type[Exception], _Answer] = {
    InvalidRequestError: _Answer(code=grpc.StatusCode.INVALID_ARGUMENT, reason="INVALID_REQUEST"),
    ModelNotFoundError: _Answer(code=grpc.StatusCode.NOT_FOUND, reason="MODEL_NOT_FOUND"),
    TooManyCallsError: _Answer(
        code=grpc.StatusCode.RESOURCE_EXHAUSTED, reason="TOO_MANY_CALLS", retry_seconds=1.0
    ),
    UnknownCallerError: _Answer(code=grpc.StatusCode.UNAUTHENTICATED, reason="UNKNOWN_CALLER"),
    IdleStreamError: _Answer(code=grpc.StatusCode.ABORTED, reason="STREAM_IDLE"),
    NotServingError: _Answer(code=grpc.StatusCode.UNAVAILABLE, reason="NOT_SERVING", retry_seconds=1.0),
    SentenceError: _Answer(code=grpc.StatusCode.INVALID_ARGUMENT, reason="SENTENCE_TOO_LARGE"),
    QueueFullError: _Answer(code=grpc.StatusCode.RESOURCE_EXHAUSTED, reason="QUEUE_FULL", retry_seconds=1.0),
    EngineClosedError: _Answer(code=grpc.StatusCode.UNAVAILABLE, reason="NOT_SERVING", retry_seconds=1.0),
    DeadlineExpiredError: _Answer(code=grpc.StatusCode.DEADLINE_EXCEEDED, reason="DEADLINE_EXCEEDED"),
}
_INTERNAL = _Answer(code=grpc.StatusCode.INTERNAL, reason="INTERNAL")


def code_of(error: Exception) -> grpc.StatusCode:
    """The status code of an error."""
    return _answer(error).code


def status_of(error: Exception) -> status_pb2.Status:
    """The status of an error, with its details."""
    answer = _answer(error)
    number: int = answer.code.value[0]
    message = "internal error; the server's log has the cause" if answer is _INTERNAL else str(error)
    return status_pb2.Status(code=number, message=message, details=map(_pack, _details(error, answer)))


def cancellation_code(context: grpc.aio.ServicerContext[Any, Any]) -> grpc.StatusCode:
    """Why grpc cancels a call's handler: the caller's deadline passed, or the caller went away."""
    remaining = context.time_remaining()
    if remaining is not None and remaining <= _DEADLINE_SLACK_SECONDS:
        return grpc.StatusCode.DEADLINE_EXCEEDED
    return grpc.StatusCode.CANCELLED


def quote(text: str) -> str:
    """What a caller wrote, in quotation marks and cut short where it is long."""
    return repr(text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[: MAX_QUOTED_CHARACTERS - 1]}…")


def list_names(names: Sequence[str]) -> str:
    """The names, or the first of them and how many more there are."""
    told = ", ".join(names[:MAX_LISTED_NAMES])
    num_more = len(names) - MAX_LISTED_NAMES
    return f"{told}, and {num_more} more" if num_more > 0 else told


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
    if answer.retry_seconds is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(answer.retry_seconds * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return details


def _pack(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed

"""Which status of HTTP each error is, and when to come again. What the answer's body says is each API's."""

import math

from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2

from dragoman_server.errors import BodyTooLargeError, MethodError, SlowRequestError
from dragoman_server.service.statuses import Code, code_of, status_of

CLIENT_GONE = 499
"""Client closed request, as nginx has it, for the log and the metrics: nobody reads the answer."""

_BY_CODE = {
    Code.OK: 200,
    Code.CANCELLED: CLIENT_GONE,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.ABORTED: 409,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}
_BY_ERROR: dict[type[Exception], int] = {BodyTooLargeError: 413, MethodError: 405, SlowRequestError: 408}


def http_status(error: Exception) -> int:
    """The status of an error, as HTTP means it."""
    return _BY_ERROR.get(type(error), _BY_CODE[code_of(error)])


def retry_headers(status: status_pb2.Status) -> dict[str, str]:
    """Retry-After, where the status says when to come again."""
    for detail in status.details:
        info = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            delay: duration_pb2.Duration = info.retry_delay
            return {"Retry-After": str(max(1, math.ceil(delay.ToMilliseconds() / 1000)))}
    return {}


def message_of(error: Exception) -> str:
    """The message for the caller; an internal error says nothing more."""
    return str(status_of(error).message)

"""Errors of calls, each of which has its status in `statuses`; of files; and what they repeat of a caller.

Exception
├── RequestError                 the server refuses the call
│   ├── InvalidRequestError      INVALID_ARGUMENT, a violation for each field
│   ├── ModelNotFoundError       NOT_FOUND, naming what there is
│   ├── GlossaryNotFoundError    NOT_FOUND, naming what there is
│   ├── AlignerNotFoundError     NOT_FOUND, naming what there is
│   ├── TooManyCallsError        RESOURCE_EXHAUSTED, with the time to wait before trying again
│   ├── TooManyDocumentsError    RESOURCE_EXHAUSTED, with the time to wait before trying again
│   ├── CallerLimitError         RESOURCE_EXHAUSTED, with the time to wait before trying again
│   ├── UnknownCallerError       UNAUTHENTICATED
│   ├── IdleStreamError          ABORTED: a stream begins anew when there is something to translate
│   ├── ModelNotLoadedError      UNAVAILABLE, with the time to wait before trying again
│   ├── NotServingError          UNAVAILABLE: the models are loading, or the server drains
│   ├── BodyTooLargeError        INVALID_ARGUMENT: more bytes than the server reads
│   ├── SlowRequestError         DEADLINE_EXCEEDED: the request's body did not come in time
│   ├── UnwantedError            DEADLINE_EXCEEDED: work ended early; other calls have no reader by then
│   └── UnsupportedError         UNIMPLEMENTED: the server has no such thing, or lacks a library
│       └── MethodError          UNIMPLEMENTED: another method of HTTP than the path's own
├── engine.SentenceError         INVALID_ARGUMENT: no batch could ever hold the sentence
├── engine.QueueFullError        RESOURCE_EXHAUSTED, with the time to wait before trying again
├── engine.EngineClosedError     UNAVAILABLE
├── engine.EngineLostError       UNAVAILABLE, with the time to wait before trying again
├── engine.DeadlineExpiredError  DEADLINE_EXCEEDED
└── anything else                INTERNAL, without a word of what it was: the log has that

Must not know gRPC.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

MAX_VIOLATIONS = 8
"""Most violations that an error tells of. It travels in a call's trailer, which gRPC bounds at 8 KiB."""


class ServerFileError(ValueError):
    """A file that the server was given, such as its tokens, can't be used. Names it, and the line."""


class RequestError(Exception):
    """Base of what the server refuses on its own."""


class Violation(NamedTuple):
    """A field that is wrong."""

    field: str
    """Path of the field in the request, such as "options.beam_size" or "texts[3]"; "" for all of it."""
    description: str
    """The value, the limit and the way out."""


class InvalidRequestError(RequestError, ValueError):
    """The request holds values that the server does not take."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations[:MAX_VIOLATIONS])
        descriptions = [
            f"{violation.field}: {violation.description}" if violation.field else violation.description
            for violation in self.violations
        ]
        if num_more := len(violations) - len(self.violations):
            descriptions.append(f"and {num_more} more")
        super().__init__("; ".join(descriptions))


def refusal(field: str, description: str) -> InvalidRequestError:
    """The error of one field; of the whole request where it is ""."""
    return InvalidRequestError([Violation(field, description)])


def raise_if_any(violations: Sequence[Violation]) -> None:
    """Raises InvalidRequestError for violations, if there are any."""
    if violations:
        raise InvalidRequestError(violations)


class ModelNotFoundError(RequestError, LookupError):
    """There is no such model, or none for the languages."""


class GlossaryNotFoundError(RequestError, LookupError):
    """There is no such glossary."""


class AlignerNotFoundError(RequestError, LookupError):
    """There is no such saved aligner."""


class TooManyCallsError(RequestError):
    """The server has as many calls as it takes at a time."""

    def __init__(self, max_calls: int) -> None:
        super().__init__(
            f"the server is at work on {max_calls} calls, as many as its --max-calls lets in; try again later"
        )


class TooManyDocumentsError(RequestError):
    """The files that wait to be read or written are as many as may."""

    def __init__(self) -> None:
        super().__init__("the server has as many files to read as it takes at a time; try again later")


class CallerLimitError(RequestError):
    """A caller has had as much as it may for now."""

    def __init__(self, description: str, *, limit: str, value: int, retry_seconds: float) -> None:
        self.limit = limit
        """Its name in the file of limits."""
        self.retry_seconds = retry_seconds
        when = "a call is answered" if limit == "calls" else f"{math.ceil(retry_seconds)} seconds"
        super().__init__(
            f"{description}; the server lets this caller have {limit}={value} (--caller-limits): try again "
            f"{'when' if limit == 'calls' else 'in'} {when}"
        )


class TooManyWatchesError(RequestError):
    """The health of the server is watched by as many as it lets, in all or from one host."""

    def __init__(self, max_watches: int, option: str) -> None:
        super().__init__(
            f"the health of the server is watched by {max_watches} calls, as many as its {option} lets; ask "
            "now and then with Check instead"
        )


class UnknownCallerError(RequestError):
    """A call shows no token, or one that is nobody's, or comes with a certificate that names nobody."""

    def __init__(
        self, why: str, way_out: str = "a call shows its token as `authorization: Bearer TOKEN`"
    ) -> None:
        super().__init__(f"{why}; {way_out}")


class IdleStreamError(RequestError):
    """A stream held its place for nothing."""

    def __init__(self, max_idle_seconds: float) -> None:
        super().__init__(
            f"nothing was sent or read on the stream for {max_idle_seconds:g} seconds, as long as the "
            "server's --max-stream-idle-seconds lets it be idle; open another when there is something to "
            "translate"
        )


class ModelNotLoadedError(RequestError):
    """A model is not loaded, and loading it failed just now or a moment ago."""

    def __init__(self, model: str, *, retry_seconds: float) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(
            f"model {model} could not be loaded, and the server's log says why; the first request after "
            f"{retry_seconds:.2g} seconds has it tried again"
        )


class NotServingError(RequestError):
    """The server takes no calls at the moment."""

    def __init__(self, why: Literal["loading", "draining"]) -> None:
        super().__init__(
            "the server is loading its models" if why == "loading" else "the server is shutting down"
        )


class BodyTooLargeError(RequestError):
    """A request over HTTP has more bytes than the server reads."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(
            f"the request has more than {max_bytes} bytes, as many as the server's --max-http-body-bytes "
            "takes; send less at a time"
        )


class SlowRequestError(RequestError):
    """A request over HTTP does not come in time."""

    def __init__(self, max_seconds: float) -> None:
        super().__init__(f"the request did not come within {max_seconds:g} seconds")


class UnwantedError(RequestError):
    """Work was given up as nobody wants it any more: its deadline has passed, or its caller went away."""

    def __init__(self) -> None:
        super().__init__("the deadline passed before the work was done; send less at a time, or wait longer")


class UnsupportedError(RequestError):
    """The server does nothing like what is asked for."""


class MethodError(UnsupportedError):
    """A path over HTTP is asked by a method that is not its own."""

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(f"the method is {method}; here it must be {' or '.join(allowed)}")


MAX_QUOTED_CHARACTERS = 80
"""Most characters that are repeated of what a caller wrote."""
MAX_LISTED_NAMES = 20
"""Most names that are listed."""


def quote(text: str) -> str:
    """A caller's words, in quotation marks and cut short where it is long."""
    return repr(text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[: MAX_QUOTED_CHARACTERS - 1]}…")


def list_names(names: Sequence[str]) -> str:
    """The names, or the first of them and how many more there are."""
    listed = ", ".join(names[:MAX_LISTED_NAMES])
    num_more = len(names) - MAX_LISTED_NAMES
    return f"{listed}, and {num_more} more" if num_more > 0 else listed

"""The table of errors: every one has its status."""

import pytest
from google.rpc import error_details_pb2, status_pb2

from dragoman_server import engine, errors
from dragoman_server.engine import QueueFullError
from dragoman_server.engine.errors import QueueTooSlowError
from dragoman_server.service.statuses import _TABLE, Code, cancellation_code, code_of, status_of

ERRORS = {
    errors.InvalidRequestError([errors.Violation(field="texts", description="too many")]): "INVALID_ARGUMENT",
    errors.ModelNotFoundError("no such model"): "NOT_FOUND",
    errors.GlossaryNotFoundError("no such glossary"): "NOT_FOUND",
    errors.AlignerNotFoundError("no such aligner"): "NOT_FOUND",
    errors.TooManyCallsError(1000): "RESOURCE_EXHAUSTED",
    errors.TooManyDocumentsError(): "RESOURCE_EXHAUSTED",
    errors.CallerLimitError("ada began 9", limit="calls", value=9, retry_seconds=7): "RESOURCE_EXHAUSTED",
    errors.TooManyWatchesError(10, "--max-health-watches"): "RESOURCE_EXHAUSTED",
    errors.UnknownCallerError("who is it?"): "UNAUTHENTICATED",
    errors.IdleStreamError(1): "ABORTED",
    errors.ModelNotLoadedError("de-en/1", retry_seconds=4.0): "UNAVAILABLE",
    errors.NotServingError("loading"): "UNAVAILABLE",
    errors.NotServingError("draining"): "UNAVAILABLE",
    errors.BodyTooLargeError(1): "INVALID_ARGUMENT",
    errors.SlowRequestError(1): "DEADLINE_EXCEEDED",
    errors.UnwantedError(): "DEADLINE_EXCEEDED",
    errors.UnsupportedError("no such thing"): "UNIMPLEMENTED",
    engine.SentenceError("too long"): "INVALID_ARGUMENT",
    QueueFullError(num_sentences=1, num_waiting=2, max_queue=2): "RESOURCE_EXHAUSTED",
    engine.EngineClosedError("closed"): "UNAVAILABLE",
    engine.EngineLostError("killed"): "UNAVAILABLE",
    engine.DeadlineExpiredError("late"): "DEADLINE_EXCEEDED",
    engine.DecoderError("secret"): "INTERNAL",
    ZeroDivisionError("secret"): "INTERNAL",
}


def details(status: status_pb2.Status) -> dict[str, object]:
    found = {}
    for packed in status.details:
        for type_ in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
            message = type_()
            if packed.Unpack(message):
                found[message.DESCRIPTOR.name] = message
    return found


def test_no_error_is_left_out() -> None:
    assert set(map(type, ERRORS)) >= set(_TABLE)


@pytest.mark.parametrize(("error", "code"), ERRORS.items(), ids=lambda value: type(value).__name__)
def test_every_error_has_its_status_and_who_may_try_again_is_told_when(error: Exception, code: str) -> None:
    status = status_of(error)
    assert code_of(error).name == code
    assert status.code == code_of(error).value
    info = details(status)["ErrorInfo"]
    assert info.domain == "dragoman.v1"
    assert info.reason
    assert ("RetryInfo" in details(status)) == (code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"))


@pytest.mark.parametrize(("expected", "told"), [(0.0, 1.0), (7.5, 7.5), (3600.0, 60.0)])
def test_whoever_finds_the_queue_full_is_told_how_long_it_takes(expected: float, told: float) -> None:
    full = QueueFullError(num_sentences=1, num_waiting=2, max_queue=2, expected_seconds=expected)
    slow = QueueTooSlowError(expected_seconds=expected, max_seconds=5)
    for error in (full, slow):
        assert code_of(error) is Code.RESOURCE_EXHAUSTED
        delay = details(status_of(error))["RetryInfo"].retry_delay
        assert delay.ToMilliseconds() == told * 1000


def test_an_internal_error_keeps_its_cause_to_itself() -> None:
    assert "secret" not in str(status_of(ZeroDivisionError("secret")))


@pytest.mark.parametrize(
    ("remaining", "code"),
    [(None, "CANCELLED"), (0.5, "CANCELLED"), (0.03, "DEADLINE_EXCEEDED"), (0.0, "DEADLINE_EXCEEDED")],
)
def test_a_deadline_passes_for_the_caller_a_moment_earlier(remaining: float | None, code: str) -> None:
    assert cancellation_code(remaining).name == code

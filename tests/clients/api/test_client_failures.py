"""Calls that fail: what is tried again, what is kept, and which error comes."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2
from tests.clients.conftest import client_results, fail_after_answers

import dragoman
from dragoman import Client, portions
from dragoman.portions import retry_budget

DE_EN = {"source": "de", "target": "en"}


@pytest.mark.parametrize("text", ["ja", "a" * (1 << 20)], ids=["small", "large"])
def test_call_is_tried_again_while_the_server_is_unavailable(client, server, text):
    server.servicer.failures.extend([server.status("UNAVAILABLE")] * 2)
    assert client.translate([text], **DE_EN)[0].text == text.upper()
    assert len(server.servicer.requests) == 3


@pytest.mark.parametrize("asks_to_wait", [False, True])
def test_server_that_goes_away_in_the_middle_is_waited_for(client, server, asks_to_wait):
    # More failures than gRPC itself tries again.
    wait = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=300_000_000))
    fail_after_answers(server, 2, 6, *([wait] if asks_to_wait else []))
    texts = [f"text {number}" for number in range(600)]
    translations = client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]
    assert not server.servicer.outage


def test_server_that_restarts_in_the_middle_is_waited_for(client, server):
    server.servicer.delay_seconds = 0.05
    restart = threading.Thread(target=lambda: (server.stop(), time.sleep(1), server.start()))
    with ThreadPoolExecutor(1) as pool:
        translations = pool.submit(client.translate, ["ja"] * 5000, **DE_EN)
        while len(server.servicer.requests) < 4:
            time.sleep(0.001)
        restart.start()
        assert [translation.text for translation in translations.result()] == ["JA"] * 5000
    restart.join()


def test_error_keeps_what_is_done(server):
    fail_after_answers(server, 2, 1000)
    with Client(server.address, timeout_seconds=20, patience_seconds=0) as client:
        with pytest.raises(dragoman.UnavailableError) as caught:
            client.translate([f"text {number}" for number in range(600)], **DE_EN)
        assert list(caught.value.translations) == list(range(512))
        assert caught.value.translations[511].text == "TEXT 511"
        server.servicer.outage.clear()
        with pytest.raises(dragoman.InvalidRequestError) as caught:
            client.translate(["ja"] * 512 + ["!"], **DE_EN)
        assert list(caught.value.translations) == list(range(512))


def test_nobody_waits_past_a_deadline_or_beyond_the_budget():
    asks = dragoman.UnavailableError("it drains", retry_after_seconds=3)
    assert retry_budget(30).wait_seconds(asks) == 3
    assert retry_budget(30).wait_seconds(asks, 2.9) is None
    assert retry_budget(2.9).wait_seconds(asks) is None
    budget, failed = retry_budget(30), dragoman.UnavailableError("it is gone")
    assert [budget.wait_seconds(failed) for _ in range(6)] == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    budget.renew()
    assert budget.wait_seconds(failed) == 0.2


def test_absent_server_is_told_at_once_by_its_address(client, server):
    server.stop()
    for texts in (["ja"], ["ja"] * 600):
        with pytest.raises(dragoman.UnavailableError, match=server.address) as caught:
            client.translate(texts, **DE_EN)
        assert caught.value.translations == {}
    server.start()


@pytest.mark.parametrize("own", [True, False])
def test_deadline_ends_the_call(server, own):
    server.servicer.delay_seconds = 0.5
    client = Client(server.address, timeout_seconds=60 if own else 0.1)
    with client, pytest.raises(dragoman.DeadlineExceededError):
        client.translate(["ja"], **DE_EN, timeout_seconds=0.1 if own else None)


def test_deadline_holds_for_all_requests_of_a_call_together(client, server):
    server.servicer.delay_seconds = 0.2
    with pytest.raises(dragoman.DeadlineExceededError):
        client.translate(["ja"] * 2000, **DE_EN, timeout_seconds=0.5)
    assert len(server.servicer.requests) < 8


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("CANCELLED", dragoman.CallCancelledError),
        ("UNKNOWN", dragoman.ServerError),
        ("INVALID_ARGUMENT", dragoman.InvalidRequestError),
        ("DEADLINE_EXCEEDED", dragoman.DeadlineExceededError),
        ("NOT_FOUND", dragoman.ModelNotFoundError),
        ("ALREADY_EXISTS", dragoman.ServerError),
        ("PERMISSION_DENIED", dragoman.AuthenticationError),
        ("RESOURCE_EXHAUSTED", dragoman.OverloadedError),
        ("FAILED_PRECONDITION", dragoman.ServerError),
        ("ABORTED", dragoman.ServerError),
        ("OUT_OF_RANGE", dragoman.InvalidRequestError),
        ("UNIMPLEMENTED", dragoman.UnsupportedError),
        ("INTERNAL", dragoman.ServerError),
        ("UNAVAILABLE", dragoman.UnavailableError),
        ("DATA_LOSS", dragoman.ServerError),
        ("UNAUTHENTICATED", dragoman.AuthenticationError),
    ],
)
def test_every_status_has_its_error_and_none_but_unavailable_is_tried_again(client, server, code, kind):
    server.servicer.failures.extend([server.status(code, "what went wrong")] * 5)
    with pytest.raises(dragoman.DragomanError, match="what went wrong") as call:
        client.translate(["ja"], **DE_EN)
    assert len(server.servicer.requests) == (5 if code == "UNAVAILABLE" else 1)
    (item,) = client_results(client, server, [f"!{code}"])
    for error in (call.value, item.error):
        assert type(error) is kind
        assert error.status == code


def test_rich_details_become_attributes(client, server):
    delay = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=1, nanos=500_000_000))
    server.servicer.failures.append(server.status("RESOURCE_EXHAUSTED", "queue is full", delay))
    with pytest.raises(dragoman.OverloadedError) as overloaded:
        client.translate(["ja"], **DE_EN)
    assert overloaded.value.retry_after_seconds == 1.5

    violation = server.bad_request("options.beam_size", "is 1000; at most 64")
    server.servicer.failures.append(server.status("INVALID_ARGUMENT", "bad request", violation))
    with pytest.raises(dragoman.InvalidRequestError) as invalid:
        client.translate(["ja"], **DE_EN)
    assert invalid.value.violations == (
        dragoman.FieldViolation(field="options.beam_size", description="is 1000; at most 64"),
    )


@pytest.mark.parametrize("details", [status_pb2.Status(code=3, message="bad").SerializeToString(), b"\xff"])
def test_details_that_are_not_the_calls_own_are_left_out(client, server, monkeypatch, details):
    def fail(context):
        context.set_trailing_metadata([("grpc-status-details-bin", details)])
        context.abort(grpc.StatusCode.ABORTED, "replaced")

    monkeypatch.setattr(server.servicer, "_fail", fail)
    with pytest.raises(dragoman.ServerError, match="replaced") as failed:
        client.translate(["ja"], **DE_EN)
    assert failed.value.status == "ABORTED"


def test_errors_are_also_what_python_calls_them():
    assert issubclass(dragoman.InvalidRequestError, ValueError)
    assert issubclass(dragoman.ModelNotFoundError, LookupError)
    assert issubclass(dragoman.UnavailableError, ConnectionError)
    assert issubclass(dragoman.DeadlineExceededError, TimeoutError)


@pytest.mark.parametrize("count", [1, 3 * portions.MAX_REQUEST_TEXTS])
def test_interrupted_wait_cancels_the_call(client, server, count):
    server.servicer.holds_calls = True

    def interrupt():
        while not server.servicer.requests:
            time.sleep(0.01)
        # What interrupts gRPC while it begins a call leaves nobody who could cancel it.
        time.sleep(0.3)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as interrupted:
        client.translate(["ja"] * count, **DE_EN)
    thread.join()
    # The client's own limit for the call is longer, and the error's trace keeps the call in memory.
    assert server.servicer.call_ended.wait(10)
    del interrupted

"""The blocking client against a real server."""

import importlib.metadata
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2, status_pb2
from tests.clients.conftest import fail_after_answers

import dragoman
from dragoman import Client, FinishReason, messages, portions
from dragoman.connection.patience import Patience

DE_EN = {"source": "de", "target": "en"}


@pytest.fixture
def client(server):
    with Client(server.address, timeout_seconds=20) as connected:
        yield connected


def test_translations_come_one_to_one_with_texts(client):
    translations = client.translate(["guten morgen", "", "  \n", "ja"], **DE_EN)
    assert [translation.text for translation in translations] == ["GUTEN MORGEN", "", "  \n", "JA"]
    assert [len(translation.hypotheses) for translation in translations] == [1, 0, 0, 1]


def test_result_carries_all_that_the_server_tells(client):
    (translation,) = client.translate(["guten  morgen"], **DE_EN, num_hypotheses=2, alignments=True)
    assert str(translation.model) == "de-en/1"
    assert (translation.truncated, translation.split, translation.sentences) == (False, False, 1)
    assert (translation.source_tokens, translation.target_tokens) == (3, 4)
    assert translation.timings.decode_seconds == 0.25
    best, second = translation.hypotheses
    assert (best.text, best.score, best.log_probability) == ("GUTEN  MORGEN", -0.5, -1.5)
    assert best.finish_reason is FinishReason.STOP
    assert second.text == "GUTEN  MORGEN!"
    link = best.alignments[1]
    assert "guten  morgen"[link.source_start : link.source_end] == "morgen"
    assert best.text[link.target_start : link.target_end] == "MORGEN"
    assert link.weight == pytest.approx(0.93)


def test_every_option_reaches_the_server_and_only_those_given(client, server):
    client.translate(["ja"], **DE_EN)
    client.translate(
        ["ja"],
        **DE_EN,
        model="de-en/1",
        beam_size=4,
        num_hypotheses=2,
        length_penalty=0.0,
        max_output_tokens=9,
        target_prefix="Yes",
        length_policy="truncate",
        segmentation="line",
        priority="bulk",
        alignments=True,
    )
    bare, full = server.servicer.requests
    assert not bare.options.ListFields()
    assert not bare.HasField("segmentation")
    assert not bare.HasField("priority")
    assert (full.source_language, full.target_language, full.model) == ("de", "en", "de-en/1")
    assert full.options.HasField("length_penalty")
    assert full.options.length_penalty == 0.0
    assert (full.options.beam_size, full.options.num_hypotheses, full.options.max_output_tokens) == (4, 2, 9)
    assert full.options.target_prefix == "Yes"
    assert full.options.length_policy == messages.pb.LENGTH_POLICY_TRUNCATE
    assert full.segmentation == messages.pb.SEGMENTATION_LINE
    assert full.priority == messages.pb.PRIORITY_BULK
    assert full.return_alignments


def test_no_texts_make_no_call(client, server):
    assert client.translate([], **DE_EN) == []
    assert server.servicer.requests == []


def test_long_list_is_cut_into_requests_and_keeps_its_order(client, server):
    server.servicer.delay_seconds = 0.01
    texts = [f"text {number}" for number in range(10_000)]
    translations = client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]
    assert max(len(request.texts) for request in server.servicer.requests) == portions.MAX_REQUEST_TEXTS
    assert server.servicer.max_in_flight == portions.MAX_REQUESTS_IN_FLIGHT


def test_requests_are_cut_by_bytes_too(client, server):
    texts = ["ä" * (portions.MAX_REQUEST_BYTES // 4)] * 5 + ["b"]
    assert len(client.translate(texts, **DE_EN)) == 6
    sizes = [sum(len(text.encode()) for text in request.texts) for request in server.servicer.requests]
    assert len(sizes) == 3
    assert max(sizes) <= portions.MAX_REQUEST_BYTES


def test_requests_of_a_call_that_fill_the_queue_together_go_one_by_one(client, server):
    server.servicer.delay_seconds = 0.02
    server.servicer.max_queue = portions.MAX_REQUEST_TEXTS
    texts = [f"text {number}" for number in range(1000)]
    translations = client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]
    assert server.servicer.max_in_flight == 1


def test_queue_that_others_fill_is_told(client, server):
    server.servicer.max_queue = 10
    with pytest.raises(dragoman.OverloadedError):
        client.translate(["ja"] * 1000, **DE_EN)
    assert server.servicer.max_in_flight == 0


@pytest.mark.parametrize("max_texts", [100, 1])
def test_request_with_too_many_texts_for_the_server_is_halved(client, server, max_texts):
    server.servicer.max_texts = max_texts
    texts = [f"text {number}" for number in range(300)]
    translations = client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]


def test_request_that_is_too_long_for_the_transport_is_halved(small_message_server):
    texts = [f"text {number}".ljust(4_000) for number in range(30)]
    with Client(small_message_server.address, timeout_seconds=20) as client:
        translations = client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]


def test_bad_text_is_named_by_its_place_in_the_call(client):
    texts = ["ja"] * 700
    texts[600] = "!"
    with pytest.raises(dragoman.InvalidRequestError) as caught:
        client.translate(texts, **DE_EN)
    assert str(caught.value) == "texts[600]: starts with !, unlike texts[0]"
    assert [violation.field for violation in caught.value.violations] == ["texts[600]"]


def test_text_over_the_transports_limit_is_the_callers_fault(client):
    with pytest.raises(dragoman.InvalidRequestError, match="too long"):
        client.translate(["a" * (5 << 20)], **DE_EN)


@pytest.mark.parametrize("one", ["Guten Morgen.", b"Guten Morgen."])
def test_one_string_in_place_of_a_list_is_told_how_to_write_it(client, one):
    with pytest.raises(TypeError, match=r"write \[b?'Guten Morgen.'\]"):
        client.translate(one, **DE_EN)


def test_text_that_is_no_string_is_named(client):
    with pytest.raises(TypeError, match=r"texts\[1\] is int, not str"):
        client.translate(["ja", 3], **DE_EN)


def test_lone_surrogate_is_named(client, server):
    with pytest.raises(dragoman.InvalidRequestError, match=r"texts\[1\].*code point 2") as caught:
        client.translate(["ja", "ab\ud800"], **DE_EN)
    assert caught.value.violations[0].field == "texts[1]"
    assert server.servicer.requests == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("beam_size", 0),
        ("num_hypotheses", -1),
        ("max_output_tokens", 2**32),
        ("length_policy", "cut"),
        ("segmentation", "word"),
        ("priority", "urgent"),
    ],
)
def test_option_that_cannot_be_meant_is_refused_with_its_name(client, option, value):
    with pytest.raises(dragoman.InvalidRequestError, match=option) as caught:
        client.translate(["ja"], **DE_EN, **{option: value})
    assert caught.value.violations[0].field == option


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ({"beam_size": "3"}, "beam_size is str, not int"),
        ({"length_penalty": "1"}, "length_penalty is str, not float"),
        ({"timeout_seconds": "5"}, "timeout_seconds is str, not float"),
    ],
)
def test_argument_of_the_wrong_type_is_named(client, argument, told):
    with pytest.raises(TypeError, match=told):
        client.translate(["ja"], **DE_EN, **argument)


def test_window_of_the_wrong_type_is_named(client):
    with pytest.raises(TypeError, match="window is str, not int"):
        client.translate_stream([(0, "ja")], **DE_EN, window="8")


def test_timeout_that_is_no_number_is_refused(client):
    with pytest.raises(dragoman.InvalidRequestError, match="timeout_seconds is nan"):
        client.translate(["ja"], **DE_EN, timeout_seconds=float("nan"))


@pytest.mark.parametrize("address", ["localhost:0", "localhost:65536", "grpcs://localhost:65536"])
def test_port_that_is_none_is_refused(address):
    with pytest.raises(dragoman.InvalidRequestError, match=r"port (0|65536); a port is 1 to 65535"):
        Client(address)


def test_every_call_after_closing_says_so(client):
    client.close()
    for call in (
        lambda: client.translate(["ja"], **DE_EN),
        lambda: next(client.translate_stream([(0, "ja")], **DE_EN)),
        client.models,
        lambda: client.model("de-en"),
        client.health,
    ):
        with pytest.raises(dragoman.ClientClosedError, match="the client is closed"):
            call()


def test_url_in_place_of_an_address_is_refused():
    with pytest.raises(dragoman.InvalidRequestError, match="'localhost' has no port; write HOST:PORT"):
        Client("localhost")
    with pytest.raises(dragoman.InvalidRequestError, match="'localhost' has no port; write HOST:PORT"):
        Client("grpcs://localhost")
    with pytest.raises(dragoman.InvalidRequestError, match="grpcs://HOST:PORT for TLS"):
        Client("http://localhost:50051")


def test_call_is_tried_again_while_the_server_is_unavailable(client, server):
    server.servicer.failures.extend([server.status("UNAVAILABLE")] * 2)
    assert client.translate(["ja"], **DE_EN)[0].text == "JA"
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
    with (
        Client(server.address, timeout_seconds=20, patience_seconds=0) as client,
        pytest.raises(dragoman.UnavailableError) as caught,
    ):
        client.translate([f"text {number}" for number in range(600)], **DE_EN)
    done = caught.value.translations
    assert list(done) == list(range(512))
    assert done[511].text == "TEXT 511"


def test_nobody_waits_past_a_deadline_or_beyond_patience():
    asks = dragoman.UnavailableError("it drains", retry_after_seconds=3)
    assert Patience(30).wait_seconds(asks, None) == 3
    assert Patience(30).wait_seconds(asks, 2.9) is None
    assert Patience(2.9).wait_seconds(asks, None) is None
    patience, failed = Patience(30), dragoman.UnavailableError("it is gone")
    assert [patience.wait_seconds(failed, None) for _ in range(6)] == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    patience.renew()
    assert patience.wait_seconds(failed, None) == 0.2


def test_bad_text_leaves_the_translations_of_those_before(client, server):
    with pytest.raises(dragoman.InvalidRequestError) as caught:
        client.translate(["ja"] * 512 + ["!"], **DE_EN)
    assert list(caught.value.translations) == list(range(512))


def test_absent_server_is_told_at_once_and_with_nothing_done(client, server):
    server.stop()
    with pytest.raises(dragoman.UnavailableError) as caught:
        client.translate(["ja"] * 600, **DE_EN)
    assert caught.value.translations == {}
    server.start()


def test_large_request_is_tried_again_too(client, server):
    server.servicer.failures.append(server.status("UNAVAILABLE"))
    text = "a" * (1 << 20)
    assert client.translate([text], **DE_EN)[0].text == text.upper()


@pytest.mark.parametrize(
    "code", ["RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN"]
)
def test_nothing_but_unavailable_is_tried_again(client, server, code):
    server.servicer.failures.append(server.status(code))
    with pytest.raises(dragoman.DragomanError):
        client.translate(["ja"], **DE_EN)
    assert len(server.servicer.requests) == 1


def test_absent_server_is_unavailable(server):
    server.stop()
    with Client(server.address) as client, pytest.raises(dragoman.UnavailableError, match=server.address):
        client.translate(["ja"], **DE_EN)
    server.start()


def test_client_finds_a_server_that_came_back(client, server):
    client.translate(["ja"], **DE_EN)
    server.stop()
    server.start()
    assert client.translate(["ja"], **DE_EN)[0].text == "JA"


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
def test_every_status_has_its_error(client, server, code, kind):
    server.servicer.failures.extend([server.status(code, "what went wrong")] * 5)
    with pytest.raises(dragoman.DragomanError, match="what went wrong") as call:
        client.translate(["ja"], **DE_EN)
    (item,) = client_results(client, server, [f"!{code}"])
    for error in (call.value, item.error):
        assert type(error) is kind
        assert error.status == code


def client_results(client, server, texts, **options):
    server.servicer.failures.clear()
    return list(client.translate_stream(enumerate(texts), **DE_EN, **options))


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
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as interrupted:
        client.translate(["ja"] * count, **DE_EN)
    thread.join()
    # The client's own limit for the call is longer, and the error's trace keeps the call in memory.
    assert server.servicer.call_ended.wait(10)
    del interrupted


def test_stream_gives_each_text_its_result_under_the_callers_id(client, server):
    server.servicer.reorders = True
    pairs = [(("any", "id"), "ja"), ("twice", "nein"), ("twice", "!INTERNAL")]
    results = {
        (result.id, result.translation and result.translation.text)
        for result in client.translate_stream(pairs, **DE_EN)
    }
    assert results == {(("any", "id"), "JA"), ("twice", "NEIN"), ("twice", None)}


@pytest.mark.parametrize("in_order", [True, False])
def test_stream_keeps_the_order_where_it_is_asked_to(client, server, in_order):
    server.servicer.reorders = True
    results = client_results(client, server, [f"text {number}" for number in range(101)], in_order=in_order)
    assert ([result.id for result in results] == list(range(101))) is in_order
    assert sorted(result.id for result in results) == list(range(101))


def test_bad_text_of_a_stream_harms_no_other(client, server):
    results = client_results(client, server, ["a", "!INVALID_ARGUMENT x", "b"], in_order=True)
    assert [result.translation and result.translation.text for result in results] == ["A", None, "B"]
    assert isinstance(results[1].error, dragoman.InvalidRequestError)


def test_text_that_cannot_travel_fails_alone_in_a_stream(client):
    results = list(client.translate_stream(enumerate(["ja", "a\ud800", "nein"]), **DE_EN, in_order=True))
    assert [result.id for result in results] == [0, 1, 2]
    assert [result.translation and result.translation.text for result in results] == ["JA", None, "NEIN"]
    assert "code point 1" in str(results[1].error)


def test_a_language_that_cannot_travel_is_named(client):
    with pytest.raises(dragoman.InvalidRequestError, match="source has a lone surrogate"):
        client.translate(["ja"], source="\udcff", target="en")


def test_a_timeout_without_end_is_none(client):
    (result,) = client.translate_stream([(0, "ja")], **DE_EN, timeout_seconds=1e300)
    assert result.translation.text == "JA"
    (translation,) = client.translate(["ja"], **DE_EN, timeout_seconds=float("inf"))
    assert translation.text == "JA"


def test_loopback_is_reached_past_a_proxy(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for name in ("no_proxy", "no_grpc_proxy", "grpc_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with dragoman.Client(server.address, timeout_seconds=20) as client:
        (translation,) = client.translate(["ja"], **DE_EN)
    assert translation.text == "JA"


def test_bare_texts_are_no_stream(client):
    # Two characters would pass for an id and a text.
    with pytest.raises(TypeError, match=r"pairs \(id, text\), not texts: write enumerate\(texts\); got 'ja'"):
        list(client.translate_stream(["ja", "nein"], **DE_EN))


@pytest.mark.parametrize("texts_per_message", [1, 4, 64])
def test_stream_reads_no_further_ahead_than_its_window(client, texts_per_message):
    read = []

    def texts():
        for number in range(1000):
            read.append(number)
            yield number, "ja"

    stream = client.translate_stream(texts(), **DE_EN, window=10, texts_per_message=texts_per_message)
    for taken in range(1, 50):
        next(stream)
        assert len(read) <= taken + 10
    stream.close()


@pytest.mark.parametrize("joins", [False, True])
def test_texts_that_are_at_hand_share_messages(client, server, joins, monkeypatch):
    monkeypatch.setattr("dragoman.feed.MAX_MESSAGE_BYTES", 30)
    server.servicer.joins = server.servicer.reorders = joins
    texts = ["eins", "zwei", "drei", "vier", "x" * 26, "y", "ü" * 16, "", "acht", "z" * 26, "zehn"]
    stream = client.translate_stream(enumerate(texts), **DE_EN, in_order=True, texts_per_message=3)
    results = list(stream)
    assert [result.id for result in results] == list(range(11))
    assert [result.translation.text for result in results] == [text.upper() for text in texts]
    assert server.servicer.messages == [
        ["eins", "zwei", "drei"],
        ["vier", "x" * 26],
        ["y"],
        ["ü" * 16],
        ["", "acht", "z" * 26],
        ["zehn"],
    ]
    assert server.servicer.configs[0].join_results


def test_texts_before_one_that_cannot_be_read_are_sent(client, server):
    def texts():
        yield from enumerate(["ja", "nein"])
        raise OSError("disk is gone")

    stream = client.translate_stream(texts(), **DE_EN, texts_per_message=8)
    assert [next(stream).id, next(stream).id] == [0, 1]
    with pytest.raises(OSError, match="disk is gone"):
        next(stream)
    assert server.servicer.messages == [["ja", "nein"]]


def test_a_message_of_a_stream_has_no_more_texts_than_servers_take(client, server):
    stream = client.translate_stream(
        enumerate([""] * 5000), **DE_EN, in_order=True, window=10_000, texts_per_message=10_000
    )
    assert len(list(stream)) == 5000
    assert [len(message) for message in server.servicer.messages] == [4096, 904]


@pytest.mark.parametrize("texts_per_message", [1, 8])
def test_leaving_a_stream_early_ends_its_threads(client, texts_per_message):
    before = threading.active_count()
    pairs = enumerate(["ja"] * 1000)
    stream = client.translate_stream(pairs, **DE_EN, window=8, texts_per_message=texts_per_message)
    next(stream)
    assert threading.active_count() > before
    stream.close()
    deadline = time.monotonic() + 10
    while {thread.name for thread in threading.enumerate() if "(_run)" in thread.name}:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_reading_the_texts_raises_comes_after_the_results_before_it(client):
    def texts():
        yield 0, "ja"
        yield 1, "nein"
        raise OSError("disk is gone")

    stream = client.translate_stream(texts(), **DE_EN)
    assert [next(stream).id, next(stream).id] == [0, 1]
    with pytest.raises(OSError, match="disk is gone"):
        next(stream)


def test_stream_that_breaks_is_unavailable(client, server):
    server.servicer.disconnects.append(3)
    stream = client.translate_stream(enumerate(["ja"] * 100), **DE_EN, in_order=True)
    assert [next(stream).id for _ in range(3)] == [0, 1, 2]
    with pytest.raises(dragoman.UnavailableError, match="going away"):
        next(stream)


def test_stream_is_not_tried_again(client, server):
    server.servicer.failures.append(server.status("UNAVAILABLE"))
    with pytest.raises(dragoman.UnavailableError, match="scripted"):
        next(client.translate_stream(enumerate(["ja", "nein"]), **DE_EN))
    assert client_results(client, server, ["ja"])[0].translation.text == "JA"


SILENT_SERVER = """
import sys, threading, grpc
from concurrent.futures import ThreadPoolExecutor
from dragoman.v1 import translation_pb2_grpc as pb_grpc

class Silent(pb_grpc.TranslationServiceServicer):
    def TranslateStream(self, requests, context):
        for _ in requests:
            print("took a message", flush=True)
        threading.Event().wait()

server = grpc.server(ThreadPoolExecutor(1))
pb_grpc.add_TranslationServiceServicer_to_server(Silent(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


def test_stream_whose_server_is_killed_before_its_first_result_ends():
    """The texts have not ended: like standard input, or a file longer than the window."""
    texts_end = threading.Event()

    def texts():
        yield 0, "ja"
        texts_end.wait()

    with subprocess.Popen([sys.executable, "-c", SILENT_SERVER], stdout=subprocess.PIPE) as process:
        port = int(process.stdout.readline())
        with Client(f"127.0.0.1:{port}") as client, ThreadPoolExecutor(1) as reader:
            stream = client.translate_stream(texts(), **DE_EN)
            first = reader.submit(next, stream)
            process.stdout.readline()
            process.kill()
            try:
                with pytest.raises(dragoman.UnavailableError):
                    first.result(timeout=20)
            finally:
                texts_end.set()
                client.close()


def test_models_are_described(client):
    (listed,) = client.models(source="de", target="en")
    assert listed == client.model("de-en")
    assert (str(listed.reference), listed.parameters, listed.precision) == ("de-en/1", 10_300_000, "int8")
    assert listed.defaults.beam_size == 5
    assert listed.defaults.num_hypotheses is None
    assert listed.defaults.length_policy == "split"
    assert listed.quality[0].score == 45.5
    assert [each.shortlist for each in listed.quality] == [True, True, True, None]
    assert listed.quality[0].length_penalty == pytest.approx(0.6)
    assert listed.quality[-1].length_penalty is None
    assert listed.providers["encoder"] == "CPUExecutionProvider"
    # As a server's that does not tell.
    assert listed.loaded


def test_health_tells_of_now(client, server):
    assert client.health()
    server.health.set("", 2)
    assert not client.health()
    with pytest.raises(dragoman.ModelNotFoundError, match=r"the server has no service 'no\.such\.Service'"):
        client.health("no.such.Service")
    server.stop()
    with pytest.raises(dragoman.UnavailableError):
        client.health()
    server.start()


def test_credentials_turn_on_tls(server):
    client = Client(server.address, credentials=grpc.ssl_channel_credentials(), timeout_seconds=5)
    with client, pytest.raises(dragoman.UnavailableError, match=r"(?i)ssl|handshake"):
        client.translate(["ja"], **DE_EN)


def test_version_is_the_distributions():
    assert dragoman.__version__ == importlib.metadata.version("dragoman")


def test_public_names_are_frozen():
    assert sorted(dragoman.__all__) == dragoman.__all__
    assert set(dragoman.__all__) == {
        "AlignedTexts",
        "DetectedLanguage",
        "LanguageCandidate",
        "Alignment",
        "AsyncClient",
        "AuthenticationError",
        "CallCancelledError",
        "Client",
        "ClientClosedError",
        "DeadlineExceededError",
        "DecodingDefaults",
        "DragomanError",
        "FieldViolation",
        "FinishReason",
        "Glossary",
        "Hypothesis",
        "InvalidRequestError",
        "LengthPolicy",
        "Model",
        "ModelNotFoundError",
        "ModelReference",
        "OverloadedError",
        "Priority",
    "ProtectedText",
        "Quality",
        "Segmentation",
        "ServerError",
        "Settings",
        "StreamResult",
        "TextFormat",
        "Timings",
        "Translation",
        "TranslationWarning",
        "UnavailableError",
        "UnsupportedError",
        "WarningKind",
    }  # fmt: skip

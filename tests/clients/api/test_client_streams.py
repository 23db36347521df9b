"""Streams of the client: their order, their window, their end."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.clients.conftest import client_results

import dragoman
from dragoman import Client

DE_EN = {"source": "de", "target": "en"}


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
    texts = ["a", "!INVALID_ARGUMENT x", "a\ud800", "b"]
    results = client_results(client, server, texts, in_order=True)
    assert [result.translation and result.translation.text for result in results] == ["A", None, None, "B"]
    assert all(isinstance(result.error, dragoman.InvalidRequestError) for result in results[1:3])
    assert "code point 1" in str(results[2].error)


def test_bare_texts_are_no_stream_and_a_language_that_cannot_travel_is_named(client):
    with pytest.raises(dragoman.InvalidRequestError, match="source has a lone surrogate"):
        client.translate(["ja"], source="\udcff", target="en")
    # Two characters would pass for an id and a text.
    with pytest.raises(TypeError, match=r"pairs \(id, text\), not texts: write enumerate\(texts\); got 'ja'"):
        list(client.translate_stream(["ja", "nein"], **DE_EN))


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
    monkeypatch.setattr("dragoman.stream.MAX_MESSAGE_BYTES", 30)
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


@pytest.mark.parametrize("texts_per_message", [1, 8])
def test_what_reading_the_texts_raises_comes_after_the_results_before_it(client, server, texts_per_message):
    def texts():
        yield from enumerate(["ja", "nein"])
        raise OSError("disk is gone")

    stream = client.translate_stream(texts(), **DE_EN, texts_per_message=texts_per_message)
    assert [next(stream).id, next(stream).id] == [0, 1]
    with pytest.raises(OSError, match="disk is gone"):
        next(stream)
    assert server.servicer.messages == ([["ja"], ["nein"]] if texts_per_message == 1 else [["ja", "nein"]])


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

"""The blocking client against a real server, and arguments that it refuses, each by its name."""

import importlib.metadata
from typing import get_type_hints

import grpc
import pytest

import dragoman
from dragoman import Client, FinishReason, messages, portions
from dragoman.settings import Options

DE_EN = {"source": "de", "target": "en"}


def test_translations_come_one_to_one_with_texts(client, server):
    translations = client.translate(["guten morgen", "", "  \n", "ja"], **DE_EN)
    assert [translation.text for translation in translations] == ["GUTEN MORGEN", "", "  \n", "JA"]
    assert [len(translation.hypotheses) for translation in translations] == [1, 0, 0, 1]
    server.servicer.requests.clear()
    assert client.translate([], **DE_EN) == []
    assert server.servicer.requests == []


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
        formality="informal",
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
    assert full.options.formality == messages.pb.FORMALITY_INFORMAL
    assert full.segmentation == messages.pb.SEGMENTATION_LINE
    assert full.priority == messages.pb.PRIORITY_BULK
    assert full.return_alignments


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
    server.servicer.max_queue = 10
    with pytest.raises(dragoman.OverloadedError):
        client.translate(["ja"] * 1000, **DE_EN)
    assert server.servicer.max_in_flight == 0, "others fill it"
    server.servicer.max_queue = portions.MAX_REQUEST_TEXTS
    texts = [f"text {number}" for number in range(1000)]
    translations = client.translate(texts, **DE_EN)
    assert [translation.text for translation in translations] == [text.upper() for text in texts]
    assert server.servicer.max_in_flight == 1


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
    assert dragoman.__all__ == [
        "AlignedTexts", "Alignment", "AsyncClient", "AuthenticationError", "CallCancelledError", "Client",
        "ClientClosedError", "DeadlineExceededError", "DecodingDefaults", "DetectedLanguage",
        "DragomanError", "FieldViolation", "FinishReason", "Glossary", "Hypothesis",
        "InvalidRequestError", "LanguageCandidate", "LengthPolicy", "Model", "ModelNotFoundError",
        "ModelReference", "OverloadedError", "Priority", "ProtectedText", "Quality", "Segmentation",
        "SentenceConfidence", "ServerError", "Settings", "StreamResult", "TextFormat", "Timings",
        "Translation", "TranslationWarning", "UnavailableError", "UnsupportedError", "WarningKind",
    ]  # fmt: skip


def test_bad_text_is_named_by_its_place_in_the_call(client):
    texts = ["ja"] * 700
    texts[600] = "!"
    with pytest.raises(dragoman.InvalidRequestError) as caught:
        client.translate(texts, **DE_EN)
    assert str(caught.value) == "texts[600]: starts with !, unlike texts[0]"
    assert [violation.field for violation in caught.value.violations] == ["texts[600]"]
    with pytest.raises(dragoman.InvalidRequestError, match="too long"):
        client.translate(["a" * (5 << 20)], **DE_EN)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda own: own.translate(b"Guten Morgen.", **DE_EN), r"write \[b'Guten Morgen.'\]"),
        (lambda own: own.detect("Guten Morgen."), r"write \['Guten Morgen.'\]"),
        (lambda own: own.translate(["ja", 3], **DE_EN), r"texts\[1\] is int, not str"),
        (lambda own: own.translate(["ja"], **DE_EN, beam_size="3"), "beam_size is str, not int"),
        (lambda own: own.translate(["ja"], **DE_EN, length_penalty="1"), "length_penalty is str, not float"),
        (lambda own: own.translate(["ja"], **DE_EN, timeout_seconds="5"), "timeout_seconds is str, not flo"),
        (lambda own: own.translate_stream([(0, "ja")], **DE_EN, window="8"), "window is str, not int"),
        (lambda own: own.translate([], **DE_EN, beams=3), "beams"),
        (lambda own: own.translate_stream([], **DE_EN, beams=3), "beams"),
    ],
)
def test_argument_of_the_wrong_type_or_name_is_told(client, call, told):
    with pytest.raises(TypeError, match=told):
        call(client)


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
        ("timeout_seconds", float("nan")),
    ],
)
def test_option_that_cannot_be_meant_is_refused_with_its_name(client, option, value):
    with pytest.raises(dragoman.InvalidRequestError, match=option) as caught:
        client.translate(["ja"], **DE_EN, **{option: value})
    assert caught.value.violations[0].field == option
    if option == "priority":
        with pytest.raises(dragoman.InvalidRequestError, match="priority is 'urgent'; it must be one of"):
            client.align([("ja", "yes")], **DE_EN, priority=value)


def test_calls_take_every_option_of_the_settings():
    of_settings = get_type_hints(dragoman.Settings)
    assert get_type_hints(Options) == {name: of_settings[name] for name in of_settings if name not in DE_EN}


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("localhost:0", "port 0; a port is 1 to 65535"),
        ("grpcs://localhost:65536", "port 65536; a port is 1 to 65535"),
        ("localhost", "'localhost' has no port; write HOST:PORT"),
        ("grpcs://localhost", "'localhost' has no port; write HOST:PORT"),
        ("http://localhost:50051", "grpcs://HOST:PORT for TLS"),
    ],
)
def test_address_that_is_none_is_refused(address, told):
    with pytest.raises(dragoman.InvalidRequestError, match=told):
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

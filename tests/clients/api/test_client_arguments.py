"""Arguments of the client that are refused, each by its name."""

from typing import get_type_hints

import pytest

import dragoman
from dragoman import Client
from dragoman.settings import Options

DE_EN = {"source": "de", "target": "en"}


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


def test_one_string_in_place_of_a_list_is_told_how_to_write_it(client):
    with pytest.raises(TypeError, match=r"write \[b'Guten Morgen.'\]"):
        client.translate(b"Guten Morgen.", **DE_EN)
    with pytest.raises(TypeError, match=r"write \['Guten Morgen.'\]"):
        client.detect("Guten Morgen.")


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


def test_a_priority_of_linking_that_cannot_be_meant_is_refused_with_its_name(client):
    with pytest.raises(dragoman.InvalidRequestError, match="priority is 'urgent'; it must be one of"):
        client.align([("ja", "yes")], **DE_EN, priority="urgent")


def test_calls_take_every_option_of_the_settings():
    of_settings = get_type_hints(dragoman.Settings)
    assert get_type_hints(Options) == {name: of_settings[name] for name in of_settings if name not in DE_EN}


def test_an_option_that_does_not_exist_is_refused_by_its_name(client):
    for call in (client.translate, client.translate_stream):
        with pytest.raises(TypeError, match="beams"):
            call([], **DE_EN, beams=3)


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

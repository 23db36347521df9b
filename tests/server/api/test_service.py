"""Translate, ListModels and GetModel over a real port; the model copies its input."""

import asyncio
import threading
import time
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from dragoman_bundle import Bundle
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.conftest import RunningServer, StartServer
from tests.server.copying_bundle import MANIFEST, write_bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.config import EngineConfig, RequestLimits
from dragoman_server.engine import Priority, Sentence, SentenceResult
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.service import core
from dragoman_server.text import translator
from dragoman_server.text.document import Document
from dragoman_server.text.options import TranslationOptions

GERMAN = {"source_language": "de", "target_language": "en"}


async def translate(running: RunningServer, *texts: str, **fields: object) -> list[pb.Translation]:
    request = pb.TranslateRequest(texts=texts, **(GERMAN | fields))
    return list((await running.stub.Translate(request)).translations)


async def failure(call: grpc.aio.UnaryUnaryCall) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def detail(error: grpc.aio.AioRpcError, message: error_details_pb2.ErrorInfo) -> object:
    """The detail of that type in the error's rich status."""
    status = rpc_status.from_call(_Ended(error))
    assert status is not None
    found = [item for item in status.details if item.Unpack(message)]
    assert found, f"{status} has no {message.DESCRIPTOR.name}"
    return message


class _Ended:
    """An error as the call that grpc_status wants."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        self.code, self.details, self.trailing_metadata = error.code, error.details, error.trailing_metadata


async def violated_fields(running: RunningServer, request: pb.TranslateRequest) -> list[str]:
    error = await failure(running.stub.Translate(request))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    bad_request = detail(error, error_details_pb2.BadRequest())
    for violation in bad_request.field_violations:
        assert violation.field in error.details()
        assert violation.description in error.details()
    return [violation.field for violation in bad_request.field_violations]


async def test_translations_come_one_to_one_with_their_white_space(running: RunningServer) -> None:
    texts = ["Guten Morgen.", "  Eins. Zwei.\r\n\r\nDrei!\n", "", " \n\t", "Ende"]
    response = await running.stub.Translate(pb.TranslateRequest(texts=texts, **GERMAN))
    assert [item.text for item in response.translations] == [texts[0], texts[1], "", "", "Ende"]
    assert [item.sentences for item in response.translations] == [1, 3, 0, 0, 1]
    assert [len(item.hypotheses) for item in response.translations] == [1, 1, 0, 0, 1]
    assert (response.model.name, response.model.version) == ("de-en", "1")


async def test_tokens_and_times_are_told(running: RunningServer) -> None:
    (translation,) = await translate(running, "Ja. Nein.")
    # A token a character, one for the space before, one for the end.
    assert translation.source_tokens == (1 + 3 + 1) + (1 + 5 + 1)
    assert translation.target_tokens == translation.source_tokens
    assert translation.timings.decode.ToTimedelta().total_seconds() > 0
    assert not translation.split
    assert not translation.truncated


async def test_no_texts_have_no_translations(running: RunningServer) -> None:
    assert await translate(running) == []


async def test_hypotheses_come_best_first(running: RunningServer) -> None:
    (translation,) = await translate(
        running, "Ja. Nein.", options=pb.DecodingOptions(beam_size=4, num_hypotheses=3)
    )
    scores = [hypothesis.score for hypothesis in translation.hypotheses]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert translation.text == translation.hypotheses[0].text == "Ja. Nein."
    assert len({hypothesis.text for hypothesis in translation.hypotheses}) == 3
    assert translation.hypotheses[0].finish_reason == pb.FINISH_REASON_STOP


async def test_scores_of_sentences_are_summed(running: RunningServer) -> None:
    both, first, second = await translate(running, "Ja. Nein.", "Ja.", "Nein.")
    summed = first.hypotheses[0].score + second.hypotheses[0].score
    assert both.hypotheses[0].score == pytest.approx(summed, abs=1e-6)


async def test_alignments_are_offsets_into_the_whole_texts(running: RunningServer) -> None:
    text = "\n  Das Haus.\n Ä😀ß ja."
    (translation,) = await translate(running, text, return_alignments=True)
    copied = translation.text
    links = [
        (text[link.source_start : link.source_end], copied[link.target_start : link.target_end])
        for link in translation.hypotheses[0].alignments
    ]
    assert links[:3] == [("Das", "Das"), ("Haus", "Haus"), (".", ".")]
    assert links[-2:] == [("ja", "ja"), (".", ".")]
    # The model's word for a character it does not know, at its place.
    assert links[3][0] == "Ä😀ß"
    assert all(link.weight == pytest.approx(1.0) for link in translation.hypotheses[0].alignments)


async def test_attention_on_what_a_token_that_is_read_comes_from_is_a_step_late(
    start_server: StartServer, tmp_path: Path
) -> None:
    write_bundle(tmp_path, manifest=replace(MANIFEST, attention_of_input=True))
    running = await start_server(models=tmp_path)
    (translation,) = await translate(running, "Das!", return_alignments=True)
    copied = translation.text
    links = {
        (
            "Das!"[link.source_start : link.source_end],
            copied[link.target_start : link.target_end],
        ): link.weight
        for link in translation.hypotheses[0].alignments
    }
    # It looks at the character that it copies next: behind the last one there is the end.
    assert links.keys() == {("Das", "Das"), ("!", "Das")}
    assert links["Das", "Das"] > links["!", "Das"] == pytest.approx(1 - links["Das", "Das"])


async def test_alignments_come_only_where_asked_for(running: RunningServer) -> None:
    (translation,) = await translate(running, "Das Haus.")
    assert not translation.hypotheses[0].alignments


async def test_the_limit_of_output_tokens_ends_a_sentence(running: RunningServer) -> None:
    (translation,) = await translate(running, "Ja. Guten Morgen.", options={"max_output_tokens": 5})
    assert translation.text == "Ja. Gute"
    assert translation.hypotheses[0].finish_reason == pb.FINISH_REASON_LENGTH


async def test_the_servers_limit_of_output_tokens_holds_by_default_too(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_output_tokens=5))
    (translation,) = await translate(running, "Ja. Guten Morgen.")
    assert translation.text == "Ja. Gute"
    assert translation.hypotheses[0].finish_reason == pb.FINISH_REASON_LENGTH


async def test_a_target_prefix_begins_the_first_sentence(running: RunningServer) -> None:
    (translation,) = await translate(running, "Ja. Nein.", options={"target_prefix": "No"})
    assert translation.text == "No. Nein."


async def test_a_target_prefix_may_hold_what_shows_nothing(running: RunningServer) -> None:
    (translation,) = await translate(running, "Ja. Nein.", options={"target_prefix": "N\u00ado\u2060"})
    assert translation.text == "No. Nein."


async def test_what_shows_nothing_is_not_translated_and_counts_in_offsets(running: RunningServer) -> None:
    text = "\ufeffGu\u00adten \u2068Morgen\u2069.  Scho\u0308n\u200b."
    (translation,) = await translate(running, text, return_alignments=True)
    assert translation.text == "Guten Morgen.  Schön."
    words = {
        text[link.source_start : link.source_end]: translation.text[link.target_start : link.target_end]
        for link in translation.hypotheses[0].alignments
    }
    assert (
        words.items()
        >= {
            "Gu\u00adten": "Guten",
            "Morgen": "Morgen",
            "Scho\u0308n": "Schön",
        }.items()
    )


async def test_lines_are_units_where_asked(running: RunningServer) -> None:
    (translation,) = await translate(running, "Eins. Zwei.\nDrei.", segmentation=pb.SEGMENTATION_LINE)
    assert translation.sentences == 2
    assert translation.text == "Eins. Zwei.\nDrei."


async def test_what_holds_no_letter_is_its_own_translation(running: RunningServer) -> None:
    texts = [" 12345 ", "---", "😀", "1. 2.\n3."]
    response = await running.stub.Translate(
        pb.TranslateRequest(texts=texts, options={"target_prefix": "No"}, return_alignments=True, **GERMAN)
    )
    assert [item.text for item in response.translations] == texts
    assert [item.sentences for item in response.translations] == [0] * 4
    assert not any(item.hypotheses for item in response.translations)


@pytest.mark.parametrize("text", ["1. Ja.\n---\n2. Nein.", "- Ja.\n  * \n  •\tNein.", "- 1. Ja.\n- 2. Nein."])
async def test_what_is_no_sentence_stays_around_sentences(running: RunningServer, text: str) -> None:
    (translation,) = await translate(running, text, options={"target_prefix": "No"}, return_alignments=True)
    assert translation.text == text.replace("Ja", "No")
    assert translation.sentences == 2
    link = translation.hypotheses[0].alignments[-2]
    assert text[link.source_start : link.source_end] == "Nein"
    assert translation.text[link.target_start : link.target_end] == "Nein"


async def test_a_long_sentence_is_split_by_default(running: RunningServer) -> None:
    text = "Es war spät, der Laden war geschlossen, und wir gingen nach Hause, denn es war kalt."
    (translation,) = await translate(running, text, return_alignments=True)
    assert translation.text == text
    assert translation.split
    assert not translation.truncated
    assert translation.sentences == 2
    assert all(
        (link.source_start, link.source_end) == (link.target_start, link.target_end)
        for link in translation.hypotheses[0].alignments
    )


async def test_a_long_sentence_is_truncated_where_asked(running: RunningServer) -> None:
    text = "wort " * 20 + "ende."
    (translation,) = await translate(
        running, text, options={"length_policy": pb.LENGTH_POLICY_TRUNCATE}, return_alignments=True
    )
    assert translation.truncated
    assert not translation.split
    assert text.startswith(translation.text)
    assert translation.source_tokens == 64
    # The last word was cut within: 62 characters and the space before them make 63 tokens, the end one more.
    link = translation.hypotheses[0].alignments[-1]
    assert (link.source_start, link.source_end, link.target_end) == (60, 64, 62)


async def test_a_long_sentence_is_refused_where_asked(running: RunningServer) -> None:
    options = pb.DecodingOptions(length_policy=pb.LENGTH_POLICY_REJECT)
    request = pb.TranslateRequest(texts=["Kurz.", "wort " * 20], options=options, **GERMAN)
    assert await violated_fields(running, request) == ["texts[1]"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"beam_size": 0}, "options.beam_size"),
        ({"beam_size": 1000}, "options.beam_size"),
        ({"num_hypotheses": 0}, "options.num_hypotheses"),
        ({"beam_size": 2, "num_hypotheses": 3}, "options.num_hypotheses"),
        ({"length_penalty": -1.0}, "options.length_penalty"),
        ({"length_penalty": float("nan")}, "options.length_penalty"),
        ({"length_penalty": 1e30}, "options.length_penalty"),
        ({"max_output_tokens": 0}, "options.max_output_tokens"),
        ({"max_output_tokens": 1_000_000}, "options.max_output_tokens"),
        ({"max_output_tokens": 3, "target_prefix": "abcdef"}, "options.target_prefix"),
        ({"length_policy": 77}, "options.length_policy"),
    ],
)
async def test_an_option_out_of_bounds_is_named(
    running: RunningServer, options: dict[str, object], field: str
) -> None:
    request = pb.TranslateRequest(texts=["Ja."], options=pb.DecodingOptions(**options), **GERMAN)
    assert await violated_fields(running, request) == [field]


async def test_all_that_is_wrong_is_told_at_once(running: RunningServer) -> None:
    request = pb.TranslateRequest(
        texts=["Ja.", "x" * 501], options=pb.DecodingOptions(beam_size=0, length_penalty=-1), **GERMAN
    )
    assert await violated_fields(running, request) == [
        "texts[1]",
        "options.beam_size",
        "options.length_penalty",
    ]


@pytest.mark.parametrize(
    ("prefix", "max_output_tokens", "words"),
    [
        ("x" * 4001, None, "a prefix takes 4000; shorten it"),
        ("x" * 1200, None, "it must have fewer than max_output_tokens, 1024; shorten it"),
        (
            "x",
            1,
            "has 2 tokens, and it must have fewer than max_output_tokens, 1; shorten it, or raise that",
        ),
        ("No 日", None, "characters that the model cannot write; leave them out"),
    ],
)
async def test_a_target_prefix_that_no_translation_can_begin_with_is_refused(
    running: RunningServer, prefix: str, max_output_tokens: int | None, words: str
) -> None:
    options = pb.DecodingOptions(target_prefix=prefix, max_output_tokens=max_output_tokens)
    request = pb.TranslateRequest(texts=["Ja."], options=options, **GERMAN)
    assert await violated_fields(running, request) == ["options.target_prefix"]
    assert (await failure(running.stub.Translate(request))).details().endswith(words)


async def test_of_very_many_violations_the_first_are_told(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_texts=1000, max_text_characters=10))
    request = pb.TranslateRequest(texts=["x" * 11] * 1000, **GERMAN)
    assert await violated_fields(running, request) == [f"texts[{index}]" for index in range(8)]
    assert (await failure(running.stub.Translate(request))).details().endswith("; and 992 more")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"model": "é" * 10_000}, grpc.StatusCode.NOT_FOUND),
        ({"source_language": "é" * 10_000, "target_language": "é" * 10_000}, grpc.StatusCode.NOT_FOUND),
        ({"model": "de-en", "source_language": "é" * 10_000}, grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_a_name_beyond_measure_is_repeated_in_part(
    running: RunningServer, fields: dict[str, str], code: grpc.StatusCode
) -> None:
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **fields)))
    assert error.code() is code
    assert detail(error, error_details_pb2.ErrorInfo()).reason
    assert "é…'" in error.details()


async def test_an_unknown_priority_is_named(running: RunningServer) -> None:
    request = pb.TranslateRequest(texts=["Ja."], priority=9, **GERMAN)
    assert await violated_fields(running, request) == ["priority"]


async def test_an_unknown_segmentation_is_named(running: RunningServer) -> None:
    request = pb.TranslateRequest(texts=["Ja."], segmentation=9, **GERMAN)
    assert await violated_fields(running, request) == ["segmentation"]


async def test_ten_thousand_texts_are_refused(running: RunningServer) -> None:
    request = pb.TranslateRequest(texts=["Ja."] * 10_000, **GERMAN)
    assert await violated_fields(running, request) == ["texts"]


async def test_a_message_over_the_limit_is_refused(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_message_bytes=1000))
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["x" * 2000], **GERMAN)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await translate(running, "Ja.")


async def test_an_answer_may_be_larger_than_a_request(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_message_bytes=1000))
    assert len(await translate(running, *["Ja."] * 60)) == 60


async def test_languages_are_required_without_a_model(running: RunningServer) -> None:
    request = pb.TranslateRequest(texts=["Ja."])
    assert await violated_fields(running, request) == ["source_language", "target_language"]


async def test_an_unknown_language_pair_names_those_there_are(running: RunningServer) -> None:
    request = pb.TranslateRequest(texts=["Ja."], source_language="xx", target_language="en")
    error = await failure(running.stub.Translate(request))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert "'xx'" in error.details()
    assert "de-en" in error.details()
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "MODEL_NOT_FOUND"


@pytest.mark.parametrize(
    ("source", "target"), [("de-DE", "en-GB"), ("de_DE", "eng"), (" deu ", "EN"), ("ger", "en-US")]
)
async def test_the_closest_model_answers_and_tells_its_languages(
    running: RunningServer, source: str, target: str
) -> None:
    expected = pb.ModelReference(name="de-en", version="1", source_language="de", target_language="en")
    for model in ("", "de-en"):
        request = pb.TranslateRequest(
            texts=["Ja."], source_language=source, target_language=target, model=model
        )
        assert (await running.stub.Translate(request)).model == expected


async def test_white_space_is_no_language(running: RunningServer) -> None:
    request = pb.TranslateRequest(texts=["Ja."], source_language=" ", target_language="en")
    assert await violated_fields(running, request) == ["source_language"]


@pytest.mark.parametrize("model", ["de-en", "de-en/1"])
async def test_a_model_is_found_by_its_name(running: RunningServer, model: str) -> None:
    response = await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], model=model))
    assert response.model.version == "1"


async def test_a_model_that_is_asked_about_must_be_named(running: RunningServer) -> None:
    error = await failure(running.stub.GetModel(pb.GetModelRequest()))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.details() == "name: is required"


async def test_an_unknown_model_names_those_there_are(running: RunningServer) -> None:
    for call in (
        running.stub.Translate(pb.TranslateRequest(texts=["Ja."], model="de-en/7")),
        running.stub.GetModel(pb.GetModelRequest(name="de-en/7")),
    ):
        error = await failure(call)
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert "de-en/1" in error.details()


async def test_a_model_for_other_languages_is_refused(running: RunningServer) -> None:
    request = pb.TranslateRequest(texts=["Ja."], model="de-en", source_language="fr", target_language="EN")
    assert await violated_fields(running, request) == ["source_language"]


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "a\x00b\x01\x02\x7f",
        "\ufeff\u200b\u200f",
        "\u202eabc\u202c",
        "😀👩‍👩‍👧🏽 🇩🇪",
        "مرحبا بالعالم",
        "こんにちは世界",
        "ሰላም ᚠᚢᚦ 𓀀",
        "e\u0301\u0301\u0301" * 30,
        "\u0301",
        "\ufffd\uffff\U0010ffff",
        "ﷺ",
        "x" * 500,
    ],
)
async def test_odd_characters_have_an_answer(running: RunningServer, text: str) -> None:
    odd, neighbour = await translate(running, text, "Ja.", return_alignments=True)
    assert neighbour.text == "Ja."
    for link in odd.hypotheses[0].alignments if odd.hypotheses else []:
        assert link.source_start < link.source_end <= len(text)
        assert link.target_start < link.target_end <= len(odd.text)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_has_an_answer(sync_stub: TranslationServiceStub, text: str) -> None:
    request = pb.TranslateRequest(texts=[text], return_alignments=True, **GERMAN)
    (translation,) = sync_stub.Translate(request).translations
    has_letter = any(unicodedata.category(character).startswith("L") for character in text)
    assert bool(translation.hypotheses) <= has_letter
    if not has_letter:
        assert translation.text == (text if text.strip() else "")


async def test_invalid_unicode_on_the_wire_is_refused_and_harms_nobody(running: RunningServer) -> None:
    # Field 1, three bytes: a surrogate, which no UTF-8 holds.
    call = running.channel.unary_unary("/dragoman.v1.TranslationService/Translate")
    error = await failure(call(b"\x0a\x03\xed\xa0\x80"))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "UTF-8" in error.details()
    assert await translate(running, "Ja.")
    await running.calls_are_counted()
    assert running.metric("grpc_server_handled_total", grpc_code="INVALID_ARGUMENT") == 1


async def test_an_expired_deadline_frees_the_engine(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models)
    # Far more than a second's work, and time enough for a busy machine to begin with it.
    request = pb.TranslateRequest(texts=["wort " * 10] * 1000, **GERMAN)
    error = await failure(running.stub.Translate(request, timeout=1))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    while running.metric("dragoman_requests_total") == 0:
        await asyncio.sleep(0.01)
    await engine_is_idle(running)
    assert running.metric("dragoman_requests_total", outcome="DEADLINE_EXCEEDED") == 1
    assert running.metric("grpc_server_handled_total", grpc_code="DEADLINE_EXCEEDED") == 1


async def test_a_cancelled_call_frees_the_engine(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models)
    call = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 50, **GERMAN))
    while running.metric("dragoman_running_sentences") < 50:
        await asyncio.sleep(0.01)
    call.cancel()
    await engine_is_idle(running)
    assert running.metric("dragoman_sentences_total", outcome="cancelled") == 50
    assert running.metric("dragoman_requests_total", outcome="CANCELLED") == 1


async def engine_is_idle(running: RunningServer) -> None:
    while any(running.metric(name) for name in ("dragoman_queue_sentences", "dragoman_running_sentences")):
        await asyncio.sleep(0.01)
    await running.calls_are_counted()


async def test_a_text_of_too_many_tokens_is_refused_before_it_is_decoded(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_text_tokens=100))
    request = pb.TranslateRequest(texts=["wort", "x" * 101, "x" * 80], **GERMAN)
    error = await failure(running.stub.Translate(request))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    violations = detail(error, error_details_pb2.BadRequest()).field_violations
    assert [violation.field for violation in violations] == ["texts[1]"]
    assert "tokens, and a text takes 100; cut it up" in violations[0].description
    assert running.metric("dragoman_sentences_total") == 0
    # What is cut off costs nothing.
    truncated = pb.DecodingOptions(length_policy=pb.LENGTH_POLICY_TRUNCATE)
    assert (await translate(running, "x" * 101, options=truncated))[0].truncated


async def test_a_long_interactive_request_is_decoded_as_bulk(
    start_server: StartServer, slow_models: Path
) -> None:
    engine = EngineConfig(device="cpu", threads=1, max_rows=16)
    limits = RequestLimits(max_interactive_tokens=100)
    running = await start_server(models=slow_models, engine=engine, limits=limits)
    long = running.stub.Translate(pb.TranslateRequest(texts=["x" * 500], **GERMAN))
    short = running.stub.Translate(pb.TranslateRequest(texts=["x x"] * 20, **GERMAN))
    while not all(
        running.metric("dragoman_queue_sentences", priority=each) for each in ("bulk", "interactive")
    ):
        await asyncio.sleep(0.01)
    assert running.metric("dragoman_queue_sentences", priority="bulk") > 1
    long.cancel()
    short.cancel()
    await engine_is_idle(running)


async def test_a_long_request_that_bulks_share_of_the_queue_can_never_hold_is_told_so(
    start_server: StartServer,
) -> None:
    engine = EngineConfig(device="cpu", threads=1, max_queue=40)
    running = await start_server(engine=engine, limits=RequestLimits(max_interactive_tokens=50))
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["wort"] * 35, **GERMAN)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    violation = detail(error, error_details_pb2.BadRequest()).field_violations[0]
    assert "as bulk" in violation.description
    assert "the queue takes 30" in violation.description


async def test_a_full_queue_says_when_to_come_again(start_server: StartServer, slow_models: Path) -> None:
    engine = EngineConfig(device="cpu", threads=1, max_queue=40, max_rows=16)
    running = await start_server(models=slow_models, engine=engine, limits=RequestLimits(max_texts=100))
    request = pb.TranslateRequest(texts=["wort wort"] * 40, **GERMAN)
    first = asyncio.ensure_future(running.stub.Translate(request))
    while running.metric("dragoman_queue_sentences") == 0:
        await asyncio.sleep(0.01)
    error = await failure(running.stub.Translate(request))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert detail(error, error_details_pb2.RetryInfo()).retry_delay.ToMilliseconds() > 0
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "QUEUE_FULL"
    assert len((await first).translations) == 40


async def test_what_a_full_queue_refuses_is_not_tokenized_before(
    start_server: StartServer, slow_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = EngineConfig(device="cpu", threads=1, max_queue=40, max_rows=16)
    running = await start_server(models=slow_models, engine=engine)
    request = pb.TranslateRequest(texts=["wort " * 10] * 40, **GERMAN)
    first = running.stub.Translate(request)
    while running.metric("dragoman_queue_sentences") == 0:
        await asyncio.sleep(0.01)
    prepared = record_prepared(monkeypatch)
    # Texts with nothing to translate take no room.
    blank = pb.TranslateRequest(texts=["", " \n", "12", "-"] * 20, **GERMAN)
    assert len((await running.stub.Translate(blank)).translations) == 80
    assert len(prepared) == 80
    error = await failure(running.stub.Translate(request))
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "QUEUE_FULL"
    assert "40 sentences do not fit" in error.details()
    assert len(prepared) == 80
    first.cancel()


async def test_nobody_waits_while_the_texts_of_jobs_are_tokenized(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = translator.prepare
    go_on = threading.Event()

    def held(text: str, bundle: Bundle, options: TranslationOptions, *arguments: Any) -> Document:
        if options.priority is Priority.BULK:
            go_on.wait(30)
        return prepare(text, bundle, options, *arguments)

    monkeypatch.setattr(translator, "prepare", held)
    running = await start_server()
    job = pb.TranslateRequest(texts=["Ja."] * 100, priority=pb.PRIORITY_BULK, **GERMAN)
    # More than any pool of threads has.
    jobs = [asyncio.ensure_future(running.stub.Translate(job)) for _ in range(50)]
    while running.metric("grpc_server_started_total", grpc_method="Translate") < 50:
        await asyncio.sleep(0.01)
    try:
        async with asyncio.timeout(20):
            assert len(await translate(running, *["Nein."] * 100)) == 100
            await running.server.reload()
    finally:
        go_on.set()
    assert [len((await job).translations) for job in jobs] == [100] * 50


async def test_one_call_too_many_is_told_when_to_come_again(
    start_server: StartServer, slow_models: Path
) -> None:
    running = await start_server(models=slow_models, limits=RequestLimits(max_calls=1))
    first = asyncio.ensure_future(translate(running, *["wort " * 10] * 8))
    while running.metric("dragoman_running_sentences") == 0:
        await asyncio.sleep(0.01)
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert detail(error, error_details_pb2.RetryInfo()).retry_delay.ToMilliseconds() > 0
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "TOO_MANY_CALLS"
    assert "1 calls, as many as its --max-calls lets in" in error.details()
    assert len(await first) == 8
    assert await translate(running, "Ja.")


async def test_more_sentences_than_the_queue_ever_holds_are_refused(start_server: StartServer) -> None:
    running = await start_server(engine=EngineConfig(device="cpu", threads=1, max_queue=5))
    request = pb.TranslateRequest(texts=["Eins. Zwei. Drei."] * 2, **GERMAN)
    assert await violated_fields(running, request) == ["texts"]
    # Three quarters of the queue are bulk's.
    request = pb.TranslateRequest(texts=["Eins. Zwei.", "Drei. Vier."], **GERMAN)
    assert len((await running.stub.Translate(request)).translations) == 2
    request.priority = pb.PRIORITY_BULK
    assert await violated_fields(running, request) == ["texts"]


async def test_no_more_is_read_of_what_is_refused(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = record_prepared(monkeypatch)
    running = await start_server(engine=EngineConfig(device="cpu", threads=1, max_queue=5))
    request = pb.TranslateRequest(texts=["Eins. Zwei. Drei."] * 100, **GERMAN)
    assert await violated_fields(running, request) == ["texts"]
    assert len(prepared) == 2


async def test_no_more_is_read_of_what_nobody_waits_for(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = record_prepared(monkeypatch, seconds=0.02)
    running = await start_server()
    request = pb.TranslateRequest(texts=["Eins."] * 1_000, **GERMAN)
    error = await failure(running.stub.Translate(request, timeout=0.5))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.sleep(0.5)
    until_then = len(prepared)
    await asyncio.sleep(0.5)
    assert 0 < until_then == len(prepared) < 1_000


def record_prepared(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> list[str]:
    """The texts that are cut and tokenized from now on, each taking so long."""
    prepared: list[str] = []
    prepare = translator.prepare

    def recorded(text: str, *arguments: object) -> Document:
        prepared.append(text)
        time.sleep(seconds)
        return prepare(text, *arguments)

    monkeypatch.setattr(translator, "prepare", recorded)
    return prepared


async def test_a_truncated_text_is_aligned_by_its_beginning(start_server: StartServer) -> None:
    running = await start_server()
    options = {"length_policy": pb.LENGTH_POLICY_TRUNCATE, "beam_size": 4, "num_hypotheses": 4}
    (short,) = await translate(running, "wort " * 20, options=options, return_alignments=True)
    (long,) = await translate(running, "wort " * 10_000, options=options, return_alignments=True)
    assert [h.alignments for h in long.hypotheses] == [h.alignments for h in short.hypotheses]
    assert len(long.hypotheses) == 4


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """Which threads take each step of a request."""
    found: dict[str, set[int]] = {}

    def recorded(work: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **options: object) -> object:
            found.setdefault(work.__name__, set()).add(threading.get_ident())
            return work(*arguments, **options)

        return run

    for owner, name in (
        (translator, "prepare"),
        (EnginePool, "submit"),
        (translator, "complete"),
        (core, "write_translation"),
    ):
        monkeypatch.setattr(owner, name, recorded(getattr(owner, name)))
    return found


@pytest.mark.parametrize(
    ("texts", "on_loop"),
    [
        (["Ja."], True),
        (["Ja. " * 200], False),
        (["Ein Satz. Noch einer. " * 20] * 10, False),
        (["Ja."] * 100, False),
        ([""] * 100, False),
        (["a\r" * 200], False),
    ],
)
async def test_a_large_request_does_not_hold_up_a_small_one(
    start_server: StartServer, threads: dict[str, set[int]], texts: list[str], on_loop: bool
) -> None:
    running = await start_server()
    threads.clear()
    await translate(running, *texts)
    # Nothing is submitted of texts that are empty.
    submitting = {"submit"} if any(texts) else set()
    assert threads.keys() == {"prepare", "complete", "write_translation"} | submitting
    # The server's loop is the test's.
    assert all((threading.get_ident() in found) == on_loop for found in threads.values()), threads


async def test_a_large_item_does_not_hold_up_a_small_one(
    start_server: StartServer, threads: dict[str, set[int]]
) -> None:
    running = await start_server()
    threads.clear()
    config = pb.TranslateStreamRequest(config={"model": "de-en"})
    item = pb.TranslateStreamRequest(item={"id": "1", "text": "Ein Satz. Noch einer. " * 200})
    assert [response.id async for response in running.stub.TranslateStream(iter([config, item]))] == ["1"]
    assert threads.keys() == {"prepare", "submit", "complete", "write_translation"}
    assert not any(threading.get_ident() in found for found in threads.values()), threads


async def test_a_call_that_is_cancelled_while_it_is_submitted_frees_the_engine(
    start_server: StartServer, slow_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start_server(models=slow_models)
    submit = EnginePool.submit
    begun, gone = threading.Event(), threading.Event()

    def held(engine: EnginePool, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        begun.set()
        gone.wait(30)
        return submit(engine, sentences)

    monkeypatch.setattr(EnginePool, "submit", held)
    call = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 100, **GERMAN))
    await asyncio.sleep(0)
    await asyncio.to_thread(begun.wait, 30)
    call.cancel()
    while running.metric("grpc_server_handled_total", grpc_code="CANCELLED") == 0:
        await asyncio.sleep(0.01)
    gone.set()
    async with asyncio.timeout(30):
        while running.metric("dragoman_sentences_total", outcome="cancelled") < 100:
            await asyncio.sleep(0.01)


async def test_models_are_listed_with_what_they_are(running: RunningServer) -> None:
    (model,) = (await running.stub.ListModels(pb.ListModelsRequest())).models
    assert model == (await running.stub.GetModel(pb.GetModelRequest(name="de-en"))).model
    assert (model.name, model.version, model.precision) == ("de-en", "1", "fp32")
    assert (model.source_language, model.target_language) == ("de", "en")
    assert dict(model.providers) == {
        "encoder": "CPUExecutionProvider",
        "decoder_step": "CPUExecutionProvider",
    }
    assert model.defaults.beam_size == 2
    assert not model.defaults.HasField("max_output_tokens"), "the limit comes from a sentence's length"
    assert model.max_source_tokens == 64
    assert model.quality[0].metric == "BLEU"
    assert model.licence == "CC0-1.0"


@pytest.mark.parametrize(
    ("source", "target", "count"),
    [("de", "", 1), ("DE", "en", 1), ("de_AT", "", 1), ("", "fr", 0), ("en", "", 0)],
)
async def test_models_are_listed_by_language(
    running: RunningServer, source: str, target: str, count: int
) -> None:
    request = pb.ListModelsRequest(source_language=source, target_language=target)
    assert len((await running.stub.ListModels(request)).models) == count

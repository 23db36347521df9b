"""Translate, ListModels and GetModel over a real port; the model copies its input."""

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.calls import GERMAN, failure, linked, translate, violated_fields
from tests.server.conftest import CPU, RunningServer, StartServer
from tests.server.copying_bundle import MANIFEST, write_bundle
from tests.server.web.conftest import serving

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub


async def test_translations_come_one_to_one_with_their_white_space(running: RunningServer) -> None:
    texts = ["Guten Morgen.", "  Eins. Zwei.\r\n\r\nDrei!\n", "", " \n\t", "Ende"]
    response = await running.stub.Translate(pb.TranslateRequest(texts=texts, **GERMAN))
    assert [item.text for item in response.translations] == [texts[0], texts[1], "", "", "Ende"]
    assert [item.sentences for item in response.translations] == [1, 3, 0, 0, 1]
    assert [len(item.hypotheses) for item in response.translations] == [1, 1, 0, 0, 1]
    assert (response.model.name, response.model.version) == ("de-en", "1")


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


async def test_alignments_are_offsets_into_the_whole_texts(running: RunningServer) -> None:
    text = "\n  Das Haus.\n Ä😀ß ja."
    (translation,) = await translate(running, text, return_alignments=True)
    links = linked(text, translation)
    assert links[:3] == [("Das", "Das"), ("Haus", "Haus"), (".", ".")]
    assert links[-2:] == [("ja", "ja"), (".", ".")]
    # The model's word for a character it does not know, at its place.
    assert links[3][0] == "Ä😀ß"
    assert all(link.weight == pytest.approx(1.0) for link in translation.hypotheses[0].alignments)
    # They come only where asked for.
    assert not (await translate(running, text))[0].hypotheses[0].alignments


async def test_attention_of_the_input_is_a_step_late(start_server: StartServer, tmp_path: Path) -> None:
    write_bundle(tmp_path, manifest=replace(MANIFEST, attention_of_input=True))
    running = await start_server(models=tmp_path)
    (translation,) = await translate(running, "Das!", return_alignments=True)
    weights = [link.weight for link in translation.hypotheses[0].alignments]
    links = dict(zip(linked("Das!", translation), weights, strict=True))
    # It looks at the character that it copies next: behind the last one there is the end.
    assert links.keys() == {("Das", "Das"), ("!", "Das")}
    assert links["Das", "Das"] > links["!", "Das"] == pytest.approx(1 - links["Das", "Das"])


async def test_limits_of_tokens_prefixes_and_lines_as_units_are_as_asked(running: RunningServer) -> None:
    (translation,) = await translate(running, "Ja. Guten Morgen.", options={"max_output_tokens": 5})
    assert translation.text == "Ja. Gute"
    assert translation.hypotheses[0].finish_reason == pb.FINISH_REASON_LENGTH
    (translation,) = await translate(running, "Ja. Nein.", options={"target_prefix": "No"})
    assert translation.text == "No. Nein."
    (translation,) = await translate(running, "Eins. Zwei.\nDrei.", segmentation=pb.SEGMENTATION_LINE)
    assert (translation.sentences, translation.text) == (2, "Eins. Zwei.\nDrei.")


async def test_what_shows_nothing_is_not_translated_and_counts_in_offsets(running: RunningServer) -> None:
    text = "\ufeffGu\u00adten \u2068Morgen\u2069.  Scho\u0308n\u200b."
    (translation,) = await translate(running, text, return_alignments=True)
    assert translation.text == "Guten Morgen.  Schön."
    words = {("Gu\u00adten", "Guten"), ("Morgen", "Morgen"), ("Scho\u0308n", "Schön")}
    assert words <= set(linked(text, translation))


async def test_what_holds_no_letter_is_its_own_translation(running: RunningServer) -> None:
    texts = [" 12345 ", "---", "😀", "1. 2.\n3."]
    response = await running.stub.Translate(
        pb.TranslateRequest(texts=texts, options={"target_prefix": "No"}, return_alignments=True, **GERMAN)
    )
    assert [item.text for item in response.translations] == texts
    assert [item.sentences for item in response.translations] == [0] * 4
    assert not any(item.hypotheses for item in response.translations)


async def test_what_is_no_sentence_stays_around_sentences(running: RunningServer) -> None:
    for text in ("1. Ja.\n---\n2. Nein.", "- Ja.\n  * \n  •\tNein.", "- 1. Ja.\n- 2. Nein."):
        (found,) = await translate(running, text, options={"target_prefix": "No"}, return_alignments=True)
        assert (found.text, found.sentences) == (text.replace("Ja", "No"), 2)
        assert linked(text, found)[-2] == ("Nein", "Nein")


async def test_a_long_sentence_is_split_by_default_and_refused_where_asked(running: RunningServer) -> None:
    text = "Es war spät, der Laden war geschlossen, und wir gingen nach Hause, denn es war kalt."
    (found,) = await translate(running, text, return_alignments=True)
    assert (found.text, found.sentences, found.split, found.truncated) == (text, 2, True, False)
    assert all(
        (link.source_start, link.source_end) == (link.target_start, link.target_end)
        for link in found.hypotheses[0].alignments
    )
    options = pb.DecodingOptions(length_policy=pb.LENGTH_POLICY_REJECT)
    request = pb.TranslateRequest(texts=["Kurz.", "wort " * 20], options=options, **GERMAN)
    assert await violated_fields(running, request) == ["texts[1]"]


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


async def test_odd_characters_have_an_answer(running: RunningServer) -> None:
    for text in (
        *("\x00", "a\x00b\x01\x02\x7f", "\ufeff\u200b\u200f", "\u202eabc\u202c", "😀👩‍👩‍👧🏽 🇩🇪"),
        *("مرحبا بالعالم", "こんにちは世界", "ሰላም ᚠᚢᚦ 𓀀", "e\u0301\u0301\u0301" * 30, "\u0301"),
        *("\ufffd\uffff\U0010ffff", "ﷺ", "x" * 500),
    ):
        odd, neighbour = await translate(running, text, "Ja.", return_alignments=True)
        assert neighbour.text == "Ja."
        for link in odd.hypotheses[0].alignments if odd.hypotheses else []:
            assert link.source_start < link.source_end <= len(text), text
            assert link.target_start < link.target_end <= len(odd.text), text


@pytest.fixture(scope="module")
def sync_stub(models: Path) -> Iterator[TranslationServiceStub]:
    """A client for tests without an event loop."""
    with serving(models=models, engine=CPU) as web, grpc.insecure_channel(web.grpc_address) as channel:
        yield TranslationServiceStub(channel)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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

"""Requests: what one that says little means, which model answers, and how each fault is named."""

from pathlib import Path
from typing import cast

import grpc
import pytest
from dragoman_bundle import Bundle
from dragoman_bundle.tokenizers.tokenizer import FIRST_TAG, FORMAL, INFORMAL, LAST_TAG
from google.rpc import error_details_pb2
from tests.server.calls import GERMAN, detail, failure, linked, translate, violated_fields
from tests.server.conftest import RunningServer, StartServer
from tests.server.copying_bundle import write_bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits
from dragoman_server.engine import Engine, Priority
from dragoman_server.metrics.translation import ModelMetrics
from dragoman_server.models.model import Model
from dragoman_server.models.repository import Repository
from dragoman_server.service.requests import RequestReader
from dragoman_server.text.read.clean import clean, for_tokenizer


@pytest.fixture
def model_of_bundle(bundle: Bundle) -> Model:
    """Of which a reader needs no more than the bundle."""
    return Model(
        bundle=bundle,
        engine=cast(Engine, None),
        metrics=cast(ModelMetrics, None),
        precision="fp32",
        providers={},
        default_beam_size=2,
        max_sentences={},
    )


@pytest.fixture
def reader() -> RequestReader:
    return RequestReader(cast(Repository, None), RequestLimits(), {}, {})


def test_calls_are_interactive_and_streams_jobs_by_default(
    reader: RequestReader, model_of_bundle: Model
) -> None:
    for request, expected in (
        (pb.TranslateRequest(), Priority.INTERACTIVE),
        (pb.TranslateRequest(priority=pb.PRIORITY_BULK), Priority.BULK),
    ):
        assert reader.read(request, model_of_bundle).options.priority is expected
    for config, expected in (
        (pb.TranslateStreamConfig(), Priority.BULK),
        (pb.TranslateStreamConfig(priority=pb.PRIORITY_INTERACTIVE), Priority.INTERACTIVE),
    ):
        assert reader.read_config(config, model_of_bundle).priority is expected


async def test_what_names_no_model_is_refused_with_those_there_are(running: RunningServer) -> None:
    xx_en = {"source_language": "xx", "target_language": "en"}
    for call, told in (
        (running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **xx_en)), ("'xx'", "de-en")),
        (running.stub.Translate(pb.TranslateRequest(texts=["Ja."], model="de-en/7")), ("de-en/1",)),
        (running.stub.GetModel(pb.GetModelRequest(name="de-en/7")), ("de-en/1",)),
    ):
        error = await failure(call)
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert all(words in error.details() for words in told), error
        assert detail(error, error_details_pb2.ErrorInfo()).reason == "MODEL_NOT_FOUND"
    other = {"model": "de-en", "source_language": "fr", "target_language": "EN"}
    for fields, violated in (({}, ["source_language", "target_language"]), (other, ["source_language"])):
        request = pb.TranslateRequest(texts=["Ja."], **fields)
        assert await violated_fields(running, request) == violated


async def test_the_closest_model_answers_or_the_one_of_that_name(running: RunningServer) -> None:
    pairs = [("de-DE", "en-GB"), ("de_DE", "eng"), (" deu ", "EN"), ("ger", "en-US")]
    asked = [{"source_language": source, "target_language": target} for source, target in pairs]
    asked += [{"model": "de-en"}, {"model": "de-en/1"}, *(each | {"model": "de-en"} for each in asked)]
    expected = pb.ModelReference(name="de-en", version="1", source_language="de", target_language="en")
    for fields in asked:
        request = pb.TranslateRequest(texts=["Ja."], **fields)
        assert (await running.stub.Translate(request)).model == expected, fields


async def test_models_are_listed_with_what_they_are(running: RunningServer) -> None:
    (model,) = (await running.stub.ListModels(pb.ListModelsRequest())).models
    assert model == (await running.stub.GetModel(pb.GetModelRequest(name="de-en"))).model
    assert (model.name, model.version, model.precision) == ("de-en", "1", "fp32")
    assert (model.source_language, model.target_language) == ("de", "en")
    assert dict(model.providers) == dict.fromkeys(("encoder", "decoder_step"), "CPUExecutionProvider")
    assert model.defaults.beam_size == 2
    assert not model.defaults.HasField("max_output_tokens"), "the limit comes from a sentence's length"
    assert model.max_source_tokens == 64
    assert model.quality[0].metric == "BLEU"
    assert model.licence == "CC0-1.0"


async def test_models_are_listed_by_language(running: RunningServer) -> None:
    cases = (("de", "", 1), ("DE", "en", 1), ("de_AT", "", 1), ("", "fr", 0), ("en", "", 0))
    for source, target, count in cases:
        request = pb.ListModelsRequest(source_language=source, target_language=target)
        assert len((await running.stub.ListModels(request)).models) == count, request


async def test_options_out_of_bounds_are_named_all_at_once(running: RunningServer) -> None:
    for options, field in (
        ({"beam_size": 0}, "beam_size"),
        ({"beam_size": 1000}, "beam_size"),
        ({"num_hypotheses": 0}, "num_hypotheses"),
        ({"beam_size": 2, "num_hypotheses": 3}, "num_hypotheses"),
        ({"length_penalty": -1.0}, "length_penalty"),
        ({"length_penalty": float("nan")}, "length_penalty"),
        ({"length_penalty": 1e30}, "length_penalty"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": 1_000_000}, "max_output_tokens"),
        ({"max_output_tokens": 3, "target_prefix": "abcdef"}, "target_prefix"),
        ({"length_policy": 77}, "length_policy"),
    ):
        request = pb.TranslateRequest(texts=["Ja."], options=pb.DecodingOptions(**options), **GERMAN)
        assert await violated_fields(running, request) == [f"options.{field}"], options
    options = pb.DecodingOptions(beam_size=0, length_penalty=-1)
    request = pb.TranslateRequest(texts=["Ja.", "x" * 501], options=options, **GERMAN)
    expected = ["texts[1]", "options.beam_size", "options.length_penalty"]
    assert await violated_fields(running, request) == expected


async def test_a_target_prefix_that_no_translation_can_begin_with_is_refused(running: RunningServer) -> None:
    few = "has 2 tokens, and it must have fewer than max_output_tokens, 1; shorten it, or raise that"
    for prefix, max_output_tokens, words in (
        ("x" * 4001, None, "a prefix takes 4000; shorten it"),
        ("x" * 1200, None, "it must have fewer than max_output_tokens, 1024; shorten it"),
        ("x", 1, few),
        ("No 日", None, "characters that the model cannot write; leave them out"),
    ):
        options = pb.DecodingOptions(target_prefix=prefix, max_output_tokens=max_output_tokens)
        request = pb.TranslateRequest(texts=["Ja."], options=options, **GERMAN)
        assert await violated_fields(running, request) == ["options.target_prefix"]
        assert (await failure(running.stub.Translate(request))).details().endswith(words)


async def test_a_name_beyond_measure_is_repeated_in_part(running: RunningServer) -> None:
    long = "é" * 10_000
    for fields, code in (
        ({"model": long}, grpc.StatusCode.NOT_FOUND),
        ({"source_language": long, "target_language": long}, grpc.StatusCode.NOT_FOUND),
        ({"model": "de-en", "source_language": long}, grpc.StatusCode.INVALID_ARGUMENT),
    ):
        error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **fields)))
        assert error.code() is code
        assert detail(error, error_details_pb2.ErrorInfo()).reason
        assert "é…'" in error.details()


async def test_a_large_message_is_refused_and_an_answer_may_be_larger(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_message_bytes=1000))
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["x" * 2000], **GERMAN)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(await translate(running, *["Ja."] * 60)) == 60


FORMALITIES = [(pb.FORMALITY_FORMAL, FORMAL), (pb.FORMALITY_INFORMAL, INFORMAL)]


@pytest.fixture
async def tagged(tmp_path: Path, start_server: StartServer) -> RunningServer:
    """Its model copies, tags too, so that a translation shows what the model has read."""
    write_bundle(tmp_path / "tagged", tags=(FORMAL, INFORMAL))
    return await start_server(models=tmp_path / "tagged")


async def test_each_sentence_has_the_tag_and_none_without_it(tagged: RunningServer) -> None:
    text = "Kommen. Gehen."
    for formality, tag in FORMALITIES:
        options = pb.DecodingOptions(formality=formality)
        (found,) = await translate(tagged, text, options=options, return_alignments=True)
        assert found.text == f"{tag} Kommen. {tag} Gehen."
        assert {("Kommen", "Kommen"), ("Gehen", "Gehen")} <= set(linked(text, found))
    # Though a caller writes one.
    plain, odd = await translate(tagged, "Kommen.", f"{FORMAL} Kommen.")
    assert (plain.text, odd.text) == ("Kommen.", f"{FORMAL} Kommen.")


@pytest.mark.parametrize("tag", [FIRST_TAG, FORMAL, INFORMAL, LAST_TAG])
def test_no_tokenizer_reads_a_tag_that_a_caller_writes(tag: str) -> None:
    cleaned = clean(f"a{tag}b\u2010c")
    assert cleaned.text == f"a{tag}b\u2010c"
    assert len(for_tokenizer(cleaned.text)) == len(cleaned.text)
    assert tag not in for_tokenizer(cleaned.text)


async def test_a_model_that_was_not_trained_for_it_refuses_it(running: RunningServer) -> None:
    options = pb.DecodingOptions(formality=pb.FORMALITY_FORMAL)
    request = pb.TranslateRequest(texts=["Ja."], **GERMAN, options=options)
    assert await violated_fields(running, request) == ["options.formality"]

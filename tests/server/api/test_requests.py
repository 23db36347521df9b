"""Requests: what one that says little means, which model answers, and how each fault is named."""

from pathlib import Path
from typing import cast

import grpc
import pytest
from dragoman_bundle import Bundle
from dragoman_bundle.tags import FIRST_TAG, FORMAL, INFORMAL, LAST_TAG
from google.rpc import error_details_pb2
from tests.server.calls import GERMAN, detail, failure, translate, violated_fields
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


def test_a_call_is_interactive_and_a_stream_is_a_job(reader: RequestReader, model_of_bundle: Model) -> None:
    assert reader.read(pb.TranslateRequest(), model_of_bundle).options.priority is Priority.INTERACTIVE
    assert reader.read_config(pb.TranslateStreamConfig(), model_of_bundle).priority is Priority.BULK


def test_a_caller_may_choose_the_priority(reader: RequestReader, model_of_bundle: Model) -> None:
    bulk = pb.TranslateRequest(priority=pb.PRIORITY_BULK)
    assert reader.read(bulk, model_of_bundle).options.priority is Priority.BULK
    interactive = pb.TranslateStreamConfig(priority=pb.PRIORITY_INTERACTIVE)
    assert reader.read_config(interactive, model_of_bundle).priority is Priority.INTERACTIVE


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
async def test_the_closest_model_answers(running: RunningServer, source: str, target: str) -> None:
    expected = pb.ModelReference(name="de-en", version="1", source_language="de", target_language="en")
    for model in ("", "de-en"):
        request = pb.TranslateRequest(
            texts=["Ja."], source_language=source, target_language=target, model=model
        )
        assert (await running.stub.Translate(request)).model == expected


@pytest.mark.parametrize("model", ["de-en", "de-en/1"])
async def test_a_model_is_found_by_its_name(running: RunningServer, model: str) -> None:
    response = await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], model=model))
    assert response.model.version == "1"


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
async def test_models_of_a_language(running: RunningServer, source: str, target: str, count: int) -> None:
    request = pb.ListModelsRequest(source_language=source, target_language=target)
    assert len((await running.stub.ListModels(request)).models) == count


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
        ("x", 1, "has 2 tokens, and it must have fewer than max_output_tokens, 1; shorten it, or raise that"),
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


async def test_a_message_over_the_limit_is_refused(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_message_bytes=1000))
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["x" * 2000], **GERMAN)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await translate(running, "Ja.")


async def test_an_answer_may_be_larger_than_a_request(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_message_bytes=1000))
    assert len(await translate(running, *["Ja."] * 60)) == 60


FORMALITIES = [(pb.FORMALITY_FORMAL, FORMAL), (pb.FORMALITY_INFORMAL, INFORMAL)]


@pytest.fixture
async def tagged(tmp_path: Path, start_server: StartServer) -> RunningServer:
    """Its model copies, tags too, so that a translation shows what the model has read."""
    write_bundle(tmp_path / "tagged", tags=(FORMAL, INFORMAL))
    return await start_server(models=tmp_path / "tagged")


@pytest.mark.parametrize(("formality", "tag"), FORMALITIES)
async def test_each_sentence_has_the_tag(tagged: RunningServer, formality: pb.Formality, tag: str) -> None:
    options = pb.DecodingOptions(formality=formality)
    (found,) = await translate(tagged, "Kommen. Gehen.", options=options, return_alignments=True)
    assert found.text == f"{tag} Kommen. {tag} Gehen."
    text, output = "Kommen. Gehen.", found.text
    links = {
        (text[link.source_start : link.source_end], output[link.target_start : link.target_end])
        for link in found.hypotheses[0].alignments
    }
    assert ("Kommen", "Kommen") in links
    assert ("Gehen", "Gehen") in links


async def test_without_it_no_source_has_a_tag_though_a_caller_writes_one(tagged: RunningServer) -> None:
    plain, odd = await translate(tagged, "Kommen.", f"{FORMAL} Kommen.")
    assert plain.text == "Kommen."
    assert odd.text == f"{FORMAL} Kommen."


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

"""Which model answers, and which are listed."""

import grpc
import pytest
from google.rpc import error_details_pb2
from tests.server.calls import detail, failure, violated_fields
from tests.server.conftest import RunningServer

from dragoman.v1 import translation_pb2 as pb


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
async def test_models_are_listed_by_language(
    running: RunningServer, source: str, target: str, count: int
) -> None:
    request = pb.ListModelsRequest(source_language=source, target_language=target)
    assert len((await running.stub.ListModels(request)).models) == count

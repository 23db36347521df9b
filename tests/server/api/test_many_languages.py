"""A model of many languages is one model for each pair of them: listed, chosen, refused and counted."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import grpc
import pytest
from click.testing import CliRunner
from dragoman_bundle import open_bundle
from tests.export.multilingual_checkpoint import write_multilingual
from tests.server.calls import failure, violated_fields
from tests.server.conftest import RunningServer, StartServer
from tests.server.copying_bundle import write_bundle

from dragoman.cli import main
from dragoman.v1 import translation_pb2 as pb
from dragoman_export.get.cli import get
from dragoman_server.offline.system import open_bundle_system, open_in_process

TEXT = "der hund sieht den mann"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with NLLB's languages in one bundle, and a bundle of one pair."""
    folder = tmp_path_factory.mktemp("many")
    write_multilingual(folder / "hub" / "nllb", nllb=True)
    models = folder / "models"
    options = ["--models", str(models), "--precisions", "fp32", "--yes"]
    result = CliRunner().invoke(get, [str(folder / "hub" / "nllb"), *options])
    assert result.exit_code == 0, result.output
    write_bundle(models)
    return models


@pytest.fixture(params=[None, 1], ids=["loaded", "on-demand"])
async def running(request: pytest.FixtureRequest, start_server: StartServer, many: Path) -> RunningServer:
    return await start_server(models=many, max_loaded_models=request.param)


async def translate(running: RunningServer, source: str, target: str, **more: object) -> pb.TranslateResponse:
    message = pb.TranslateRequest(texts=[TEXT], source_language=source, target_language=target, **more)
    return await running.stub.Translate(message)


async def test_every_pair_is_answered_by_one_model(running: RunningServer) -> None:
    answers = []
    for asked, meant in (
        (("de", "es"), ("de", "es")),
        (("deu_Latn", "spa_Latn"), ("de", "es")),
        (("spa_Latn", "DE"), ("es", "de")),
        (("es", "zho_Hant"), ("es", "zh-Hant")),
    ):
        answer = await translate(running, *asked)
        answers.append(answer.translations[0].hypotheses[0])
        assert answer.model.name == "nllb"
        assert (answer.model.source_language, answer.model.target_language) == meant
    assert answers[0] == answers[1] != answers[2]
    # One series, whatever the pair.
    await running.calls_are_counted()
    assert running.metric("dragoman_requests_total", model="nllb", source="mul", target="mul") == 4
    assert running.metric("dragoman_model_loaded", model="nllb") == 1


async def test_its_languages_are_listed(running: RunningServer) -> None:
    models = (await running.stub.ListModels(pb.ListModelsRequest())).models
    one, many = models
    assert (one.name, list(one.languages)) == ("de-en", [])
    assert (many.name, many.source_language, many.target_language) == ("nllb", "mul", "mul")
    assert len(many.languages) == 202
    assert {"de", "zh", "zh-Hant", "ace-Arab"} <= set(many.languages)
    for source, target, names in (("fr", "it", ["nllb"]), ("de", "en", ["de-en", "nllb"]), ("xx", "", [])):
        request = pb.ListModelsRequest(source_language=source, target_language=target)
        assert [model.name for model in (await running.stub.ListModels(request)).models] == names


async def test_a_model_of_two_languages_goes_before_it(running: RunningServer) -> None:
    answer = await translate(running, "de", "eng_Latn")
    assert (answer.model.name, answer.translations[0].text) == ("de-en", TEXT)
    assert (await translate(running, "de", "en", model="nllb")).model.source_language == "de"


async def test_pairs_that_it_has_not_are_refused_by_name(running: RunningServer) -> None:
    error = await failure(translate(running, "de", "tlh"))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert "'tlh'" in error.details()
    assert "de-en, from any to any other of ace, ace-Arab, acm" in error.details()
    assert "182 more" in error.details()
    assert (await failure(translate(running, "de", "de-AT"))).code() is grpc.StatusCode.NOT_FOUND
    for languages, fields in (
        ({}, ["source_language", "target_language"]),
        ({"source_language": "de"}, ["target_language"]),
        ({"source_language": "de", "target_language": "tlh"}, ["target_language"]),
        ({"source_language": "de", "target_language": "deu_Latn"}, ["target_language"]),
    ):
        request = pb.TranslateRequest(texts=[TEXT], model="nllb", **languages)
        assert await violated_fields(running, request) == fields


async def test_what_is_of_a_pair_works_for_each(running: RunningServer) -> None:
    protection = pb.Protection(terms=[pb.Term(source="hund", target="perro")])
    answer = await translate(running, "de", "es", protection=protection, return_alignments=True)
    translation = answer.translations[0]
    assert "perro" in translation.text
    assert all(link.source_end <= len(TEXT) for link in translation.hypotheses[0].alignments)
    pairs = [pb.TextPair(source=TEXT, target="el perro")]
    request = pb.AlignTextsRequest(pairs=pairs, source_language="de", target_language="es")
    aligned = await running.stub.AlignTexts(request)
    assert aligned.model.target_language == "es"
    assert aligned.pairs[0].alignments
    # By way of a language that only the other of two models says.
    answer = await translate(running, "es", "en", model="nllb de-en")
    assert [(leg.source_language, leg.target_language) for leg in answer.path] == [("es", "de"), ("de", "en")]


async def test_its_start_is_no_part_of_a_translation(running: RunningServer, many: Path) -> None:
    answer = await translate(running, "de", "es", options=pb.DecodingOptions(max_output_tokens=3))
    (translation,) = answer.translations
    assert translation.target_tokens == 3
    assert "spa_Latn" not in translation.text
    tokenizer = open_bundle(many / "nllb" / "1").target_tokenizer
    assert len(tokenizer.encode_ids([translation.text])[0]) <= 3


def test_a_bundle_without_a_server_is_told_its_languages(many: Path) -> None:
    options = {"beam_size": 1, "device": "cpu", "precision": "fp32"}
    location = str(many / "nllb" / "1")
    found = set()
    for target in ("spa_Latn", "de"):
        with open_bundle_system(location, source_language="en", target_language=target, **options) as system:
            found |= {*system.translate([TEXT])}
    assert len(found) == 2
    with (
        pytest.raises(ValueError, match="is of many languages: give the source's and the target's"),
        open_bundle_system(location, source_language="en", target_language=None, **options),
    ):
        pass
    with (
        pytest.raises(ValueError, match="is of many languages: serve it"),
        open_in_process(location, length_penalty=None, segmentation="line", **options),
    ):
        pass


async def test_the_command_takes_the_codes_of_flores(running: RunningServer) -> None:
    server = ["--server", f"127.0.0.1:{running.server.port}"]
    command = ["translate", "--from", "deu_Latn", "--to", "spa_Latn", *server, TEXT]
    result = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert result.exit_code == 0, result.output
    listed = await asyncio.to_thread(CliRunner().invoke, main, ["models", *server])
    assert "202 languages" in listed.output


async def test_its_languages_are_those_of_the_apis_over_http(start_server: StartServer, many: Path) -> None:
    running = await start_server(models=many, http_port=0)
    url = f"http://127.0.0.1:{running.server.http_port}"

    def ask(path: str, **fields: str) -> Any:
        with urlopen(url + path, urlencode(fields).encode() if fields else None) as response:
            return json.loads(response.read())

    languages = {each["code"]: each["targets"] for each in await asyncio.to_thread(ask, "/languages")}
    assert len(languages) == 202
    assert all(len(targets) == 201 and code not in targets for code, targets in languages.items())
    spanish = {"q": TEXT, "source": "deu_Latn", "target": "spa_Latn"}
    answer = await asyncio.to_thread(ask, "/translate", **spanish)
    plain = await translate(running, "de", "es")
    assert answer["translatedText"] == plain.translations[0].text
    deepl = await asyncio.to_thread(ask, "/v2/translate", text=TEXT, source_lang="DE", target_lang="ES")
    assert deepl["translations"][0]["text"] == plain.translations[0].text

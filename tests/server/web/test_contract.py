"""/v1 and what describes it: the same answers as over gRPC."""

import json

import grpc
import pytest
from google.protobuf import json_format
from tests.server.web.conftest import Web, ask
from tests.shipped import shipped_bundle

from dragoman import Client
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub

ASKED = {"texts": ["Der Hund schläft im Garten."], "sourceLanguage": "de", "targetLanguage": "en"}


def test_an_answer_is_the_one_over_grpc(web: Web) -> None:
    asked = {**ASKED, "returnAlignments": True, "options": {"numHypotheses": 2, "beamSize": 4}}
    with grpc.insecure_channel(web.grpc_address) as channel:
        expected = TranslationServiceStub(channel).Translate(
            json_format.ParseDict(asked, pb.TranslateRequest())
        )
    answer = json_format.Parse(web.post("/v1/translate", asked).body, pb.TranslateResponse())
    for response in (expected, answer):
        response.translations[0].ClearField("timings")
    assert answer == expected


def test_models_alignments_glossaries_and_languages_are_told(web: Web) -> None:
    assert web.get("/v1/models?sourceLanguage=de").json["models"][0]["name"] == "de-en"
    assert web.get("/v1/models?sourceLanguage=fr").json["models"] == []
    version = shipped_bundle("de-en").name
    assert web.get(f"/v1/models/de-en/{version}").json["model"]["version"] == version
    assert web.get("/v1/models/none").status == 404
    assert web.get("/v1/glossaries").json["glossaries"][0]["name"] == "house"
    pair = {"source": "Guten Morgen.", "target": "Good morning."}
    aligned = web.post("/v1/align", {"pairs": [pair], "sourceLanguage": "de", "targetLanguage": "en"}).json
    assert aligned["pairs"][0]["alignments"]
    with Client(web.grpc_address) as client:
        detected = client.detect(["Wie geht es dir heute?", "Comment ça va aujourd'hui ?", "42"])
    assert [each.language for each in detected] == ["de", None, None]
    assert detected[1].candidates[0].language == "fr"
    over_http = web.post("/v1/detect", {"texts": ["Wie geht es dir heute?"]}).json["texts"][0]
    assert over_http["confidence"] == pytest.approx(detected[0].confidence)


def test_a_stream_is_events_and_its_last_one_says_so_or_has_a_status(web: Web) -> None:
    config = {"config": {"sourceLanguage": "de", "targetLanguage": "en"}}
    items = [{"id": str(rank), "text": f"Das ist Satz {rank}."} for rank in range(20)]
    items.append({"id": "long", "text": "x" * 100_001})
    answer = web.post("/v1/translateStream", [config, {"items": {"items": items}}])
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    events = [event.split("\n") for event in answer.body.decode().split("\n\n") if event]
    assert events[-1][0] == "event: end"
    results = [json.loads(event[1].removeprefix("data: ")) for event in events[:-1]]
    assert {each["id"] for each in results} == {item["id"] for item in items}
    assert [each["id"] for each in results if "error" in each] == ["long"]
    unknown = {"config": {"sourceLanguage": "de", "targetLanguage": "xx"}}
    assert web.post("/v1/translateStream", [unknown]).status == 404
    assert web.post("/v1/translateStream", {}).status == 400


def test_a_file_is_translated_with_progress_or_has_a_status(web: Web) -> None:
    config = json.dumps({"targetLanguage": "en", "protection": {"glossaries": ["house"]}})
    path = "/v1/translateFile"
    answer = web.upload(path, "dog.html", "<p>Der <b>Hund</b> schläft.</p><p>Ja.</p>".encode(), config=config)
    events = [event.split("\n") for event in answer.body.decode().split("\n\n") if event]
    assert [kind for kind, _ in events][-2:] == ["event: file", "event: end"]
    progress, file = (json.loads(events[rank][1].removeprefix("data: ")) for rank in (-3, -2))
    assert progress == {"done": 2, "total": 2}
    assert (file["name"], file["failed"], file["sourceLanguage"]) == ("dog.en.html", 0, "de")
    assert web.get(f"/{file['path']}").body.decode().startswith("<p>The <b>hound</b> ")

    table = web.upload(path, "dog.csv", b"Satz\nJa.\n", config=config)
    assert (table.status, "needs columns" in table.json["error"]["message"]) == (400, True)
    nowhere = json.dumps({"sourceLanguage": "de", "targetLanguage": "xx"})
    assert web.upload(path, "dog.txt", b"Ja.\n", config=nowhere).status == 404


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "INVALID_REQUEST"),
        (b"[]", 400, "INVALID_REQUEST"),
        (b"[" * 100_000, 400, "INVALID_REQUEST"),
        (b'{"texts": "x", "what": 1}', 400, "INVALID_REQUEST"),
        (b'{"texts": ["\xff"]}', 400, "INVALID_REQUEST"),
        (b'{"texts": ["\\ud800"], "model": "de-en"}', 400, "INVALID_REQUEST"),
        (b'{"texts": ["x"], "sourceLanguage": "xx", "targetLanguage": "en"}', 404, "MODEL_NOT_FOUND"),
    ],
    ids=["broken", "no object", "deep", "unknown field", "no UTF-8", "surrogate", "unknown language"],
)
def test_what_is_wrong_has_its_status_and_reason(web: Web, body: bytes, status: int, reason: str) -> None:
    answer = web.post("/v1/translate", body)
    assert answer.status == status
    assert answer.json["error"]["details"][0]["reason"] == reason


JSON_PATHS = (
    *("/v1/translate", "/v1/translateStream", "/v1/align", "/v1/detect", "/translate"),
    *("/detect", "/v2/translate"),
)


@pytest.mark.parametrize("path", JSON_PATHS)
def test_a_string_that_no_utf8_carries_is_a_bad_request_wherever_it_is(web: Web, path: str) -> None:
    for value in (
        '{"protection": ["\\ud800"]}',
        '{"\\udfff": 1}',
        '[{"config": {"x": "\\uD83D"}}]',
        '"\\udc00"',
    ):
        assert web.post(path, value.encode()).status == 400
        assert web.post(path, value.encode("utf-16")).status == 400
    assert web.post(path, b'{"x": "\xed\xa0\x80"}').status == 400


@pytest.mark.parametrize("path", JSON_PATHS)
def test_a_body_of_too_many_values_is_refused_before_they_are_made(web: Web, path: str) -> None:
    for value in (b"{}", b'""', b"[]", b'{"item": {}}'):
        answer = web.post(path, b"[" + b",".join([value] * 100_000) + b"]")
        assert answer.status == 400
        assert b"more than 100000 strings, objects and lists" in answer.body


def test_a_pair_of_surrogates_is_a_character(web: Web) -> None:
    body = json.dumps({**ASKED, "texts": ["\N{GRINNING FACE} Ja." + " " * 20_000]}).encode()
    assert b"\\ud83d" in body
    assert web.post("/v1/translate", b"\xef\xbb\xbf" + body).status == 200


def test_the_description_has_every_field_of_the_messages(web: Web) -> None:
    described = web.get("/openapi.json").json
    schemas = described["components"]["schemas"]
    for message in (pb.TranslateRequest, pb.TranslateResponse, pb.Model, pb.DetectedLanguage):
        names = {field.json_name for field in message.DESCRIPTOR.fields}
        assert set(schemas[message.DESCRIPTOR.name]["properties"]) == names
    text = json.dumps(described)
    for name in schemas:
        assert f"#/components/schemas/{name}" in text


def test_probes_and_metrics_answer_and_requests_have_names(web: Web) -> None:
    assert (web.get("/healthz").status, web.get("/readyz").status) == (200, 200)
    web.post("/v1/translate", ASKED)
    scraped = web.get("/metrics").body.decode()
    assert 'dragoman_http_requests_total{route="v1.translate",status="200"}' in scraped
    assert 'dragoman_requests_total{model="de-en"' in scraped
    assert web.get("/none/such").status == 404
    assert ask(f"{web.url}/translate").status == 405
    # By their callers, or by the server.
    assert web.get("/healthz", **{"X-Request-ID": "abc-1"}).headers["X-Request-ID"] == "abc-1"
    named = web.get("/healthz", **{"X-Request-ID": "not a name"}).headers["X-Request-ID"]
    assert named != "not a name"
    assert len(named) == 32

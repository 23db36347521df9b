"""LibreTranslate's API, by its own client and as its documentation calls it."""

import io
import zipfile
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI
from tests.files.documents import docx, drawn, epub, opened, paragraph, pptx, xlsx
from tests.server.web.conftest import Answer, Web, ask

DOG = "Der Hund schläft im Garten."
FRENCH = "Je voudrais un café, s'il vous plaît."


def test_its_own_client_translates_detects_and_lists(web: Web) -> None:
    client = LibreTranslateAPI(web.url)
    assert client.translate(DOG, "de", "en") == "The dog is sleeping in the garden."
    assert client.translate(DOG, "deu_Latn", "eng_Latn") == "The dog is sleeping in the garden."
    assert client.translate(DOG, "auto", "en") == "The dog is sleeping in the garden."
    assert client.detect(DOG)[0]["language"] == "de"
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]


def test_texts_of_several_languages_are_detected_one_by_one(web: Web) -> None:
    english = "The dog is sleeping in the garden."
    texts = [DOG, english, "42", "Guten Morgen, meine Freunde."]
    answer = web.post("/translate", {"q": texts, "source": "auto", "target": "en"}).json
    assert answer["translatedText"] == [english, english, "42", "Good morning, my friends."]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["de", "en", "", "de"]
    # One in none of our languages is named by its place.
    answer = web.post("/translate", {"q": [DOG, FRENCH], "source": "auto", "target": "en"})
    assert answer.status == 400
    assert answer.json["error"].startswith("q[1]: ")
    assert all(language in answer.json["error"] for language in ("de, en", "fr"))
    assert web.post("/detect", {"q": FRENCH}).json == []


def test_tags_stay_and_alternatives_come_where_asked(web: Web) -> None:
    asked = {"q": f"<p>{DOG[:9]}<b>schläft</b>.</p>", "source": "de", "target": "en", "format": "html"}
    translated = web.post("/translate", asked).json["translatedText"]
    assert translated.startswith("<p>")
    assert "<b>" in translated
    answer = web.post("/translate", {"q": DOG, "source": "de", "target": "en", "alternatives": 2}).json
    assert len(answer["alternatives"]) == 2
    assert answer["translatedText"] not in answer["alternatives"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"source": "de", "target": "en"}, "q: is required"),
        ({"q": "x", "target": "en"}, "source: is required"),
        ({"q": "x", "source": "de"}, "target: is required"),
        ({"q": "x", "source": "de", "target": "fr"}, "no model from 'de' to 'fr'"),
        ({"q": "x", "source": "de", "target": "en", "format": "pdf"}, "format: "),
        ({"q": ["x", 3], "source": "de", "target": "en"}, "q[1]: must be a string"),
        ({"q": "x\ud800", "source": "de", "target": "en"}, "q: has a lone surrogate"),
        ({"q": "x", "source": "de", "target": "en", "alternatives": 99}, "alternatives: "),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_what_is_wrong_is_a_bad_request_by_name(web: Web, asked: dict[str, object], told: str) -> None:
    answer = web.post("/translate", asked)
    assert answer.status == 400
    assert told in answer.json["error"]


def upload(web: Web, name: str, content: bytes) -> Answer:
    return web.upload("/translate_file", name, content, source="auto", target="en")


def test_a_file_is_translated_in_its_format_and_fetched(web: Web) -> None:
    srt = f"1\n00:00:01,000 --> 00:00:02,000\n{DOG}\n\n2\n00:00:03,000 --> 00:00:04,000\nGuten Morgen.\n"
    answer = upload(web, "film.srt", srt.encode())
    fetched = ask(answer.json["translatedFileUrl"])
    english = {DOG: "The dog is sleeping in the garden.", "Guten Morgen.": "Good morning."}
    assert fetched.body.decode().splitlines() == [english.get(line, line) for line in srt.splitlines()]
    assert "film.en.srt" in fetched.headers["Content-Disposition"]
    assert web.get("/download_file/0123").status == 404
    assert ".srt" in web.get("/frontend/settings").json["supportedFilesFormat"]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.docx", lambda text: docx(paragraph(text))),
        ("a.odt", lambda text: opened(f"<text:p>{text}</text:p>")),
        ("a.ods", lambda text: opened(f"<text:p>{text}</text:p>", kind="spreadsheet")),
        ("a.pptx", lambda text: pptx(drawn(text))),
        ("a.xlsx", lambda text: xlsx(f"<t>{text}</t>")),
        ("a.epub", lambda text: epub(f"<p>{text}</p>", title=text)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_zip_of_texts_is_translated_and_fetched(web: Web, name: str, make: Callable[[str], bytes]) -> None:
    fetched = ask(upload(web, name, make(DOG)).json["translatedFileUrl"])
    with zipfile.ZipFile(io.BytesIO(fetched.body)) as archive:
        texts = b"".join(map(archive.read, archive.namelist()))
    assert b"The dog is sleeping in the garden." in texts
    assert DOG.encode() not in texts


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.epub", "a.txt.gz", "a.json", "a.yaml", "a.ts"])
def test_a_file_that_is_none_of_its_format_is_refused(web: Web, name: str) -> None:
    answer = upload(web, name, b"%PDF-1.4 no such thing")
    assert answer.status == 400
    assert answer.json["error"].startswith("file: ")


@pytest.mark.parametrize("way", ["raw", "escaped", "query", "multipart"])
def test_forms_are_in_utf8(web: Web, way: str) -> None:
    """As `curl -d` and `curl -F` send them: bytes as they are typed."""
    fields = {"q": "Ich bin müde.", "source": "de", "target": "en"}
    raw = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in fields.items())
    match way:
        case "raw":
            answer = ask(web.url + "/translate", raw.encode())
        case "escaped":
            answer = ask(web.url + "/translate", urlencode(fields).encode())
            several = urlencode([("q", "Ja."), *fields.items()]).encode()
            assert ask(f"{web.url}/translate", several).json["translatedText"] == ["Yes.", "I'm tired."]
        case "query":
            answer = ask(f"{web.url}/translate?{urlencode(fields)}", b"")
        case _:
            answer = web.upload("/translate", "unused", b"", **fields)
    assert answer.json == {"translatedText": "I'm tired."}


@pytest.mark.parametrize(
    "body",
    [b"q=m\xfcde&source=de&target=en", b"q=m%FCde&source=de&target=en", b"q\xfc=Ja.&source=de&target=en"],
    ids=["raw", "escaped", "name"],
)
@pytest.mark.parametrize("path", ["/translate", "/v2/translate"])
def test_a_form_in_another_encoding_is_refused(web: Web, path: str, body: bytes) -> None:
    answer = ask(web.url + path, body)
    assert answer.status == 400
    assert "not in UTF-8" in answer.body.decode()
    if body.isascii():
        assert ask(f"{web.url}{path}?{body.decode()}", b"").status == 400


@pytest.mark.parametrize(("name", "value"), [("q", b"m\xfcde"), ("q\xfc", b"Ja.")])
def test_a_multipart_form_in_another_encoding_is_refused(web: Web, name: str, value: bytes) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n--x--\r\n' % (
        name.encode("latin-1"),
        value,
    )
    answer = ask(web.url + "/translate", body, {"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.status == 400
    assert "not in UTF-8" in answer.json["error"]


def test_health_and_the_description_of_its_paths(web: Web) -> None:
    assert web.get("/health").json == {"status": "ok"}
    described = web.get("/spec").json
    assert described == web.get("/openapi.json").json
    for path, methods in described["paths"].items():
        for method in methods:
            answer = web.get(path) if method == "get" else web.post(path, {})
            assert answer.status not in (405, 501), path
            assert answer.status != 404 or "{name}" in path, path
    asked = described["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert asked["required"] == ["q", "source", "target"]


@pytest.mark.parametrize(
    ("path", "body", "allowed"),
    [("/translate", None, "POST"), ("/languages", b"{}", "GET"), ("/v1/align", None, "POST")],
)
def test_another_method_is_refused_in_json(web: Web, path: str, body: bytes | None, allowed: str) -> None:
    answer = ask(web.url + path, body)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)
    assert f"it must be {allowed}" in str(answer.json["error"])

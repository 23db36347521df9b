"""Pages of other origins, and proxies in front: nobody, unless the server is told of them."""

import asyncio
import logging
from collections.abc import Mapping

import pytest
from click.testing import CliRunner
from tests.server.conftest import RunningServer, StartServer
from tests.server.web.conftest import Answer, ask, multipart

from dragoman_server.cli import serve

ORIGIN = "https://page.example.org"
FORWARDED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "translate.example.org",
    "X-Forwarded-For": "203.0.113.7",
}
FILE, KIND = multipart("a.txt", b"Ja.", source="de", target="en")


async def post(running: RunningServer, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    url = f"http://127.0.0.1:{running.server.http_port}{path}"
    return await asyncio.to_thread(ask, url, body, headers)


async def preflight(running: RunningServer, origin: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.http_port)
    writer.write(
        b"OPTIONS /v1/translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        b"Access-Control-Request-Method: POST\r\n"
        b"Access-Control-Request-Headers: authorization,content-type\r\n"
        b"Origin: " + origin.encode() + b"\r\n\r\n"
    )
    answer = await reader.read()
    writer.close()
    return answer.decode().lower()


async def test_pages_of_the_origins_told_may_call_and_others_may_not(start_server: StartServer) -> None:
    default = await start_server(http_port=0)
    assert "access-control" not in await preflight(default, ORIGIN)
    running = await start_server(http_port=0, http_cors_origins=(ORIGIN,))
    allowed = await preflight(running, ORIGIN)
    assert " 200 " in allowed
    assert f"access-control-allow-origin: {ORIGIN}" in allowed
    assert "access-control-allow-credentials" not in allowed
    refused = await preflight(running, "https://evil.example.org")
    assert " 400 " in refused
    assert "access-control-allow-origin" not in refused
    body = b'{"texts": ["Ja."], "sourceLanguage": "de", "targetLanguage": "en"}'
    answer = await post(running, "/v1/translate", body, {"Origin": ORIGIN})
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "X-Request-ID" in answer.headers["Access-Control-Expose-Headers"]
    # What is refused is told to the page as well.
    answer = await post(running, "/v1/translate", b"{", {"Origin": ORIGIN})
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (400, ORIGIN)
    answer = await post(running, "/v1/translate", body, {"Origin": "https://evil.example.org"})
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("trusted", "is_believed"), [((), False), (("10.0.0.0/8",), False), (("127.0.0.0/8", "::1"), True)]
)
async def test_a_translated_file_is_where_a_trusted_proxy_says_and_no_other(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, trusted: tuple[str, ...], is_believed: bool
) -> None:
    caplog.set_level(logging.INFO)
    running = await start_server(http_port=0, http_trusted_proxies=trusted)
    own, told = f"http://127.0.0.1:{running.server.http_port}", "https://translate.example.org"
    # A host that is none is not taken from a proxy.
    for headers, base in ((FORWARDED, told if is_believed else own), ({"X-Forwarded-Host": 'a"b/../c'}, own)):
        answer = await post(running, "/translate_file", FILE, {**KIND, **headers})
        assert answer.json["translatedFileUrl"].startswith(f"{base}/download_file/")
    assert (await post(running, "/v1/translate", b"{", FORWARDED)).status == 400
    (peer,) = [vars(each)["peer"] for each in caplog.records if "peer" in vars(each)]
    assert peer.startswith("203.0.113.7:" if is_believed else "127.0.0.1:")


@pytest.mark.parametrize(
    ("option", "value"), [("--http-cors-origin", "example.org"), ("--http-trusted-proxy", "proxy.local")]
)
def test_an_origin_or_a_proxy_that_is_none_is_refused(option: str, value: str) -> None:
    ran = CliRunner().invoke(serve, ["--models", "nowhere", option, value])
    assert (ran.exit_code, f"{option} is '{value}'; it must be" in ran.output) == (2, True)

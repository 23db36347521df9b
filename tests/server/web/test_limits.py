"""What the door over HTTP does not let in, and that callers over gRPC never notice."""

import asyncio
import contextlib
import shutil
import ssl
import sys
from pathlib import Path

import pytest
from tests.server.access import ADA, Certified, certify
from tests.server.calls import GERMAN, until
from tests.server.conftest import RunningServer, StartServer
from tests.server.web.conftest import Answer, ask

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.api.grpc_options import raise_limit
from dragoman_server.config import RequestLimits
from dragoman_server.options import MissingExtraError
from dragoman_server.server import PortError

JA = b'{"texts": ["Ja."], "sourceLanguage": "de", "targetLanguage": "en"}'


def url(running: RunningServer, path: str) -> str:
    return f"http://127.0.0.1:{running.server.http_port}{path}"


async def fetch(address: str, body: bytes | None = None, **headers: str) -> Answer:
    return await asyncio.to_thread(ask, address, body, headers)


async def exchange(port: int | None, data: bytes) -> bytes:
    """All that comes back until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_body_that_is_too_large_is_told_so_while_it_comes(start_server: StartServer) -> None:
    running = await start_server(http_port=0, limits=RequestLimits(max_http_body_bytes=1_000_000))
    for path in ("/translate", "/v1/translate", "/v2/translate"):
        assert (await fetch(url(running, path), b"x" * 10_000_000)).status == 413
    # Without a length, in chunks.
    head = b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.http_port)
    writer.write(head + b"f4240\r\n" + b"x" * 1_000_000 + b"\r\n1\r\nx\r\n")
    assert b" 413 " in await reader.readline()
    writer.close()


async def test_who_has_no_token_is_refused_as_each_api_does(start_server: StartServer, tokens: Path) -> None:
    running = await start_server(http_port=0, tokens=tokens)
    refused = {"/v1/translate": 401, "/translate": 403, "/v2/translate": 403}
    for path, status in refused.items():
        assert (await fetch(url(running, path), JA)).status == status
        assert (await fetch(url(running, path), JA, Authorization="Bearer wrong")).status == status
    assert (await fetch(url(running, "/metrics"))).status == 401
    assert (await fetch(url(running, "/readyz"))).status == 200
    assert (await fetch(url(running, "/v1/translate"), JA, Authorization=f"Bearer {ADA}")).status == 200
    as_form = f"q=Ja.&source=de&target=en&api_key={ADA}".encode()
    assert (await fetch(url(running, "/translate"), as_form)).status == 200
    key = f"DeepL-Auth-Key {ADA}"
    as_deepl = b"text=Ja.&source_lang=DE&target_lang=EN-GB"
    assert (await fetch(url(running, "/v2/translate"), as_deepl, Authorization=key)).status == 200


async def test_a_passed_deadline_is_a_gateway_timeout(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(http_port=0, models=slow_models)
    body = JA.replace(b"Ja.", b"Das ist ein sehr langer Satz ohne Ende und ohne Sinn. " * 5)
    answer = await fetch(url(running, "/v1/translate"), body, **{"X-Timeout-Seconds": "0.2"})
    assert (answer.status, answer.json["error"]["status"]) == (504, "DEADLINE_EXCEEDED")
    assert (await fetch(url(running, "/v1/translate"), JA, **{"X-Timeout-Seconds": "x"})).status == 400


async def test_work_that_nobody_waits_for_is_cancelled(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(http_port=0, models=slow_models)
    body = JA.replace(b"Ja.", b"Das ist ein sehr langer Satz ohne Ende und ohne Sinn. " * 5)
    _, writer = await asyncio.open_connection("127.0.0.1", running.server.http_port)
    writer.write(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await running.until("dragoman_running_sentences")
    writer.close()
    await running.until("dragoman_requests_total", outcome="CANCELLED")


async def test_slow_callers_are_cut_off(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_server.web.connections.HEAD_SECONDS", 0.3)
    running = await start_server(http_port=0, limits=RequestLimits(max_http_seconds=0.3))
    port = running.server.http_port
    async with asyncio.timeout(30):
        with contextlib.suppress(ConnectionResetError):
            assert await exchange(port, b"GET / HT") == b""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        assert b" 408 " in await reader.readline()
        writer.close()
        assert b" 431 " in await exchange(port, b"GET / HTTP/1.1\r\nX: " + b"x" * 300_000)


async def hung_up_on(port: int | None, first: bytes, more: bytes) -> None:
    """Until the server hangs up on whoever sends more and more."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(first)
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(more)
            await writer.drain()
            await asyncio.sleep(0.001)


async def test_a_head_counts_however_it_comes_and_so_do_trailers(start_server: StartServer) -> None:
    running = await start_server(http_port=0)
    port = running.server.http_port
    get = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    async with asyncio.timeout(30):
        large = get + b"X: " + b"x" * 70_000 + b"\r\n\r\n"
        assert (await exchange(port, large)).startswith(b"HTTP/1.1 431 ")
        assert b" 431 " in await exchange(port, get + b"\r\n" + large)
        assert b" 431 " in await exchange(port, get + b"X: x\r\n" * 11_000 + b"\r\n")
        last = b"Connection: close\r\n\r\n"
        assert b" 200 " in await exchange(port, get + b"X: " + b"x" * 60_000 + b"\r\n" + last)
        # As many requests one behind the other as are larger together.
        assert (await exchange(port, (get + b"\r\n") * 3_000 + get + last)).count(b" 200 ") == 3_001
        chunked = b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        for around in (b"0\r\n" + b"X: " + b"x" * 60_000 + b"\r\n", b"1;" + b"x" * 60_000):
            await hung_up_on(port, chunked + around, around)
        in_bytes = chunked + b"".join(b"1\r\n%c\r\n" % byte for byte in JA * 2_000)
        assert b" 400 " in await exchange(port, in_bytes + b"0\r\nX: x\r\n\r\n" + get + last)


async def test_a_connection_is_kept_where_nothing_is_late(
    start_server: StartServer, slow_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_server.web.connections.HEAD_SECONDS", 0.2)
    running = await start_server(http_port=0, models=slow_models)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.http_port)
    slow = JA.replace(b"Ja.", b"Das ist ein Satz. " * 3)
    async with asyncio.timeout(30):
        for _ in range(2):
            head = b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(slow)
            writer.write(head + slow + b"GET /healthz HT")
            assert b" 200 " in await reader.readline()
            await reader.readuntil(b'"path": []}')
            writer.write(b"TP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"ok\n")
            await asyncio.sleep(0.5)
        # Empty lines are no request.
        await hung_up_on(running.server.http_port, b"\r\n", b"\r\n")
        writer.close()


async def test_a_connection_counts_before_its_handshake_and_has_a_time_for_it(
    start_server: StartServer, certified: Certified, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_server.web.connections.HEAD_SECONDS", 1.0)
    limits = RequestLimits(max_http_connections=20)
    running = await start_server(http_port=0, limits=limits, **certified.files)
    port = running.server.http_port
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(50)]
    async with asyncio.timeout(30):
        await running.until("dragoman_http_refused_connections_total", 30)
        assert running.metric("dragoman_http_connections") <= 20
        for reader, writer in silent:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        await until(lambda: not running.metric("dragoman_http_connections"))
    assert await is_ready(port, certified)


async def test_a_thousand_connections_leave_grpc_alone(start_server: StartServer) -> None:
    raise_limit()
    running = await start_server(http_port=0, limits=RequestLimits(max_http_connections=300))
    port = running.server.http_port
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1_000)]
    try:
        lines = await asyncio.gather(*(reader.readline() for reader, _ in opened[300:]))
        assert sum(b" 503 " in line for line in lines) == 700
        for _ in range(20):
            response = await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN))
            assert response.translations[0].text == "Ja."
        assert running.metric("dragoman_http_refused_connections_total") == 700
    finally:
        for _, writer in opened:
            writer.close()
    await until(lambda: not running.metric("dragoman_http_connections"))
    assert (await fetch(url(running, "/v1/translate"), JA)).status == 200


async def test_both_doors_share_the_calls_that_there_may_be(start_server: StartServer) -> None:
    running = await start_server(http_port=0, limits=RequestLimits(max_calls=1))
    stream = running.stub.TranslateStream()
    await stream.write(pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**GERMAN)))
    await stream.write(pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id="1", text="Ja.")))
    await stream.read()
    answer = await fetch(url(running, "/translate"), b"q=Ja.&source=de&target=en")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    stream.cancel()


async def is_ready(port: int | None, certified: Certified) -> bool:
    """Whether a caller who trusts this certificate is answered."""
    context = ssl.create_default_context(cadata=certified.authority.cert_pem.bytes().decode())
    opened = asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
    try:
        reader, writer = await opened
    except ssl.SSLCertVerificationError:
        return False
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    is_there = b" 200 " in await reader.readline()
    writer.close()
    return is_there


async def test_a_certificate_is_used_over_http_and_a_renewed_one_from_then_on(
    start_server: StartServer, certified: Certified, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_server.certificate.LOOK_SECONDS", 0.05)
    running = await start_server(http_port=0, **certified.files)
    assert await is_ready(running.server.http_port, certified)
    renewed = certify(certified.tls_certificate.parent, "127.0.0.1")
    async with asyncio.timeout(30):
        while not await is_ready(running.server.http_port, renewed):
            await asyncio.sleep(0.02)


async def test_no_handshake_fails_while_certificates_are_renewed(
    start_server: StartServer, certified: Certified, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_server.certificate.LOOK_SECONDS", 0.001)
    running = await start_server(http_port=0, **certified.files)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    pairs = []
    for number in range(2):
        folder = certified.tls_certificate.parent / str(number)
        folder.mkdir()
        pairs.append(certify(folder, "127.0.0.1"))
    shown = set()
    for number in range(120):
        if number % 2 == 0:
            pair = pairs[number // 2 % 2]
            shutil.copy(pair.tls_certificate, certified.tls_certificate)
            shutil.copy(pair.tls_key, certified.tls_key)
        _, writer = await asyncio.open_connection("127.0.0.1", running.server.http_port, ssl=context)
        shown.add(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.close()
    assert len(shown) > 1


async def test_what_http_lacks_is_told(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await start_server(http_port=0)
    with pytest.raises(PortError, match="--http-port"):
        await start_server(http_port=first.server.http_port)
    for name in [name for name in sys.modules if name.startswith("dragoman_server.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.routing", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[web\]'"):
        await start_server(http_port=0)

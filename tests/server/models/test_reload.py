"""The models folder read again while the server serves: what comes, what goes, and what stays as it is."""

import asyncio
import gc
import shutil
import signal
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from dragoman_bundle import Bundle, read_manifest
from dragoman_bundle.manifest import CARD_FILE
from dragoman_bundle.writer import seal
from tests.server.calls import GERMAN, NOT_SERVING, SERVING, failure, health, held, item, reason_of, until
from tests.server.conftest import RunningServer, StartProcess, StartServer, fetch
from tests.server.copying_bundle import MANIFEST, write_bundle
from tests.server.server_process import HANGING, ServerProcess, make_late

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server.engine import DeviceUnavailableError
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.models import loader
from dragoman_server.models.model import Model


@pytest.fixture
async def running(start_server: StartServer, tmp_path: Path) -> RunningServer:
    """A server of de-en/1, in a folder of its own."""
    write_bundle(tmp_path)
    return await start_server(models=tmp_path)


def served(running: RunningServer) -> dict[str, Model]:
    return {model.key: model for model in running.server._models.repository.models}


async def ask(running: RunningServer, model: str = "") -> str:
    """The version that answers."""
    request = pb.TranslateRequest(texts=["Ja."], model=model, **({} if model else GERMAN))
    response = await running.stub.Translate(request)
    assert response.translations[0].text == "Ja."
    return response.model.version


async def test_a_new_version_is_served_and_the_old_one_stays(running: RunningServer, tmp_path: Path) -> None:
    before = served(running)["de-en/1"]
    assert await ask(running) == "1"
    write_bundle(tmp_path, "de-en/2")
    await running.server.reload()
    assert await ask(running) == "2"
    assert await ask(running, "de-en/1") == "1"
    assert served(running)["de-en/1"] is before
    assert await health(running, "de-en/2") == SERVING
    assert running.metric("dragoman_model_info") == 2


async def test_a_model_that_is_gone_ends_with_its_last_stream(running: RunningServer, tmp_path: Path) -> None:
    old = served(running)["de-en/1"]
    more = asyncio.Event()
    config = pb.TranslateStreamRequest(config={"model": "de-en/1"})
    stream = running.stub.TranslateStream(held(config, item("1", "Ja."), item("2", "Nein."), goes_on=more))
    assert (await stream.read()).id == "1"
    write_bundle(tmp_path, "de-en/2")
    shutil.rmtree(tmp_path / "de-en" / "1")
    await running.server.reload()
    assert (await failure(ask(running, "de-en/1"))).code() is grpc.StatusCode.NOT_FOUND
    assert await health(running, "de-en/1") == NOT_SERVING
    assert await health(running, "de-en") == SERVING
    assert [running.metric("dragoman_model_info", version=version) for version in "12"] == [0, 1]
    assert running.metric("dragoman_texts_total", version="1") == 1
    assert old.engine.is_alive
    more.set()
    second = await stream.read()
    assert (second.id, second.translation.text, second.model.version) == ("2", "Nein.", "1")
    assert await stream.read() is grpc.aio.EOF
    await until(lambda: not old.engine.is_alive)
    # No engine of the server's was lost: it goes on.
    assert await ask(running) == "2"


async def test_the_metrics_hold_no_model_that_has_ended(running: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "de-en" / "bad").mkdir()
    num_lines = len(fetch(running.metrics_url).splitlines())
    for version in range(2, 22):
        write_bundle(tmp_path, f"de-en/{version}")
        shutil.rmtree(tmp_path / "de-en" / str(version - 1))
        await running.server.reload()
        assert await ask(running) == str(version)
    await until(lambda: len(fetch(running.metrics_url).splitlines()) <= num_lines)
    assert 'version="21"' in fetch(running.metrics_url)


@pytest.mark.parametrize("is_alone", [False, True])
async def test_a_damaged_bundle_is_refused(running: RunningServer, tmp_path: Path, is_alone: bool) -> None:
    """Where it is the only one, the reload has failed."""
    if is_alone:
        shutil.rmtree(tmp_path / "de-en" / "1")
    graph = write_bundle(tmp_path, "de-en/2") / "fp32" / "encoder.onnx"
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-1])
    await running.server.reload()
    assert await ask(running) == "1"
    assert is_alone or await health(running, "de-en/2") == NOT_SERVING
    assert running.metric("dragoman_refused_bundles") == 1
    assert running.metric("dragoman_last_reload_successful") == (not is_alone)
    graph.write_bytes(whole)
    await running.server.reload()
    assert await ask(running) == "2"
    assert await health(running, "de-en/2") == SERVING
    assert running.metric("dragoman_refused_bundles") == 0
    assert running.metric("dragoman_last_reload_successful") == 1


async def test_a_quality_recorded_meanwhile_is_no_change(running: RunningServer, tmp_path: Path) -> None:
    before = served(running)["de-en/1"]
    folder = tmp_path / "de-en" / "1"
    (folder / CARD_FILE).write_text("BLEU 99")
    quality = replace(MANIFEST.quality[0], score=99.0)
    # As `dragoman record-quality` does, which writes today's format.
    seal(folder, replace(read_manifest(folder), quality=(quality,)))
    await running.server.reload()
    assert running.metric("dragoman_refused_bundles") == 0
    assert served(running)["de-en/1"] is before


async def test_what_changes_or_goes_while_it_is_served_is_served_as_it_was(
    running: RunningServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = tmp_path / "de-en" / "1" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"Nobody"', '"Somebody"'))
    await running.server.reload()
    told = reason_of(caplog, "bundle refused")
    assert "de-en/1 is served as it was; export to a new version instead" in told
    assert running.metric("dragoman_refused_bundles") == 1
    # Nothing is left to serve.
    shutil.rmtree(tmp_path / "de-en")
    await running.server.reload()
    assert "holds no bundle" in reason_of(caplog, "not reloaded")
    assert running.metric("dragoman_last_reload_successful") == 0
    assert await ask(running) == "1"
    assert await health(running, "de-en/1") == SERVING


async def test_no_call_is_lost_while_versions_come_and_go(running: RunningServer, tmp_path: Path) -> None:
    answered = 0
    stop = asyncio.Event()

    async def call() -> None:
        nonlocal answered
        while not stop.is_set():
            await ask(running)
            answered += 1

    callers = [asyncio.create_task(call()) for _ in range(8)]
    first = served(running)["de-en/1"]
    for version in range(2, 6):
        write_bundle(tmp_path, f"de-en/{version}")
        shutil.rmtree(tmp_path / "de-en" / str(version - 1))
        await running.server.reload()
        assert list(served(running)) == [f"de-en/{version}"]
        seen = answered
        await until(lambda seen=seen: answered >= seen + 20)
    stop.set()
    await asyncio.gather(*callers)
    assert not first.engine.is_alive
    # The versions' own counters leave with them.
    await running.calls_are_counted()
    handled = {"grpc_method": "Translate"}
    assert running.metric("grpc_server_handled_total", grpc_code="OK", **handled) == answered
    assert running.metric("grpc_server_handled_total", **handled) == answered


async def test_a_drain_ends_retiring_models_too(start_server: StartServer, tmp_path: Path) -> None:
    write_bundle(tmp_path)
    running = await start_server(models=tmp_path, drain_seconds=0.2)
    old = served(running)["de-en/1"]
    config = pb.TranslateStreamRequest(config={"model": "de-en/1"})
    stream = running.stub.TranslateStream(held(config, item("1", "Ja.")))
    assert (await stream.read()).id == "1"
    write_bundle(tmp_path, "de-en/2")
    shutil.rmtree(tmp_path / "de-en" / "1")
    await running.server.reload()
    assert old.engine.is_alive
    await running.server.drain()
    assert not old.engine.is_alive


# Hangs up on itself at the first import that takes time.
HANGING_UP = """
import importlib.abc, os, runpy, signal, sys
class HangUp(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "click":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGHUP)
sys.meta_path.insert(0, HangUp())
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("command", [["dragoman_server"], ["dragoman", "serve"]])
def test_sighup_reloads_and_ends_no_process_that_has_just_begun(tmp_path: Path, command: list[str]) -> None:
    write_bundle(tmp_path)
    with (
        ServerProcess(tmp_path, command=[sys.executable, "-c", HANGING_UP, *command]) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        server.wait_for("reloaded")
        for version in ("2", "3"):
            write_bundle(tmp_path, f"de-en/{version}")
            server.process.send_signal(signal.SIGHUP)
            server.wait_for("reloaded")
            request = pb.TranslateRequest(texts=["Ja."], **GERMAN)
            assert TranslationServiceStub(channel).Translate(request).model.version == version
        assert server.stop()[0] == 0


def test_a_signal_while_models_load_is_no_reason_to_end(start_process: StartProcess, tmp_path: Path) -> None:
    write_bundle(tmp_path)
    pipe = make_late(tmp_path / "de-en" / "2" / "manifest.json")
    server = start_process(tmp_path, environment=HANGING)
    with pipe.open("w"):
        server.process.send_signal(signal.SIGHUP)
        pipe.unlink()
    server.wait_for("ready")
    assert server.wait_for("reloaded")["models"] == ["de-en/1"]
    assert server.stop()[0] == 0


def test_a_server_ends_without_waiting_for_a_reload(start_process: StartProcess, tmp_path: Path) -> None:
    write_bundle(tmp_path)
    server = start_process(tmp_path, "--drain-seconds", 1, environment=HANGING)
    server.wait_for("ready")
    for version in ("2", "4"):
        write_bundle(tmp_path, f"de-en/{version}")
    pipe = make_late(tmp_path / "de-en" / "3" / "manifest.json")
    server.process.send_signal(signal.SIGHUP)
    with pipe.open("w"):
        server.process.terminate()
        server.wait_for("stopped")
        assert server.end() == (0, "")


async def test_nothing_is_left_of_what_a_reload_loads_before_its_device_fails(
    running: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decoders: list[weakref.ref[OnnxDecoder]] = []
    open_decoder = loader.opening.open_decoder

    def open_or_fail(bundle: Bundle, options: DecoderOptions) -> OnnxDecoder:
        if bundle.manifest.version == "3":
            raise DeviceUnavailableError("no more memory")
        decoder = open_decoder(bundle, options)
        decoders.append(weakref.ref(decoder))
        return decoder

    monkeypatch.setattr(loader.opening, "open_decoder", open_or_fail)
    write_bundle(tmp_path, "de-en/2")
    write_bundle(tmp_path, "de-en/3")
    await running.server.reload()
    assert reason_of(caplog, "not reloaded") == "no more memory"
    assert running.metric("dragoman_model_info") == 1
    assert running.metric("dragoman_provider_info", version="2") == 0
    # The error's trace has them, until the loop and the thread that loaded them are done with it.
    deadline = asyncio.get_running_loop().time() + 30
    while any(decoder() for decoder in decoders) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
        gc.collect()
    assert [decoder() for decoder in decoders] == [None]


async def test_a_model_that_is_gone_may_come_again(running: RunningServer, tmp_path: Path) -> None:
    write_bundle(tmp_path, "de-en/2")
    away = tmp_path.parent / f"{tmp_path.name}-away"
    for _ in range(2):
        (tmp_path / "de-en" / "1").rename(away)
        await running.server.reload()
        assert running.metric("dragoman_queue_limit_sentences", version="1") == 0
        away.rename(tmp_path / "de-en" / "1")
        await running.server.reload()
        assert await ask(running, "de-en/1") == "1"
        assert await health(running, "de-en/1") == SERVING
        assert running.metric("dragoman_queue_limit_sentences", version="1") > 0
        assert running.metric("dragoman_texts_total", version="1") >= 1

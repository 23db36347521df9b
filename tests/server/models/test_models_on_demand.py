"""A server with room for fewer models than it serves: what is loaded when, and what callers see of it."""

import asyncio
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from dragoman_bundle import Bundle
from dragoman_bundle.tokenizers.tokenizer import FORMAL, INFORMAL
from google.rpc import error_details_pb2
from tests.server.calls import NOT_SERVING, SERVING, detail, failure, health, held, item, reason_of, until
from tests.server.conftest import CPU, RunningServer, StartServer
from tests.server.copying_bundle import write_bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import EngineConfig, ServerConfig
from dragoman_server.metrics.translation import ModelMetrics
from dragoman_server.models import on_demand
from dragoman_server.models.loader import ModelLoader
from dragoman_server.models.model import Model
from dragoman_server.models.on_demand import STAY_LOADS, ModelOnDemand, Residency, choose_leaving, next_choice
from dragoman_server.models.repository import RepositoryError


def stay(*, since: float = 0.0, load: float = 1.0, used: float = 0.0, inside: int = 0) -> Residency:
    return Residency(since=since, load_seconds=load, used_at=used, num_inside=inside)


def test_the_least_recently_used_idle_model_goes_and_is_chosen_no_second_time() -> None:
    stays = {"a": stay(used=3.0), "b": stay(used=1.0, inside=1), "c": stay(used=2.0)}
    assert choose_leaving(stays, now=100.0) == "c"
    stays["c"].is_leaving = True
    assert choose_leaving(stays, now=100.0) == "a"
    assert choose_leaving({"c": stays["c"]}, now=100.0) is None
    assert next_choice({"c": stays["c"]}) is None


def test_of_models_that_are_always_in_use_the_one_there_longest_goes_once_its_loading_was_worth_it() -> None:
    stays = {"a": stay(since=10.0, load=2.0, inside=3), "b": stay(since=11.0, load=0.5, inside=1)}
    assert next_choice(stays) == 11.0 + STAY_LOADS * 0.5
    assert choose_leaving(stays, now=11.0 + STAY_LOADS * 0.5 - 0.1) is None
    assert choose_leaving(stays, now=11.0 + STAY_LOADS * 0.5) == "b"
    assert choose_leaving(stays, now=10.0 + STAY_LOADS * 2.0) == "a"


NAMES = "abcdef"
TIMEOUT = 60.0


@pytest.fixture(scope="module")
def six_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("six_models")
    for name in NAMES:
        write_bundle(folder, f"{name}/1")
    return folder


@pytest.fixture
def folder(six_models: Path, tmp_path: Path) -> Path:
    """A models folder of the test's own with a/1 to f/1."""
    return shutil.copytree(six_models, tmp_path / "models")


async def ask(running: RunningServer, model: str, timeout: float = TIMEOUT) -> str:
    """The version that answers."""
    request = pb.TranslateRequest(texts=["Ja."], model=model)
    response = await running.stub.Translate(request, timeout=timeout)
    assert response.translations[0].text == "Ja."
    return response.model.version


async def loaded(running: RunningServer) -> str:
    listed = (await running.stub.ListModels(pb.ListModelsRequest())).models
    for model in listed:
        assert bool(model.precision) == bool(model.providers) == model.loaded
        for name in ("dragoman_model_loaded", "dragoman_model_info"):
            assert running.metric(name, model=model.name, version=model.version) == model.loaded
    return "".join(model.name for model in listed if model.loaded)


def entry(running: RunningServer, name: str) -> ModelOnDemand:
    found = running.server._models.repository.by_name(name)
    assert isinstance(found, ModelOnDemand)
    return found


async def until_waiting(running: RunningServer, name: str, num_calls: int) -> None:
    """Until so many calls have chosen the model."""
    await until(lambda: entry(running, name).calls.num_inside >= num_calls)


def damage(path: Path) -> None:
    """Other bytes, as many as before."""
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


async def test_the_first_request_loads_a_model_and_unloads_another(
    start_server: StartServer, folder: Path
) -> None:
    running = await start_server(models=folder, max_loaded_models=2)
    assert await loaded(running) == ""
    assert await health(running, "a/1") == SERVING
    assert running.metric("dragoman_serving") == 1
    assert running.metric("dragoman_requests_total", model="a") == 0
    assert await ask(running, "a") == "1"
    assert await loaded(running) == "a"
    assert running.metric("dragoman_model_load_seconds_count") == 1
    assert running.metric("dragoman_texts_total", model="a") == 1
    for name in "bac":
        await ask(running, name)
    assert await loaded(running) == "ac"
    await ask(running, "b")
    assert await loaded(running) == "bc"
    # What was done stays counted.
    assert running.metric("dragoman_texts_total", model="a") == 2
    assert await health(running, "a/1") == SERVING


async def test_what_a_model_knows_is_known_unloaded(start_server: StartServer, tmp_path: Path) -> None:
    write_bundle(tmp_path, "a/1")
    write_bundle(tmp_path, "b/1", tags=(FORMAL, INFORMAL))
    running = await start_server(models=tmp_path, max_loaded_models=1)
    assert [entry(running, name).knows(FORMAL) for name in "ab"] == [False, True]
    assert await loaded(running) == ""


async def test_all_are_answered_and_never_more_than_fit_are_loaded(
    start_server: StartServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ever_loaded: list[Model] = []
    others = []
    load = ModelLoader.load

    def counted(loader: ModelLoader, bundle: Bundle, metrics: ModelMetrics) -> Model:
        others.append(sum(model.engine.is_alive for model in list(ever_loaded)))
        ever_loaded.append(load(loader, bundle, metrics))
        return ever_loaded[-1]

    monkeypatch.setattr(ModelLoader, "load", counted)
    running = await start_server(models=folder, max_loaded_models=2)
    answers = await asyncio.gather(*(ask(running, NAMES[number % 6]) for number in range(60)))
    assert answers == ["1"] * 60
    assert max(others) <= 1
    assert len(await loaded(running)) == 2


async def test_a_model_in_use_stays_and_others_wait(start_server: StartServer, folder: Path) -> None:
    running = await start_server(models=folder, max_loaded_models=1)
    async with entry(running, "a").use() as model:
        waiting = asyncio.create_task(ask(running, "b"))
        await until_waiting(running, "b", 1)
        assert model.engine.is_alive
        assert not waiting.done()
    assert await waiting == "1"
    assert not model.engine.is_alive
    assert await loaded(running) == "b"


async def test_models_that_are_always_in_use_take_turns(
    start_server: StartServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_demand, "STAY_LOADS", 0)
    running = await start_server(models=folder, max_loaded_models=1)
    order: list[str] = []

    async def note(name: str) -> None:
        await ask(running, name)
        order.append(name)

    async with entry(running, "a").use():
        tasks = [asyncio.create_task(note("b"))]
        await until_waiting(running, "b", 1)
        # It would be answered at once, were nobody waiting.
        tasks.append(asyncio.create_task(note("a")))
        await until_waiting(running, "a", 1)
        assert not order
    await asyncio.gather(*tasks)
    assert order == ["b", "a"]


async def test_nobody_waits_for_a_model_past_a_deadline(start_server: StartServer, folder: Path) -> None:
    running = await start_server(models=folder, max_loaded_models=1)
    async with entry(running, "a").use():
        assert (await failure(ask(running, "b", timeout=0.3))).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: not entry(running, "b").calls.num_inside)
    await ask(running, "a")
    # Nobody wants it any more.
    assert await loaded(running) == "a"
    assert running.metric("dragoman_requests_total", model="b", outcome="DEADLINE_EXCEEDED") == 1


async def test_a_stream_that_is_idle_keeps_no_model_loaded(start_server: StartServer, folder: Path) -> None:
    running = await start_server(models=folder, max_loaded_models=1)
    more = asyncio.Event()
    config = pb.TranslateStreamRequest(config={"model": "a"})
    stream = running.stub.TranslateStream(held(config, item("1", "Ja."), item("2", "Nein."), goes_on=more))
    assert (await stream.read()).id == "1"
    await ask(running, "b")
    assert await loaded(running) == "b"
    more.set()
    second = await stream.read()
    assert (second.id, second.translation.text) == ("2", "Nein.")
    assert await stream.read() is grpc.aio.EOF


async def test_what_can_not_be_loaded_is_told_and_tried_again(
    start_server: StartServer, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    graph = folder / "a" / "1" / "fp32" / "encoder.onnx"
    whole = graph.read_bytes()
    damage(graph)
    running = await start_server(models=folder, max_loaded_models=2)
    error = await failure(ask(running, "a"))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "model a/1 could not be loaded, and the server's log says why" in error.details()
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "MODEL_NOT_LOADED"
    assert detail(error, error_details_pb2.RetryInfo()).retry_delay.ToTimedelta().total_seconds() == 1
    assert "is not the file that was exported" in reason_of(caplog, "model not loaded")
    assert running.metric("dragoman_model_load_failures_total", model="a") == 1
    assert running.metric("dragoman_requests_total", model="a", outcome="UNAVAILABLE") == 1
    assert await ask(running, "b") == "1"
    graph.write_bytes(whole)
    async with asyncio.timeout(TIMEOUT):
        while await health(running, "a/1") == NOT_SERVING:
            await asyncio.sleep(0.05)
    assert await ask(running, "a") == "1"
    assert await health(running, "a/1") == SERVING


async def test_what_could_not_be_loaded_is_not_tried_at_every_request(
    start_server: StartServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_server.models.on_demand.FIRST_RETRY_SECONDS", 1000.0)
    monkeypatch.setattr("dragoman_server.models.on_demand.MAX_RETRY_SECONDS", 1000.0)
    damage(folder / "a" / "1" / "fp32" / "encoder.onnx")
    running = await start_server(models=folder, max_loaded_models=2)
    for _ in range(3):
        with pytest.raises(grpc.aio.AioRpcError, match="could not be loaded"):
            await ask(running, "a")
    assert running.metric("dragoman_model_load_failures_total", model="a") == 1
    assert await health(running, "a/1") == NOT_SERVING
    assert await health(running, "b/1") == SERVING
    assert running.metric("dragoman_serving") == 1


async def test_what_shows_at_a_look_is_refused_at_the_start(start_server: StartServer, folder: Path) -> None:
    graph = folder / "a" / "1" / "fp32" / "encoder.onnx"
    graph.write_bytes(graph.read_bytes()[:-1])
    (folder / "b" / "1" / "shared.spm").unlink()
    (folder / "c" / "1").rename(folder / "c" / "2")
    running = await start_server(models=folder, max_loaded_models=1)
    assert running.metric("dragoman_refused_bundles") == 3
    listed = (await running.stub.ListModels(pb.ListModelsRequest())).models
    assert [model.name for model in listed] == ["d", "e", "f"]
    for config in ({"precision": "fp16"}, {"max_source_tokens": 63}):
        engine = replace(CPU, **config)
        with pytest.raises(RepositoryError, match=r"fp16|63"):
            await start_server(models=folder, max_loaded_models=1, engine=engine)


async def test_a_pinned_model_is_there_at_once_and_stays(start_server: StartServer, folder: Path) -> None:
    running = await start_server(models=folder, max_loaded_models=2, pinned_models=("a",))
    assert await loaded(running) == "a"
    for name in "bcd":
        await ask(running, name)
    assert await loaded(running) == "ad"
    write_bundle(folder, "a/2")
    await running.server.reload()
    # The pin is the newest version's now: it is loaded, and the old one made room for it, or the other did.
    assert entry(running, "a/2").loaded is not None
    for name in "bc":
        await ask(running, name)
    assert entry(running, "a/2").loaded is not None
    assert entry(running, "a/1").loaded is None


async def test_pins_that_can_not_be_kept_are_told(start_server: StartServer, folder: Path) -> None:
    with pytest.raises(RepositoryError, match=r"--pinned-model z: there is no model 'z'; there are: a/1, "):
        await start_server(models=folder, max_loaded_models=2, pinned_models=("z",))
    with pytest.raises(RepositoryError, match=r"2 models are pinned, and max_loaded_models is 2"):
        await start_server(models=folder, max_loaded_models=2, pinned_models=("a", "b/1"))
    with pytest.raises(ValueError, match=r"pinned_models begins with 'a', and without max_loaded_models"):
        ServerConfig(models=folder, pinned_models=("a",))


async def test_a_reload_looks_at_models_and_loads_none(start_server: StartServer, folder: Path) -> None:
    running = await start_server(models=folder, max_loaded_models=3)
    await ask(running, "a")
    before = {name: entry(running, name) for name in "abe"}
    write_bundle(folder, "a/2")
    for name in "ab":
        # One that is loaded is served as it was, of one that is not the new one.
        manifest = folder / name / "1" / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"Nobody"', '"Somebody"'))
    (folder / "c" / "1" / "shared.spm").unlink()
    (folder / "d" / "1").rename(folder.parent / f"{folder.name}-away")
    await running.server.reload()
    assert await loaded(running) == "a"
    assert running.metric("dragoman_refused_bundles") == 2
    assert entry(running, "a/1") is before["a"]
    assert entry(running, "b") is not before["b"]
    assert entry(running, "e") is before["e"]
    assert (await running.stub.GetModel(pb.GetModelRequest(name="b"))).model.credit == "Somebody"
    for name in "cd":
        assert (await failure(ask(running, name))).code() is grpc.StatusCode.NOT_FOUND
        assert running.metric("dragoman_model_loaded", model=name) == 0
    assert [await ask(running, name) for name in ("a/1", "a", "b")] == ["1", "2", "1"]


async def test_a_bundle_that_changed_since_it_was_looked_at_is_not_served(
    start_server: StartServer, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = await start_server(models=folder, max_loaded_models=1)
    manifest = folder / "a" / "1" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"Nobody"', '"Somebody"'))
    with pytest.raises(grpc.aio.AioRpcError, match="could not be loaded"):
        await ask(running, "a")
    assert "SIGHUP has it read again" in reason_of(caplog, "model not loaded")
    await running.server.reload()
    assert await ask(running, "a") == "1"


async def test_a_model_that_is_gone_ends_when_nobody_uses_it(start_server: StartServer, folder: Path) -> None:
    running = await start_server(models=folder, max_loaded_models=2)
    await ask(running, "a")
    model = entry(running, "a").loaded
    assert model is not None
    (folder / "a" / "1").rename(folder.parent / f"{folder.name}-away")
    await running.server.reload()
    await until(lambda: not (model.engine.is_alive or running.metric("dragoman_texts_total", model="a")))
    assert await ask(running, "b") == "1"


class Held:
    """Loading, of which that of model a waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.goes_on = threading.Event(), threading.Event()
        self.models: list[Model] = []
        load = ModelLoader.load

        def load_late(loader: ModelLoader, bundle: Bundle, metrics: ModelMetrics) -> Model:
            if bundle.manifest.name == "a":
                self.begun.set()
                self.goes_on.wait()
            self.models.append(load(loader, bundle, metrics))
            return self.models[-1]

        monkeypatch.setattr(ModelLoader, "load", load_late)

    async def until_ended(self) -> None:
        """What was loaded too late."""
        self.goes_on.set()
        await until(lambda: [one.key for one in self.models[-1:] if not one.engine.is_alive] == ["a/1"])


async def test_a_load_that_takes_long_holds_up_nobody_else(
    start_server: StartServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    running = await start_server(models=folder, max_loaded_models=2, drain_seconds=0.2)
    waiting = asyncio.create_task(ask(running, "a"))
    await asyncio.to_thread(held.begun.wait)
    for name in "bcb":
        assert await ask(running, name) == "1"
    # Nor the end of the server.
    await running.server.drain()
    with pytest.raises(grpc.aio.AioRpcError):
        await waiting
    await held.until_ended()


async def test_a_load_that_takes_too_long_is_given_up(
    start_server: StartServer, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = Held(monkeypatch)
    running = await start_server(models=folder, max_loaded_models=1, max_reload_seconds=0.2)
    assert (await failure(ask(running, "a"))).code() is grpc.StatusCode.UNAVAILABLE
    assert reason_of(caplog, "model not loaded") == "it took longer than 0.2 seconds"
    await held.until_ended()


async def test_what_is_unloaded_leaves_no_process(start_server: StartServer, folder: Path) -> None:
    engine = EngineConfig(device="cpu", threads=2)
    running = await start_server(models=folder, max_loaded_models=1, engine=engine)
    assert running.server._models.pids() == []
    await ask(running, "a")
    pids = running.server._models.pids()
    assert len(pids) == 2
    assert running.metric("dragoman_engines", model="a") == 2
    await ask(running, "b")
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert len(running.server._models.pids()) == 2

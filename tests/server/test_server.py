"""The life of a server, in a process of its own where signals and exit codes matter."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import grpc
import pytest
from click.testing import CliRunner, Result
from dragoman_bundle import Bundle
from google.rpc.error_details_pb2 import RetryInfo
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.server.access import Certified
from tests.server.calls import GERMAN, NOT_SERVING, SERVING, detail, failure, held, item, until
from tests.server.conftest import CPU, RunningServer, StartProcess, StartServer, free_port
from tests.server.copying_bundle import write_bundle
from tests.server.server_process import HANGING, ServerProcess, hang, make_late
from tests.server.wire import never_reading, wire_to

from dragoman.connection.channel import CHANNEL_OPTIONS
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServiceStub
from dragoman_server import cli
from dragoman_server.config import RequestLimits, ServerConfig
from dragoman_server.engine import DeviceUnavailableError, PrecisionUnavailableError
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.engine.scheduling.scheduler import Scheduler
from dragoman_server.healthcheck import healthcheck
from dragoman_server.server import EngineEndedError, PortError, Server, serve


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman_server", "--metrics-port", "0", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | environment)


def test_a_signal_lets_accepted_calls_finish(start_process: StartProcess, slow_models: Path) -> None:
    server = start_process(slow_models)
    with grpc.insecure_channel(server.address) as channel:
        stub = TranslationServiceStub(channel)
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest()).status == SERVING
        watch = health.Watch(health_pb2.HealthCheckRequest(service="dragoman.v1.TranslationService"))
        assert next(watch).status == SERVING
        accepted = stub.Translate.future(pb.TranslateRequest(texts=["wort " * 10] * 8, **GERMAN))
        quick = pb.TranslateRequest(texts=["ja"], **GERMAN)
        assert stub.Translate(quick).translations[0].text == "ja"
        server.process.terminate()
        assert next(watch).status == NOT_SERVING
        with pytest.raises(grpc.RpcError) as caught:
            stub.Translate(quick)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert len(accepted.result().translations) == 8
    code, rest = server.end()
    assert code == 0
    events = [json.loads(line)["message"] for line in rest.splitlines()]
    assert "draining" in events
    assert events[-1] == "stopped"


@pytest.mark.parametrize("signals", [1, 2])
def test_a_drain_that_takes_too_long_or_a_second_signal_cuts_calls_off(
    start_process: StartProcess, slow_models: Path, signals: int
) -> None:
    seconds = "0.1" if signals == 1 else "30"
    server = start_process(slow_models, "--drain-seconds", seconds)
    with grpc.insecure_channel(server.address) as channel:
        stub = TranslationServiceStub(channel)
        accepted = stub.Translate.future(pb.TranslateRequest(texts=["wort " * 10] * 500, **GERMAN))
        stub.Translate(pb.TranslateRequest(texts=["ja"], **GERMAN))
        server.process.send_signal(signal.SIGINT)
        if signals == 2:
            server.wait_for("draining")
            server.process.send_signal(signal.SIGINT)
            assert server.end()[0] == -signal.SIGINT
            return
        assert accepted.exception().code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    code, rest = server.end()
    assert code == 3
    assert "cut off" in rest


async def test_the_log_says_what_is_run(start_server: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    await start_server()
    (event,) = [vars(record) for record in caplog.records if record.message == "model ready"]
    assert (event["model"], event["precision"]) == ("de-en/1", "fp32")
    assert event["providers"] == dict.fromkeys(("encoder", "decoder_step"), "CPUExecutionProvider")


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is there on Linux alone")
async def test_the_metrics_can_have_an_address_of_their_own(start_server: StartServer) -> None:
    url = (await start_server(metrics_host="127.0.0.2")).metrics_url
    with urlopen(url.replace("127.0.0.1", "127.0.0.2")) as response:
        assert "dragoman_texts_total" in response.read().decode()
    with pytest.raises(URLError, match="refused"):
        urlopen(url)


def test_a_port_in_use_is_told(models: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        ended = run("--models", str(models), "--port", str(port), "--device", "cpu")
    assert ended.returncode == 1
    # Nothing of grpc's own, which is no JSON, nor a trace.
    (event,) = map(json.loads, ended.stderr.splitlines())
    assert event["reason"].endswith(f"port {port}: Address already in use; choose another with --port")


async def test_two_servers_never_share_a_port(
    running: RunningServer, models: Path, certified: Certified
) -> None:
    metrics_port = int(running.metrics_url.split(":")[2].split("/")[0])
    for config, told in (
        ({"port": running.server.port}, "already in use"),
        ({"port": running.server.port, "host": "127.0.0.1", **certified.files}, "already in use"),
        ({"metrics_port": metrics_port}, f"{metrics_port}: .*; choose another with --metrics-port$"),
    ):
        with pytest.raises(PortError, match=told):
            await Server(ServerConfig(models=models, **({"port": 0, "metrics_port": 0} | config))).start()
    assert await running.stub.ListModels(pb.ListModelsRequest())


@pytest.mark.parametrize("metrics_host", [None, "", "127.0.0.1"])
def test_grpc_and_the_metrics_have_a_port_each_unless_their_hosts_differ(metrics_host: str | None) -> None:
    models = Path("models")
    with pytest.raises(ValueError, match=r"metrics_port is 9055, .*choose another, or 0 for no m"):
        ServerConfig(models=models, port=9055, metrics_host=metrics_host)
    ServerConfig(models=models, port=9055, metrics_host="127.0.0.2")
    ServerConfig(models=models, port=0, metrics_port=0, metrics_host=metrics_host)


def test_cuda_is_demanded_in_vain(models: Path) -> None:
    ended = run("--models", str(models), "--port", "0", "--device", "cuda", CUDA_VISIBLE_DEVICES="")
    assert ended.returncode == 1
    assert "cuda" in ended.stderr.lower()
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("providers", "has_driver", "told"),
    [
        (["CPU"], False, "^cuda cannot be used: no GPU here; auto takes the CPU where there is none$"),
        (["CUDA", "CPU"], False, "^cuda cannot be used: no GPU here; auto takes the CPU"),
        (["CPU"], True, "^cuda cannot be used: .* put onnxruntime-gpu in its place$"),
        (["CUDA", "CPU"], True, "has no fp16 or fp32 graphs, and cuda takes no others; it has int8"),
    ],
)
def test_a_gpu_that_is_missing_is_told_before_graphs_for_it(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, providers: list[str], has_driver: bool, told: str
) -> None:
    bundle = replace(bundle, manifest=replace(bundle.manifest, precisions=("int8",)))
    available = [f"{provider}ExecutionProvider" for provider in providers]
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: available)
    monkeypatch.setattr("dragoman_server.engine.onnx.session._has_driver", lambda: has_driver)
    with pytest.raises((DeviceUnavailableError, PrecisionUnavailableError), match=told):
        open_decoder(bundle, DecoderOptions(device="cuda"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-beam-size", "500"], "--max-beam-size is 500, more rows than --max-rows = 320"),
        (["--max-bulk-share", "nan"], "--max-bulk-share is nan"),
        (["--drain-seconds", "nan"], "--drain-seconds is nan"),
        (["--port", "9055", "--metrics-port", "9055"], "--metrics-port is 9055, where gRPC listens already"),
        (["--threads", "0"], "'--threads'"),
        (["--device", "tpu"], "'tpu'"),
        ([], "DRAGOMAN_SERVE_MAX_QUEU sets no option; did you mean DRAGOMAN_SERVE_MAX_QUEUE?"),
    ],
)
def test_an_option_out_of_bounds_is_named(tmp_path: Path, arguments: list[str], words: str) -> None:
    environment = {} if arguments else {"DRAGOMAN_SERVE_MAX_QUEU": "5"}
    ended = CliRunner(env=environment).invoke(cli.serve, ["--models", str(tmp_path), *arguments])
    assert ended.exit_code == 2
    assert words in ended.output


async def test_calls_are_unavailable_until_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bundle(tmp_path)
    # Loading waits until the test has seen what it came to see.
    hang(monkeypatch)
    pipe = make_late(tmp_path / "de-en" / "2" / "manifest.json")
    port = free_port()
    server = Server(ServerConfig(models=tmp_path, port=port, metrics_port=0, engine=CPU))
    starting = asyncio.ensure_future(server.start())
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        stub, health = TranslationServiceStub(channel), health_pb2_grpc.HealthStub(channel)
        request = pb.TranslateRequest(texts=["Ja."], **GERMAN)
        error = await failure(stub.Translate(request, wait_for_ready=True))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "loading" in error.details()
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING
        await asyncio.to_thread(pipe.write_text, "")
        await starting
        assert (await stub.Translate(request)).translations[0].text == "Ja."
        assert (await health.Check(health_pb2.HealthCheckRequest())).status == SERVING
    await server.drain()


def test_a_signal_while_models_load_leaves_the_rest(start_process: StartProcess, tmp_path: Path) -> None:
    for version in ("1", "3"):
        write_bundle(tmp_path, f"de-en/{version}")
    pipe = make_late(tmp_path / "de-en" / "2" / "manifest.json")
    server = start_process(tmp_path, environment=HANGING)
    with pipe.open("w"):
        server.process.terminate()
        server.wait_for("stopping before the models are loaded")
    assert server.end() == (0, "")


async def test_a_drain_waits_for_readers(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_server.server._FLUSH_SECONDS", 0.1)
    # More than the buffers between them hold.
    large = pb.Translation(text="x" * 32_000_000)
    monkeypatch.setattr("dragoman_server.service.core.write_translation", lambda _: large)
    running = await start_server(drain_seconds=60.0)
    async with (
        asyncio.timeout(60),
        wire_to(running.server.port) as (port, answers_pass),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS) as channel,
    ):
        stub = TranslationServiceStub(channel)
        await stub.ListModels(pb.ListModelsRequest())
        answers_pass.clear()
        answering = asyncio.ensure_future(stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN)))
        await running.until("dragoman_requests_total", outcome="OK")
        draining = asyncio.create_task(running.server.drain())
        done, _ = await asyncio.wait({draining}, timeout=1)
        assert not done
        answers_pass.set()
        assert (await answering).translations[0] == large
        assert await draining


async def test_who_watches_the_health_and_does_not_read_holds_nobody_up(start_server: StartServer) -> None:
    running = await start_server()
    stub = health_pb2_grpc.HealthStub(running.channel)
    # The server gives a caller up that leaves its pings without an answer for 20 seconds.
    async with asyncio.timeout(15), never_reading(running.server.port) as begin:
        begin("/grpc.health.v1.Health/Watch", b"")
        await running.until("grpc_server_started_total", grpc_method="Watch")
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        await running.server.reload()
        draining = asyncio.create_task(running.server.drain())
        assert (await watch.read()).status == NOT_SERVING
        assert await draining


@pytest.mark.parametrize("option", ["max_health_watches", "max_health_watches_per_host"])
async def test_only_so_many_may_watch_the_health(start_server: StartServer, option: str) -> None:
    running = await start_server(limits=RequestLimits(**{option: 2}))
    stub = health_pb2_grpc.HealthStub(running.channel)
    watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(2)]
    assert [(await watch.read()).status for watch in watches] == [SERVING] * 2
    error = await failure(stub.Watch(health_pb2.HealthCheckRequest()).read())
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    named = f"--{option.replace('_', '-')} lets"
    assert f"watched by 2 calls, as many as its {named}" in error.details()
    assert detail(error, RetryInfo())
    watches[0].cancel()
    await running.until("grpc_server_handled_total", grpc_method="Watch", grpc_code="CANCELLED")
    assert (await stub.Watch(health_pb2.HealthCheckRequest()).read()).status == SERVING


async def test_calls_whose_answers_nobody_reads_hold_their_places(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_calls=2), drain_seconds=0.1)
    request = pb.TranslateRequest(texts=["Ja."], **GERMAN)
    async with asyncio.timeout(15), never_reading(running.server.port) as begin:
        for _ in range(2):
            begin("/dragoman.v1.TranslationService/Translate", request.SerializeToString())
        await running.until("dragoman_requests_total", 2, outcome="OK")
        error = await failure(running.stub.Translate(request))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "--max-calls" in error.details()
    async with asyncio.timeout(15):
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await running.stub.Translate(request)
                break
            await asyncio.sleep(0.01)


async def test_an_answer_that_nobody_reads_holds_no_place_for_ever(start_server: StartServer) -> None:
    limits = RequestLimits(max_calls=2, max_stream_idle_seconds=0.5)
    running = await start_server(limits=limits, drain_seconds=60.0)
    async with asyncio.timeout(30), never_reading(running.server.port) as begin:
        for _ in range(2):
            begin("/dragoman.v1.TranslationService/ListModels", b"")
        await running.until("grpc_server_handled_total", 2, grpc_method="ListModels", grpc_code="OK")
        await until(lambda: not running.server._gate.answers.num_inside)
        assert await running.stub.ListModels(pb.ListModelsRequest())
        assert await running.server.drain()


async def test_who_watches_the_health_and_does_not_read_holds_no_place_for_ever(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_server.api.health.MAX_WRITE_SECONDS", 0.5)
    running = await start_server(limits=RequestLimits(max_health_watches=1))
    stub = health_pb2_grpc.HealthStub(running.channel)
    async with asyncio.timeout(30), never_reading(running.server.port) as begin:
        begin("/grpc.health.v1.Health/Watch", b"")
        await running.until("grpc_server_handled_total", grpc_method="Watch")
        assert (await stub.Watch(health_pb2.HealthCheckRequest()).read()).status == SERVING


@pytest.mark.parametrize("ends", ["answered", "refused", "cancelled"])
async def test_ended_calls_hold_up_no_drain(start_server: StartServer, slow_models: Path, ends: str) -> None:
    running = await start_server(models=slow_models, drain_seconds=60.0)
    texts = ["wort " * 10] * (50 if ends == "cancelled" else 1)
    call = running.stub.Translate(
        pb.TranslateRequest(texts=texts, model="none" if ends == "refused" else "de-en")
    )
    if ends == "cancelled":
        await running.until("dragoman_running_sentences")
        call.cancel()
    await asyncio.wait({asyncio.ensure_future(call)})
    async with asyncio.timeout(30):
        assert await running.server.drain()


async def test_a_dead_caller_leaves(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_server.api.grpc_options.KEEPALIVE_MILLISECONDS", 100)
    monkeypatch.setattr("dragoman_server.api.grpc_options.KEEPALIVE_TIMEOUT_MILLISECONDS", 100)
    running = await start_server()
    messages = held(pb.TranslateStreamRequest(config={"model": "de-en"}), item("1", "Ja."))
    async with asyncio.timeout(60), wire_to(running.server.port, both_ways=True) as (port, passes):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = TranslationServiceStub(channel).TranslateStream(messages)
            assert (await call.read()).id == "1"
            # While it answers, it may be silent.
            await asyncio.sleep(1)
            stream = {"grpc_method": "TranslateStream"}
            assert running.metric("grpc_server_handled_total", **stream) == 0
            passes.clear()
            await running.until("grpc_server_handled_total", **stream)
            call.cancel()
        passes.set()


def break_down(scheduler: Scheduler, now: float) -> None:
    raise ValueError("no clock")


async def test_an_ended_engine_is_told(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await start_server()
    stub = health_pb2_grpc.HealthStub(running.channel)
    services = ("", "dragoman.v1.model/de-en/1")
    watched = [stub.Watch(health_pb2.HealthCheckRequest(service=service)) for service in services]
    assert [(await watch.read()).status for watch in watched] == [SERVING, SERVING]
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(Scheduler, "expire", break_down)
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["ja"], **GERMAN)))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert [(await watch.read()).status for watch in watched] == [NOT_SERVING, NOT_SERVING]
    assert running.metric("dragoman_serving") == 0


async def test_a_server_whose_engine_ended_ends_too(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    config = ServerConfig(models=models, port=port, metrics_port=0, engine=CPU)
    serving = asyncio.create_task(serve(config))
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest(), wait_for_ready=True
        )
        while (await watch.read()).status != SERVING:
            pass
        monkeypatch.setattr(threading, "excepthook", lambda _: None)
        monkeypatch.setattr(Scheduler, "expire", break_down)
        with pytest.raises(grpc.aio.AioRpcError):
            await TranslationServiceStub(channel).Translate(pb.TranslateRequest(texts=["ja"], **GERMAN))
        async with asyncio.timeout(20):
            with pytest.raises(EngineEndedError, match="engine of de-en/1 ended"):
                await serving


def processes_of(server: ServerProcess) -> list[int]:
    """Those of its engines, wherever a thread has started them."""
    tasks = Path(f"/proc/{server.process.pid}/task")
    return [int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()]


async def test_a_server_replaces_its_processes(start_process: StartProcess, slow_models: Path) -> None:
    port = free_port()
    options = ("--port", port, "--threads", 2, "--engines-per-process", 1)
    server = start_process(slow_models, *options, "--engine-timeout-seconds", 5, "--drain-seconds", 5)
    await asyncio.to_thread(server.wait_for, "ready")
    codes: list[grpc.StatusCode] = []
    refusals: list[grpc.aio.AioRpcError] = []
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        stub, health = TranslationServiceStub(channel), health_pb2_grpc.HealthStub(channel)

        async def call(number: int) -> None:
            texts = ["ja nein"] * (1 + number % 5)
            try:
                response = await stub.Translate(pb.TranslateRequest(texts=texts, **GERMAN))
                assert [each.text for each in response.translations] == texts
                codes.append(grpc.StatusCode.OK)
            except grpc.aio.AioRpcError as error:
                codes.append(error.code())
                refusals.append(error)

        async def call_while(number: signal.Signals, num_lost: int) -> None:
            codes.clear()
            calls = []
            for attempt in range(40):
                calls.append(asyncio.create_task(call(attempt)))
                await asyncio.sleep(0.02)
                if attempt == 10:
                    for pid in processes_of(server)[:num_lost]:
                        os.kill(pid, number)
            await asyncio.gather(*calls)
            for _ in range(num_lost):
                await asyncio.to_thread(server.wait_for, "an engine's process was replaced")

        for number in (signal.SIGKILL, signal.SIGSTOP):
            await call_while(number, 1)
            assert codes == [grpc.StatusCode.OK] * 40
        # Whoever comes while none runs is told when to come again; all others are answered.
        await call_while(signal.SIGKILL, 2)
        assert len(codes) == 40
        for refusal in refusals:
            assert refusal.code() is grpc.StatusCode.UNAVAILABLE
            assert detail(refusal, RetryInfo())
        watch = health.Watch(health_pb2.HealthCheckRequest(service="dragoman.v1.model/de-en/1"))
        assert (await watch.read()).status == SERVING
        for pid in processes_of(server):
            os.kill(pid, signal.SIGKILL)
        assert [(await watch.read()).status for _ in range(2)] == [NOT_SERVING, SERVING]
        # It ends in its time even where its engines don't.
        stopped = processes_of(server)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        held = stub.Translate(pb.TranslateRequest(texts=["ja"], **GERMAN))
        await asyncio.sleep(0.2)
        server.process.send_signal(signal.SIGTERM)
        _, log = await asyncio.to_thread(server.end)
        with pytest.raises(grpc.aio.AioRpcError):
            await held
    assert '"stopped"' in log
    lost = [event for event in server.log if event["message"] == "an engine's process ended"]
    assert [event["reason"] for event in lost[:2]] == ["signal 9", "no answer for 5 seconds"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in stopped)


def test_why_it_does_not_start_is_in_the_log_or_an_error_where_that_is_text(tmp_path: Path) -> None:
    (tmp_path / "de-en" / "2").mkdir(parents=True)
    ended = run("--models", str(tmp_path), "--port", "0", "--log-format", "json")
    assert ended.returncode == 1
    event = json.loads(ended.stderr.splitlines()[-1])
    assert event["message"] == "not serving"
    assert "no bundle in" in event["reason"]
    assert "de-en/2" in event["reason"]
    graph = write_bundle(tmp_path) / "fp32" / "decoder_step.onnx"
    graph.write_bytes(graph.read_bytes()[:100])
    ended = run("--models", str(tmp_path), "--port", "0", "--log-format", "text")
    assert ended.returncode == 1
    assert "Error: " in ended.stderr
    assert f"{graph} has 100 bytes" in ended.stderr


def test_a_terminal_is_told_in_text_where_the_page_is(tmp_path: Path) -> None:
    write_bundle(tmp_path)
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "dragoman", "serve", "--models", str(tmp_path), "--host", "0.0.0.0"]
    command += ["--port", "0", "--http-port", "0", "--metrics-port", "0"]
    with subprocess.Popen(command, stderr=end) as server, contextlib.ExitStack() as stack:
        stack.callback(os.close, terminal)
        stack.callback(server.kill)
        os.close(end)
        log = ""
        while not re.search('(INFO |")ready.*\n', log):
            log += os.read(terminal, 1 << 16).decode()
        (address,) = re.findall(r" INFO ready .*page=(http://localhost:\d+/)", log)
        with urlopen(address) as page:
            assert b"<textarea" in page.read()


async def test_health_is_told_per_service_and_model(start_server: StartServer, tmp_path: Path) -> None:
    write_bundle(tmp_path)
    (tmp_path / "fr-en" / "1").mkdir(parents=True)
    (tmp_path / "de-en" / "2").mkdir()
    running = await start_server(models=tmp_path)
    stub = health_pb2_grpc.HealthStub(running.channel)
    models = {"de-en": SERVING, "de-en/1": SERVING, "de-en/2": NOT_SERVING, "fr-en": NOT_SERVING}
    expected = {f"dragoman.v1.model/{name}": status for name, status in models.items()}
    for service, status in (expected | {"": SERVING, "dragoman.v1.TranslationService": SERVING}).items():
        told = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert told.status == status, service
    error = await failure(stub.Check(health_pb2.HealthCheckRequest(service="dragoman.v1.model/xx")))
    assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_describes_the_api(start_server: StartServer) -> None:
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    running = await start_server()
    stub = reflection_pb2_grpc.ServerReflectionStub(running.channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    answer = await stub.ServerReflectionInfo(iter([request])).read()
    names = {service.name for service in answer.list_services_response.service}
    assert {"dragoman.v1.TranslationService", "grpc.health.v1.Health"} <= names


async def test_the_health_check_command_asks_a_server(start_server: StartServer) -> None:
    running = await start_server()
    port = running.server.port

    async def ask(*arguments: str, **environment: str) -> Result:
        environment = {"DRAGOMAN_SERVE_PORT": str(port), **environment}
        return await asyncio.to_thread(CliRunner().invoke, healthcheck, arguments, env=environment)

    command = [sys.executable, "-m", "dragoman_server.healthcheck", "--server", f"localhost:{port}"]
    healthy = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert healthy.returncode == 0
    assert healthy.stdout.startswith("de-en/1, ")
    for graph in ("encoder", "decoder_step"):
        assert f"{graph} on CPUExecutionProvider" in healthy.stdout
    for host, code in (("127.0.0.1", 0), ("0.0.0.0", 0), ("::", 0), ("127.0.0.2", 1)):
        asked = await ask(DRAGOMAN_SERVE_HOST=host)
        assert asked.exit_code == code
        assert code == 0 or f"{host}:{port} does not answer" in asked.output
    unknown = await ask("--service", "dragoman.v1.model/xx")
    assert unknown.exit_code == 1
    assert "NOT_FOUND" in unknown.output
    assert await running.server.drain()
    assert (await ask("--server", f"localhost:{port}")).exit_code == 1


async def test_a_full_server_is_healthy_to_the_command(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models, limits=RequestLimits(max_calls=1))
    request = pb.TranslateRequest(texts=["wort " * 10] * 40, **GERMAN)
    at_work = asyncio.ensure_future(running.stub.Translate(request))
    await running.until("dragoman_running_sentences")
    arguments = ["--server", f"localhost:{running.server.port}"]
    asked = await asyncio.to_thread(CliRunner().invoke, healthcheck, arguments)
    assert not at_work.done()
    assert (asked.exit_code, asked.output) == (0, "")
    assert len((await at_work).translations) == 40

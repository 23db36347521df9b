"""What a real scrape shows, of calls and of all processes together."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from tests.server.calls import GERMAN
from tests.server.conftest import CPU, RunningServer, StartServer, fetch
from tests.server.copying_bundle import write_bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.metrics.process import ProcessMetrics
from dragoman_server.metrics.translation import WARNING_KINDS
from dragoman_server.text.translated import WarningKind

MODEL = {"model": "de-en", "version": "1", "source": "de", "target": "en"}


def test_every_kind_of_warning_has_a_series() -> None:
    assert set(WARNING_KINDS) == {kind.value for kind in WarningKind}


async def test_a_call_is_counted_and_timed(running: RunningServer) -> None:
    await running.stub.Translate(pb.TranslateRequest(texts=["Ja. Nein.", ""], **GERMAN))
    assert running.metric("dragoman_requests_total", outcome="OK", **MODEL) == 1
    assert running.metric("dragoman_request_seconds_count", priority="interactive", **MODEL) == 1
    assert running.metric("dragoman_request_seconds_count", priority="bulk", **MODEL) == 0
    assert running.metric("dragoman_texts_total", **MODEL) == 2
    assert running.metric("dragoman_source_tokens_total", **MODEL) == 12
    assert running.metric("dragoman_target_tokens_total", **MODEL) == 12
    assert running.metric("dragoman_queue_seconds_count", priority="interactive", **MODEL) == 1
    for stage in ("encode", "decode", "text"):
        for priority, number in (("interactive", 1), ("bulk", 0)):
            name = f"dragoman_{stage}_seconds_count"
            assert running.metric(name, priority=priority, **MODEL) == number
    # The one that warmed the model is not among them.
    assert running.metric("dragoman_sentences_total", outcome="finished", **MODEL) == 2
    assert running.metric("dragoman_step_seconds_count", **MODEL) > 5
    assert running.metric("dragoman_step_rows_sum", **MODEL) > 10
    busy = running.metric("dragoman_engine_busy_seconds_total", engine="0", **MODEL)
    assert busy >= running.metric("dragoman_step_seconds_sum", **MODEL) > 0
    # Two rows at least were in use all the time that it was busy.
    assert running.metric("dragoman_engine_row_seconds_total", **MODEL) > 2 * busy
    assert running.metric("dragoman_engine_load_seconds_total", priority="interactive", **MODEL) > 0
    assert running.metric("dragoman_engine_load_seconds_total", priority="bulk", **MODEL) == 0
    padded = running.metric("dragoman_step_padded_positions_total", **MODEL)
    assert padded >= running.metric("dragoman_step_source_positions_total", **MODEL) > 0
    method = {"grpc_service": "dragoman.v1.TranslationService", "grpc_method": "Translate"}
    assert running.metric("grpc_server_started_total", **method) == 1
    assert running.metric("grpc_server_handled_total", grpc_code="OK", grpc_type="unary", **method) == 1
    assert running.metric("grpc_server_handling_seconds_count", **method) == 1


async def test_every_item_of_a_stream_is_a_request(running: RunningServer) -> None:
    config = pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**GERMAN))
    items = [
        pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id=str(size), text="x" * size))
        for size in (1, 2, 501)
    ]
    assert len([response async for response in running.stub.TranslateStream(iter([config, *items]))]) == 3
    assert running.metric("dragoman_requests_total", outcome="OK", **MODEL) == 2
    assert running.metric("dragoman_requests_total", outcome="INVALID_ARGUMENT", **MODEL) == 1
    # Items of a job wait for each other: they don't count among the callers who wait.
    assert running.metric("dragoman_request_seconds_count", priority="bulk", **MODEL) == 3
    assert running.metric("dragoman_queue_seconds_count", priority="bulk", **MODEL) == 2
    assert running.metric("dragoman_request_seconds_count", priority="interactive", **MODEL) == 0
    assert running.metric("grpc_server_handled_total", grpc_code="OK", grpc_type="bidi_stream") == 1


async def test_what_is_split_and_truncated_is_counted(running: RunningServer) -> None:
    for policy in (pb.LENGTH_POLICY_SPLIT, pb.LENGTH_POLICY_TRUNCATE):
        options = pb.DecodingOptions(length_policy=policy)
        await running.stub.Translate(pb.TranslateRequest(texts=["wort " * 20], options=options, **GERMAN))
    assert running.metric("dragoman_splits_total", **MODEL) == 1
    assert running.metric("dragoman_truncations_total", **MODEL) == 1


async def test_series_exist_before_anything_happens(running: RunningServer) -> None:
    families = {family.name: family for family in text_string_to_metric_families(fetch(running.metrics_url))}
    outcomes = {sample.labels["outcome"] for sample in families["dragoman_requests"].samples}
    assert {"OK", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"} <= outcomes
    codes = {sample.labels["grpc_code"] for sample in families["grpc_server_handled"].samples}
    assert {"OK", "INVALID_ARGUMENT", "UNAVAILABLE"} <= codes
    assert "process_resident_memory_bytes" in families
    # Latencies resolve a millisecond to a minute.
    for name in ("dragoman_request_seconds", "grpc_server_handling_seconds"):
        buckets = [each.labels for each in families[name].samples if each.name == f"{name}_bucket"]
        bounds = [float(labels["le"]) for labels in buckets if labels["le"] != "+Inf"]
        assert (min(bounds), max(bounds)) == (0.001, 60.0)


async def test_the_model_where_its_graphs_run_and_the_last_reload_are_told(running: RunningServer) -> None:
    assert running.metric("dragoman_model_info", architecture="copying", precision="fp32", **MODEL) == 1
    for graph in ("encoder", "decoder_step"):
        labels = {"graph": graph, "provider": "CPUExecutionProvider"}
        assert running.metric("dragoman_provider_info", **labels, **MODEL) == 1
    first = running.metric("dragoman_last_reload_timestamp_seconds")
    await running.server.reload()
    assert 0 < first < running.metric("dragoman_last_reload_timestamp_seconds")


async def test_how_sure_the_model_was_and_how_long_its_answers_are_is_told(running: RunningServer) -> None:
    response = await running.stub.Translate(pb.TranslateRequest(texts=["Ja. Nein.", "", "Wort"], **GERMAN))
    log_probabilities = [
        each.hypotheses[0].log_probability / each.target_tokens
        for each in response.translations
        if each.hypotheses
    ]
    assert running.metric("dragoman_token_surprisal_nats_count", **MODEL) == 2
    told = running.metric("dragoman_token_surprisal_nats_sum", **MODEL)
    assert told == pytest.approx(-sum(log_probabilities), abs=1e-5)
    # The copying model answers a token with a token.
    assert running.metric("dragoman_length_ratio_sum", **MODEL) == 2


async def test_who_waits_is_told_by_how_long(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models, engine=replace(CPU, max_rows=16, max_queue=70))
    assert running.metric("dragoman_engine_rows", **MODEL) == 16
    for priority, limit in (("interactive", 70), ("bulk", 52)):
        assert running.metric("dragoman_queue_limit_sentences", priority=priority, **MODEL) == limit
    call = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 40, **GERMAN))
    await running.until("dragoman_queue_older_sentences", priority="interactive", seconds="0.1")
    assert running.metric("dragoman_queue_older_sentences", priority="bulk") == 0
    call.cancel()


async def test_whether_the_server_takes_calls_is_told(start_server: StartServer, tmp_path: Path) -> None:
    write_bundle(tmp_path, slowness=700)
    (tmp_path / "fr-en" / "1").mkdir(parents=True)
    running = await start_server(models=tmp_path)
    assert running.metric("dragoman_serving") == 1
    assert running.metric("dragoman_refused_bundles") == 1
    accepted = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 40, **GERMAN))
    await running.until("dragoman_running_sentences")
    draining = asyncio.create_task(running.server.drain())
    await asyncio.sleep(0)
    assert running.metric("dragoman_serving") == 0
    assert len((await accepted).translations) == 40
    assert await draining


async def test_no_text_is_in_metrics_or_log(running: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="dragoman_server"):
        await running.stub.Translate(pb.TranslateRequest(texts=["Geheimnis"], **GERMAN))
    assert "Geheimnis" not in fetch(running.metrics_url)
    (record,) = [vars(record) for record in caplog.records if record.message == "call"]
    assert "Geheimnis" not in str(record)
    fields = {"method": "Translate", "outcome": "OK", "model": "de-en/1", "texts": 1, "source_tokens": 11}
    assert record.items() >= fields.items()
    assert record["milliseconds"] > 0


BURNS = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"
SHARED_BYTES = 2**26
MAPS = """
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(mapped[::4096])
print("done", flush=True)
input()
"""
MEMORY = "process_resident_memory_bytes"
TELLS = f"""
import sys
from prometheus_client import CollectorRegistry
from dragoman_server.metrics.process import ProcessMetrics
registry = CollectorRegistry()
registry.register(ProcessMetrics(lambda: map(int, sys.argv[1:]), 2))
print(registry.get_sample_value({MEMORY!r}), flush=True)
input()
"""
CPU_SECONDS = "process_cpu_seconds_total"


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    """Has used half a second of a processor, and waits."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", BURNS], **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_what_other_processes_use_is_added(busy: subprocess.Popen[bytes]) -> None:
    alone, together = CollectorRegistry(), CollectorRegistry()
    alone.register(ProcessMetrics(list, 2))
    pids = [busy.pid]
    together.register(ProcessMetrics(lambda: pids, 2))

    def read(registry: CollectorRegistry, name: str) -> float:
        value = registry.get_sample_value(name)
        assert value is not None
        return value

    assert 0.4 < read(together, CPU_SECONDS) - read(alone, CPU_SECONDS) < 2
    assert read(together, MEMORY) > read(alone, MEMORY) + 2**20
    threads = "dragoman_threads"
    assert read(together, threads) == read(alone, threads) + 1
    engines = together.get_sample_value("dragoman_cpu_seconds_total", {"part": "engines"})
    assert engines == pytest.approx(0.5, abs=0.1)
    assert read(alone, "dragoman_processors") == 2
    for name in ("process_start_time_seconds", "process_max_fds"):
        assert read(together, name) == read(alone, name)
    # Once it has ended, its memory is free, and what it used was used: a counter never falls.
    busy.communicate(b"\n")
    pids.clear()
    assert read(together, CPU_SECONDS) - read(alone, CPU_SECONDS) > 0.4
    assert abs(read(together, MEMORY) - read(alone, MEMORY)) < 2**20


def test_memory_that_processes_share_is_counted_once() -> None:
    with ExitStack() as stack:
        file = Path(stack.enter_context(TemporaryDirectory())) / "weights"
        file.write_bytes(bytes(SHARED_BYTES))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        processes = [
            stack.enter_context(subprocess.Popen([sys.executable, "-c", MAPS, file], **pipes))
            for _ in range(3)
        ]
        for process in processes:
            process.stdout.readline()
        pids = [process.pid for process in processes]
        # As of a server: this process has libraries, PyTorch among them, that other tests share with it.
        server = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", TELLS, *map(str, pids)], **pipes, text=True)
        )
        told = float(server.stdout.readline())
        exact = sum(proportional_bytes(pid) for pid in (server.pid, *pids))
        # What is not of these alone, such as an interpreter that others run, is what differs.
        assert abs(told - exact) < SHARED_BYTES / 2
        server.communicate("\n")
        for process in processes:
            process.communicate(b"\n")


def proportional_bytes(pid: int) -> int:
    """What the system itself takes for the share of a process."""
    [line] = [
        line for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:")
    ]
    return int(line.split()[1]) * 1024

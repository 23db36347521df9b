"""What a real scrape shows."""

import asyncio
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.calls import GERMAN
from tests.server.conftest import RunningServer, StartServer
from tests.server.copying_bundle import write_bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import EngineConfig
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


async def test_the_model_and_where_its_graphs_run_are_told(running: RunningServer) -> None:
    assert running.metric("dragoman_model_info", architecture="copying", precision="fp32", **MODEL) == 1
    for graph in ("encoder", "decoder_step"):
        labels = {"graph": graph, "provider": "CPUExecutionProvider"}
        assert running.metric("dragoman_provider_info", **labels, **MODEL) == 1


async def test_how_sure_the_model_was_and_how_long_its_answers_are_is_told_of_each_text(
    running: RunningServer,
) -> None:
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
    engine = EngineConfig(device="cpu", threads=1, max_rows=16)
    running = await start_server(models=slow_models, engine=engine)
    assert running.metric("dragoman_engine_rows", **MODEL) == 16
    call = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 40, **GERMAN))
    await running.until("dragoman_queue_older_sentences", priority="interactive", seconds="0.1")
    assert running.metric("dragoman_queue_older_sentences", priority="bulk") == 0
    call.cancel()


async def test_the_limit_of_the_queue_is_told_beside_who_waits(start_server: StartServer) -> None:
    running = await start_server(engine=EngineConfig(device="cpu", threads=1, max_queue=7))
    for priority, limit in (("interactive", 7), ("bulk", 5)):
        assert running.metric("dragoman_queue_limit_sentences", priority=priority, **MODEL) == limit


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


async def test_series_exist_before_anything_happens(running: RunningServer) -> None:
    with urlopen(running.metrics_url) as response:
        families = {
            family.name: family for family in text_string_to_metric_families(response.read().decode())
        }
    outcomes = {sample.labels["outcome"] for sample in families["dragoman_requests"].samples}
    assert {"OK", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"} <= outcomes
    codes = {sample.labels["grpc_code"] for sample in families["grpc_server_handled"].samples}
    assert {"OK", "INVALID_ARGUMENT", "UNAVAILABLE"} <= codes
    assert "process_resident_memory_bytes" in families


async def test_a_text_is_nowhere_in_metrics_or_log(
    running: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", logger="dragoman_server"):
        await running.stub.Translate(pb.TranslateRequest(texts=["Geheimnis"], **GERMAN))
    with urlopen(running.metrics_url) as response:
        assert "Geheimnis" not in response.read().decode()
    (record,) = [record for record in caplog.records if record.message == "call"]
    assert "Geheimnis" not in str(vars(record))
    fields = {
        name: getattr(record, name) for name in ("method", "outcome", "model", "texts", "source_tokens")
    }
    assert fields == {
        "method": "Translate",
        "outcome": "OK",
        "model": "de-en/1",
        "texts": 1,
        "source_tokens": 11,
    }
    assert record.milliseconds > 0


async def test_a_reload_is_dated(running: RunningServer) -> None:
    name = "dragoman_last_reload_timestamp_seconds"
    first = running.metric(name)
    await running.server.reload()
    assert 0 < first < running.metric(name)


async def test_latencies_resolve_a_millisecond_to_a_minute(running: RunningServer) -> None:
    for name in ("dragoman_request_seconds", "grpc_server_handling_seconds"):
        with urlopen(running.metrics_url) as response:
            families = text_string_to_metric_families(response.read().decode())
        bounds = [
            float(sample.labels["le"])
            for family in families
            if family.name == name
            for sample in family.samples
            if sample.name == f"{name}_bucket" and sample.labels["le"] != "+Inf"
        ]
        assert (min(bounds), max(bounds)) == (0.001, 60.0)

"""A server with much to do: deadlines, full queues, large requests beside small ones."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from dragoman_bundle import Bundle
from google.rpc import error_details_pb2
from tests.server.calls import GERMAN, detail, failure, translate, until, violated_fields
from tests.server.conftest import CPU, RunningServer, StartServer

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits
from dragoman_server.engine import Priority, Sentence, SentenceResult
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.service import translating
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.passage import Passage


async def test_calls_that_end_early_free_the_engine(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models)
    call = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 50, **GERMAN))
    await running.until("dragoman_running_sentences", 50)
    call.cancel()
    await engine_is_idle(running)
    assert running.metric("dragoman_sentences_total", outcome="cancelled") == 50
    # Far more than a second's work, and time enough for a busy machine to begin with it.
    request = pb.TranslateRequest(texts=["wort " * 10] * 1000, **GERMAN)
    error = await failure(running.stub.Translate(request, timeout=1))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await running.until("dragoman_requests_total", 2)
    await engine_is_idle(running)
    for outcome in ("CANCELLED", "DEADLINE_EXCEEDED"):
        assert running.metric("dragoman_requests_total", outcome=outcome) == 1
    assert running.metric("grpc_server_handled_total", grpc_code="DEADLINE_EXCEEDED") == 1


async def engine_is_idle(running: RunningServer) -> None:
    await until(lambda: not running.num_at_work())
    await running.calls_are_counted()


async def test_a_text_of_too_many_tokens_is_refused_before_it_is_decoded(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_text_tokens=100))
    request = pb.TranslateRequest(texts=["wort", "x" * 101, "x" * 80], **GERMAN)
    error = await failure(running.stub.Translate(request))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    violations = detail(error, error_details_pb2.BadRequest()).field_violations
    assert [violation.field for violation in violations] == ["texts[1]"]
    assert "tokens, and a text takes 100; cut it up" in violations[0].description
    assert running.metric("dragoman_sentences_total") == 0
    # What is cut off costs nothing.
    truncated = pb.DecodingOptions(length_policy=pb.LENGTH_POLICY_TRUNCATE)
    assert (await translate(running, "x" * 101, options=truncated))[0].truncated


async def test_a_long_interactive_request_is_bulk(start_server: StartServer, slow_models: Path) -> None:
    engine = replace(CPU, max_rows=16)
    limits = RequestLimits(max_interactive_tokens=100)
    running = await start_server(models=slow_models, engine=engine, limits=limits)
    long = running.stub.Translate(pb.TranslateRequest(texts=["x" * 500], **GERMAN))
    short = running.stub.Translate(pb.TranslateRequest(texts=["x x"] * 20, **GERMAN))
    for priority in ("bulk", "interactive"):
        await running.until("dragoman_queue_sentences", priority=priority)
    assert running.metric("dragoman_queue_sentences", priority="bulk") > 1
    long.cancel()
    short.cancel()
    await engine_is_idle(running)


async def test_a_long_request_that_bulks_share_can_never_hold_is_told_so(start_server: StartServer) -> None:
    engine = replace(CPU, max_queue=40)
    running = await start_server(engine=engine, limits=RequestLimits(max_interactive_tokens=50))
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["wort"] * 35, **GERMAN)))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    violation = detail(error, error_details_pb2.BadRequest()).field_violations[0]
    assert "as bulk" in violation.description
    assert "the queue takes 30" in violation.description


async def test_a_full_queue_says_when_to_come_again(
    start_server: StartServer, slow_models: Path, prepared: list[str]
) -> None:
    engine, limits = replace(CPU, max_queue=40, max_rows=16), RequestLimits(max_texts=100)
    running = await start_server(models=slow_models, engine=engine, limits=limits)
    request = pb.TranslateRequest(texts=["wort " * 4] * 40, **GERMAN)
    first = asyncio.ensure_future(running.stub.Translate(request))
    await running.until("dragoman_queue_sentences")
    prepared.clear()
    # Texts with nothing to translate take no room.
    blank = pb.TranslateRequest(texts=["", " \n", "12", "-"] * 20, **GERMAN)
    assert len((await running.stub.Translate(blank)).translations) == 80
    assert len(prepared) == 80
    error = await failure(running.stub.Translate(request))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "40 sentences do not fit" in error.details()
    assert detail(error, error_details_pb2.RetryInfo()).retry_delay.ToMilliseconds() > 0
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "QUEUE_FULL"
    assert len(prepared) == 80, "what is refused is not tokenized before"
    assert len((await first).translations) == 40


async def test_calls_that_came_together_are_refused_once_one_of_them_fills_the_queue(
    start_server: StartServer, slow_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start_server(models=slow_models, engine=replace(CPU, max_queue=40, max_rows=16))
    prepared: list[str] = []
    prepare, begun, is_full = translating.prepare, threading.Event(), threading.Event()

    def held(text: str, *arguments: Any) -> Passage:
        prepared.append(text)
        (begun if text == "first" else is_full).wait(30)
        return prepare(text, *arguments)

    monkeypatch.setattr(translating, "prepare", held)

    def call(text: str) -> Any:
        return running.stub.Translate(pb.TranslateRequest(texts=[text] * 40, **GERMAN))

    first = call("first")
    await until(lambda: prepared)
    others = [call("second"), call("third")]
    # All three are let in: the queue is empty as yet.
    await running.until("grpc_server_started_total", 3, grpc_method="Translate")
    await until(lambda: len(prepared) >= 2)
    begun.set()
    await running.until("dragoman_queue_sentences")
    is_full.set()
    for call in others:
        assert detail(await failure(call), error_details_pb2.ErrorInfo()).reason == "QUEUE_FULL"
    # The third begins its first text only if it comes to that before the queue is full.
    assert [prepared.count(text) for text in ("first", "second")] == [40, 1]
    assert prepared.count("third") <= 1
    first.cancel()


async def test_nobody_waits_for_job_texts(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = translating.prepare
    go_on = threading.Event()

    def held(text: str, bundle: Bundle, options: TranslationOptions, *arguments: Any) -> Passage:
        if options.priority is Priority.BULK:
            go_on.wait(30)
        return prepare(text, bundle, options, *arguments)

    monkeypatch.setattr(translating, "prepare", held)
    # However long the jobs that all come at once seem to take.
    running = await start_server(engine=replace(CPU, max_queue_seconds=86_400))
    job = pb.TranslateRequest(texts=["Ja."] * 100, priority=pb.PRIORITY_BULK, **GERMAN)
    # More than any pool of threads has.
    jobs = [asyncio.ensure_future(running.stub.Translate(job)) for _ in range(50)]
    await running.until("grpc_server_started_total", 50, grpc_method="Translate")
    try:
        async with asyncio.timeout(20):
            assert len(await translate(running, *["Nein."] * 100)) == 100
            await running.server.reload()
    finally:
        go_on.set()
    assert [len((await job).translations) for job in jobs] == [100] * 50


async def test_one_call_too_many_is_told_when_to_return(start_server: StartServer, slow_models: Path) -> None:
    running = await start_server(models=slow_models, limits=RequestLimits(max_calls=1))
    first = asyncio.ensure_future(translate(running, *["wort " * 10] * 8))
    await running.until("dragoman_running_sentences")
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert detail(error, error_details_pb2.RetryInfo()).retry_delay.ToMilliseconds() > 0
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "TOO_MANY_CALLS"
    assert "1 calls, as many as its --max-calls lets in" in error.details()
    assert len(await first) == 8
    assert await translate(running, "Ja.")


async def test_more_sentences_than_the_queue_ever_holds_are_refused_and_not_read(
    start_server: StartServer, prepared: list[str]
) -> None:
    running = await start_server(engine=replace(CPU, max_queue=5))
    for count in (2, 100):
        prepared.clear()
        request = pb.TranslateRequest(texts=["Eins. Zwei. Drei."] * count, **GERMAN)
        assert await violated_fields(running, request) == ["texts"]
        assert len(prepared) == 2
    # Three quarters of the queue are bulk's.
    request = pb.TranslateRequest(texts=["Eins. Zwei.", "Drei. Vier."], **GERMAN)
    assert len((await running.stub.Translate(request)).translations) == 2
    request.priority = pb.PRIORITY_BULK
    assert await violated_fields(running, request) == ["texts"]


async def test_a_text_that_nobody_waits_for_is_left_within_a_second(start_server: StartServer) -> None:
    running = await start_server()
    # Seconds of work, before the engine has any.
    long = pb.TranslateRequest(texts=["😀a " * 33_000], **GERMAN)
    calls = [running.stub.Translate(long, timeout=1) for _ in range(3)]
    for call in calls:
        assert (await failure(call)).code() is grpc.StatusCode.DEADLINE_EXCEEDED
    began = time.process_time()
    # They wait for the same threads.
    assert len(await translate(running, *["Nein."] * 100)) == 100
    assert time.process_time() - began < 3


async def test_a_call_that_is_cancelled_while_it_is_submitted_frees_the_engine(
    start_server: StartServer, slow_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start_server(models=slow_models)
    submit = EnginePool.submit
    begun, gone = threading.Event(), threading.Event()

    def held(engine: EnginePool, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        begun.set()
        gone.wait(30)
        return submit(engine, sentences)

    monkeypatch.setattr(EnginePool, "submit", held)
    call = running.stub.Translate(pb.TranslateRequest(texts=["wort " * 10] * 100, **GERMAN))
    await asyncio.sleep(0)
    await asyncio.to_thread(begun.wait, 30)
    call.cancel()
    await running.until("grpc_server_handled_total", grpc_code="CANCELLED")
    gone.set()
    await running.until("dragoman_sentences_total", 100, outcome="cancelled")

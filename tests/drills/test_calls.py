"""Calls while a server is busy, overloaded, or sent nonsense."""

import asyncio
import os
import random
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import cast

import grpc
import pytest
from tests.drills.callers import LANGUAGES, Callers, make_sentences, translate_alone

from benchmarks.machine import memory_of
from benchmarks.servers import Server
from dragoman import AsyncClient, OverloadedError
from dragoman.v1 import translation_pb2 as pb

SERVICE = "/dragoman.v1.TranslationService/"
METHODS = ("Translate", "AlignTexts", "DetectLanguage", "ListModels", "GetModel", "ListGlossaries")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What begins a connection of HTTP/2 (RFC 9113, section 3.4)."""
SETTINGS, NUM_FRAME_TYPES = 4, 12
MAX_GROWTH = 1.5
"""How many times the memory after the first quarter a server may have at the end."""


async def test_soak_every_call_is_accounted_for_and_right(server: Server, seconds: float) -> None:
    stop = asyncio.Event()
    async with AsyncClient(server.address) as client:
        known = await translate_alone(client, make_sentences(60))
        callers, hasty = Callers(client, known), Callers(client, known)

        async def hurry(seed: int) -> None:
            """Makes calls that run out of time or are cancelled."""
            generator = random.Random(seed)
            while not stop.is_set():
                texts = generator.sample(list(known), 20)
                call = asyncio.create_task(hasty.call(texts, seconds=generator.uniform(0.001, 0.3)))
                if generator.random() < 0.5:
                    await asyncio.sleep(generator.uniform(0.0, 0.1))
                    hasty.ended["CANCELLED by the caller"] += call.cancel()
                await asyncio.wait({call})

        async with asyncio.TaskGroup() as tasks:
            for seed in range(6):
                tasks.create_task(callers.call_until(stop, seed))
            for seed in range(2):
                tasks.create_task(callers.stream_until(stop, seed))
                tasks.create_task(hurry(seed))
            await asyncio.sleep(seconds / 4)
            early = memory_of(server.process_id)
            await asyncio.sleep(seconds * 3 / 4)
            late = memory_of(server.process_id)
            stop.set()
    callers.check()
    assert hasty.begun == sum(hasty.ended.values())
    assert not hasty.texts["wrong"]
    texts = callers.texts["right"] + hasty.texts["right"]
    memory = f"{early >> 20} MiB after a quarter, {late >> 20} at the end"
    print(f"{callers.begun + hasty.begun} calls, {texts} texts, {memory}")
    assert late < MAX_GROWTH * early


@pytest.mark.parametrize("server", [{"--max-queue": 400}], indirect=True, ids=["queue"])
async def test_overload_refused_callers_learn_when_to_come_back(server: Server, seconds: float) -> None:
    async with AsyncClient(server.address) as client:
        callers = Callers(client, await translate_alone(client, make_sentences(60)))
        until = time.monotonic() + seconds

        async def push(seed: int) -> None:
            generator = random.Random(seed)
            while time.monotonic() < until:
                await callers.call(generator.sample(list(callers.known), 40))
                await asyncio.sleep(0.2)

        async with asyncio.TaskGroup() as tasks:
            for seed in range(400):
                tasks.create_task(push(seed))
        refused = [error for error, _ in callers.errors if isinstance(error, OverloadedError)]
        assert refused
        assert all(error.retry_after_seconds is not None for error in refused)
        waits = sorted(wait for _, wait in callers.errors)
        print(f"{callers.ended}; refused in {waits[len(waits) // 2]:.2f} s, at most {waits[-1]:.2f} s")
        await callers.call(list(callers.known)[:1])
    callers.check("RESOURCE_EXHAUSTED")


async def test_fuzz_ordinary_callers_do_not_notice_nonsense(server: Server, seconds: float) -> None:
    stop, over = asyncio.Event(), threading.Event()
    async with AsyncClient(server.address) as client:
        callers = Callers(client, await translate_alone(client, make_sentences(30)))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(callers.call_until(stop, 1))
            connections = tasks.create_task(asyncio.to_thread(throw_bytes, server, over))
            statuses = tasks.create_task(asyncio.to_thread(call_nonsense, server, over))
            await asyncio.sleep(seconds)
            over.set()
            await asyncio.wait({connections, statuses})
            stop.set()
    callers.check()
    print(f"{connections.result()} connections and {sum(statuses.result().values())} calls of nonsense")
    assert connections.result() > 0
    assert statuses.result()["INVALID_ARGUMENT"] > 0
    assert not {"UNKNOWN", "INTERNAL: ours"} & statuses.result().keys(), statuses.result()


def throw_bytes(server: Server, over: threading.Event) -> int:
    """Random bytes, and frames of HTTP/2 with anything in them, at both ports; how many connections."""
    generator = random.Random(2)
    number = 0
    while not over.is_set():
        content = os.urandom(generator.randrange(1, 5000))
        if generator.random() < 0.5:
            frames = [frame(SETTINGS, 0, 0, b"")]
            for _ in range(generator.randrange(1, 12)):
                kind, flags = generator.randrange(NUM_FRAME_TYPES), generator.randrange(256)
                stream = generator.choice((0, 1, 1, 3, 2**31 - 1))
                body = os.urandom(generator.choice((0, 4, 5, 8, 40, 300)))
                frames.append(frame(kind, flags, stream, body))
            content = PREFACE + b"".join(frames)
        port = generator.choice((server.port, server.port, server.metrics_port))
        # The server may close before all is sent, which is its right.
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(content)
            connection.settimeout(0.02)
            connection.recv(1000)
        number += 1
        time.sleep(0.002)
    return number


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def call_nonsense(server: Server, over: threading.Event) -> Counter[str]:
    """Calls and streams whose messages have a few bytes changed, or are random; how they ended.

    gRPC itself answers INTERNAL where a message can't be parsed; only what our own code raised is ours. Over
    its blocking API: the other may replace the status that ended a stream (grpc/grpc#36066).
    """
    generator = random.Random(3)
    statuses: Counter[str] = Counter()
    languages = {f"{side}_language": language for side, language in LANGUAGES.items()}
    call = pb.TranslateRequest(texts=["Guten Tag.", "Hallo!"], return_alignments=True, **languages)
    call.options.beam_size = 4
    config = pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**languages))
    item = pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id="1", text="Hallo!"))
    with grpc.insecure_channel(server.address) as channel:
        stream = channel.stream_stream(SERVICE + "TranslateStream")
        while not over.is_set():
            try:
                if generator.random() < 0.7:
                    method = channel.unary_unary(SERVICE + generator.choice(METHODS))
                    method(changed(call.SerializeToString(), generator), timeout=15)
                else:
                    messages = [changed(each.SerializeToString(), generator) for each in (config, item, item)]
                    list(stream(iter(messages), timeout=15))
                statuses["OK"] += 1
            except grpc.RpcError as error:
                ended = cast(grpc.Call, error)
                status = ended.code().name
                is_ours = status == "INTERNAL" and "deserializ" not in str(ended.details())
                statuses[status + (": ours" if is_ours else "")] += 1
    return statuses


def changed(message: bytes, generator: random.Random) -> bytes:
    """A message with some bytes that are others; now and then one of nothing but random bytes."""
    content = bytearray(message if generator.random() < 0.8 else os.urandom(generator.randrange(60)))
    for _ in range(generator.randrange(1, 6)):
        if content:
            content[generator.randrange(len(content))] = generator.randrange(256)
    return bytes(content)

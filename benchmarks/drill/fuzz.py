"""Nonsense at a server's ports, from bytes at random to messages that are nearly right."""

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

from benchmarks.drill.callers import Callers, check_account, translate_alone
from benchmarks.drill.drill import Drill
from benchmarks.drill.quiet import check_quiet
from benchmarks.drill.sentences import make_sentences
from benchmarks.drill.servers import Server
from dragoman import AsyncClient
from dragoman.v1 import translation_pb2 as pb

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What begins a connection of HTTP/2 (RFC 9113, section 3.4)."""
SETTINGS, NUM_FRAME_TYPES = 4, 12
SERVICE = "/dragoman.v1.TranslationService/"
METHODS = ("Translate", "AlignTexts", "DetectLanguage", "ListModels", "GetModel", "ListGlossaries")


def run(drill: Drill) -> None:
    """While ordinary callers go on, who must not notice."""
    with Server("fuzz", drill.models, drill.folder) as server:
        asyncio.run(_run(drill, server))
        check_quiet(drill, server)
        drill.check("SIGTERM ends it with exit code 0", server.stop() == 0)


async def _run(drill: Drill, server: Server) -> None:
    stop, over = asyncio.Event(), threading.Event()
    async with AsyncClient(server.address) as client:
        known = await translate_alone(drill, client, make_sentences(30))
        callers = Callers(drill, client, known)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(callers.call_until(stop, 1))
            bytes_sent = tasks.create_task(asyncio.to_thread(_throw_bytes, server, over))
            statuses = tasks.create_task(asyncio.to_thread(_call_nonsense, drill, server, over))
            await asyncio.sleep(drill.seconds)
            over.set()
            await asyncio.wait({bytes_sent, statuses})
            stop.set()
    check_account(drill, callers.account)
    failed = {outcome: number for outcome, number in callers.account.ended.items() if outcome != "OK"}
    drill.check("no ordinary call fails", not failed, dict(callers.account.messages) or "")
    drill.figure("connections of nonsense", bytes_sent.result())
    drill.figure("calls of nonsense", sum(statuses.result().values()))
    strange = {
        code: number for code, number in statuses.result().items() if code in ("UNKNOWN", "INTERNAL: ours")
    }
    drill.check("no nonsense is taken for the server's own fault", not strange, dict(statuses.result()))


def _throw_bytes(server: Server, over: threading.Event) -> int:
    """Random bytes, and frames of HTTP/2 with anything in them, at both ports; how many connections."""
    generator = random.Random(2)
    number = 0
    while not over.is_set():
        port = generator.choice((server.port, server.port, server.metrics_port))
        if generator.random() < 0.5:
            content = os.urandom(generator.randrange(1, 5000))
        else:
            frames = [_frame(SETTINGS, 0, 0, b"")]
            for _ in range(generator.randrange(1, 12)):
                stream = generator.choice((0, 1, 1, 3, 2**31 - 1))
                body = os.urandom(generator.choice((0, 4, 5, 8, 40, 300)))
                kind = generator.randrange(NUM_FRAME_TYPES)
                frames.append(_frame(kind, generator.randrange(256), stream, body))
            content = PREFACE + b"".join(frames)
        # The server may close before all is sent, which is its right.
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(content)
            connection.settimeout(0.02)
            connection.recv(1000)
        number += 1
        time.sleep(0.002)
    return number


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def _call_nonsense(drill: Drill, server: Server, over: threading.Event) -> Counter[str]:
    """Calls and streams whose messages have a few bytes changed, or are random; how they ended.

    gRPC itself answers INTERNAL where a message can't be parsed; only what our own code raised is ours. Over
    its blocking API: the other may replace the status that ended a stream (grpc/grpc#36066).
    """
    generator = random.Random(3)
    statuses: Counter[str] = Counter()
    call = pb.TranslateRequest(texts=["Guten Tag.", "Hallo!"], return_alignments=True)
    call.source_language, call.target_language = drill.source, drill.target
    call.options.beam_size = 4
    settings = pb.TranslateStreamConfig(source_language=drill.source, target_language=drill.target)
    config = pb.TranslateStreamRequest(config=settings)
    item = pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id="1", text="Hallo!"))
    with grpc.insecure_channel(server.address) as channel:
        stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(
            SERVICE + "TranslateStream"
        )
        while not over.is_set():
            try:
                if generator.random() < 0.7:
                    method: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                        SERVICE + generator.choice(METHODS)
                    )
                    method(_changed(call.SerializeToString(), generator), timeout=15)
                else:
                    messages = [
                        _changed(each.SerializeToString(), generator) for each in (config, item, item)
                    ]
                    for _ in stream(iter(messages), timeout=15):
                        pass
                statuses["OK"] += 1
            except grpc.RpcError as error:
                ended = cast(grpc.Call, error)
                is_ours = ended.code() is grpc.StatusCode.INTERNAL and "deserializ" not in (
                    ended.details() or ""
                )
                statuses[ended.code().name + (": ours" if is_ours else "")] += 1
    return statuses


def _changed(message: bytes, generator: random.Random) -> bytes:
    """A message with some bytes that are others; now and then one of nothing but random bytes."""
    changed = bytearray(message if generator.random() < 0.8 else os.urandom(generator.randrange(60)))
    for _ in range(generator.randrange(1, 6)):
        if changed:
            changed[generator.randrange(len(changed))] = generator.randrange(256)
    return bytes(changed)

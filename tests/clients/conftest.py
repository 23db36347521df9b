"""A real gRPC server on loopback whose faults a test can script."""

import re
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import grpc
import pytest
import trustme
from click.testing import CliRunner
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from dragoman import Client
from dragoman.cli.group import main
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc

Servers = list["ScriptedServer"]
_MARKUP = re.compile(r"(<[^<>]*>|&#?\w+;)|[^<&]+")
"""Of HTML what is no text, or a text."""
MODEL = pb.ModelReference(name="de-en", version="1", source_language="de", target_language="en")


class ScriptedServicer(pb_grpc.TranslationServiceServicer):
    """Translates to upper case. A text `!CODE rest` fails with that status in a stream; any `!`, a call.

    Of HTML, in a stream, the text alone is translated.
    One that ends in "sure 0.5" has that confidence.
    One without a letter comes back without a hypothesis. One with "truncated" has lost its end, the
    translation of one with "limited" ended at its limit.
    """

    def __init__(self) -> None:
        self.requests: list[pb.TranslateRequest] = []
        self.configs: list[pb.TranslateStreamConfig] = []
        self.versions = ["1"]
        """Of the model that are served; the last one answers a stream that names none."""
        self.mixes_versions = False
        """Whether every second result of a stream is said to be of version 9."""
        self.failures: deque[status_pb2.Status] = deque()
        """Each ends one call, of any kind, before it does anything."""
        self.calls_before_outage = 0
        """Calls of Translate that succeed before the outage."""
        self.outage: deque[status_pb2.Status] = deque()
        """Each ends one call of Translate after those."""
        self.disconnects: deque[int] = deque()
        """Each ends one stream with UNAVAILABLE after so many results."""
        self.idles: deque[int] = deque()
        """Each ends one stream with ABORTED after so many results."""
        self.overloads: dict[str, status_pb2.Status] = {}
        """The result of a stream's item, by its text, the first time that it comes."""
        self.holds_calls = False
        """Whether Translate answers only when its call has ended, as by being cancelled."""
        self.call_ended = threading.Event()
        self.max_texts = 1024
        """Most texts of one request, as of `--max-texts`."""
        self.max_queue = 1_000_000
        """Most texts of all requests that are under way at once."""
        self.delay_seconds = 0.0
        """Sleeps before each answer."""
        self.reorders = False
        """Whether a stream holds back every other result until the next one was sent."""
        self.drops_tags = False
        """Whether a stream's translations of HTML come without tags."""
        self.crosses_tags = False
        """Whether two closing tags in a row come in the other order there."""
        self.joins = False
        """Whether a stream's results come in messages that may hold several."""
        self.messages: list[list[str]] = []
        """The texts of each message of a stream."""
        self.ranges: list[list[tuple[int, int]]] = []
        """Those of each text of a stream."""
        self.in_flight = 0
        self.queued = 0
        self.max_in_flight = 0
        self.items = 0
        self._lock = threading.Lock()

    def Translate(self, request, context):
        context.add_callback(self.call_ended.set)
        self.requests.append(request)
        self._fail(context)
        with self._lock:
            is_before = self.calls_before_outage > 0
            self.calls_before_outage -= is_before
            failure = self.outage.popleft() if self.outage and not is_before else None
        if failure is not None:
            abort(context, failure)
        wrong = {"texts": "holds too many"} if len(request.texts) > self.max_texts else {}
        for index, text in enumerate(request.texts):
            if text.startswith("!"):
                wrong = {f"texts[{index}]": "starts with !, unlike texts[0]"}
        for field, description in wrong.items():
            details = bad_request(field, description)
            abort(context, status("INVALID_ARGUMENT", f"{field}: {description}", details))
        with self._lock:
            is_full = self.queued + len(request.texts) > self.max_queue
            if not is_full:
                self.queued += len(request.texts)
                self.in_flight += 1
                self.max_in_flight = max(self.max_in_flight, self.in_flight)
        if is_full:
            abort(context, status("RESOURCE_EXHAUSTED", "queue is full"))
        time.sleep(self.delay_seconds)
        if self.holds_calls:
            self.call_ended.wait(60)
        with self._lock:
            self.in_flight -= 1
            self.queued -= len(request.texts)
        wanted = request.options.num_hypotheses or 1
        translations = [translate(text, wanted, request.return_alignments) for text in request.texts]
        return pb.TranslateResponse(translations=translations, model=MODEL)

    def TranslateStream(self, request_iterator, context):
        self._fail(context)
        config = next(request_iterator).config
        self.configs.append(config)
        version = config.model.partition("/")[2] or self.versions[-1]
        if version not in self.versions:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no model {config.model!r}")
        left = self.disconnects.popleft() if self.disconnects else None
        held = []
        for item in self._items(request_iterator):
            self.items += 1
            self.ranges.append([(each.start, each.end) for each in item.protected_ranges])
            time.sleep(self.delay_seconds)
            overload = self.overloads.pop(item.text, None)
            response = answer(item, "9" if self.mixes_versions and self.items % 2 == 0 else version, overload)
            if config.text_format == pb.TEXT_FORMAT_HTML and response.HasField("translation"):
                kept = "" if self.drops_tags else r"\1"
                response.translation.text = _MARKUP.sub(
                    lambda found, kept=kept: found.expand(kept) if found[1] else found[0].upper(), item.text
                )
                if self.crosses_tags:
                    response.translation.text = re.sub(
                        r"(</g\d+>)(</g\d+>)", r"\2\1", response.translation.text
                    )
            held.append(response)
            if self.reorders and len(held) < 2:
                continue
            if self.joins and left is None:
                results = pb.TranslateStreamResults(results=reversed(held))
                yield pb.TranslateStreamResponse(results=results)
                held = []
            for response in reversed(held):
                if left == 0:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "the server is going away")
                left = left - 1 if left is not None else None
                yield response
                if self.idles:
                    self.idles[0] -= 1
                    if not self.idles[0]:
                        self.idles.popleft()
                        context.abort(grpc.StatusCode.ABORTED, "nothing was sent or read")
            held = []
        yield from held

    @property
    def texts(self) -> list[str]:
        return [text for message in self.messages for text in message]

    def _items(self, requests):
        for request in requests:
            items = list(request.items.items) or [request.item]
            self.messages.append([item.text for item in items])
            yield from items

    def ListModels(self, request, context):
        self._fail(context)
        return pb.ListModelsResponse(models=[model()])

    def GetModel(self, request, context):
        self._fail(context)
        return pb.GetModelResponse(model=model())

    def _fail(self, context) -> None:
        if self.failures:
            abort(context, self.failures.popleft())


def abort(context: grpc.ServicerContext, failure: status_pb2.Status) -> None:
    context.abort_with_status(rpc_status.to_status(failure))


def translate(text: str, wanted: int = 1, return_alignments: bool = False) -> pb.Translation:
    if not any(map(str.isalpha, text)):
        return pb.Translation(text=text)
    alignments = []
    if return_alignments:
        start = 0
        for word in text.split():
            start = text.index(word, start)
            span = {"source_start": start, "source_end": start + len(word)}
            span |= {"target_start": start, "target_end": start + len(word)}
            alignments.append(pb.Alignment(**span, weight=0.93))
            start += len(word)
    hypotheses = [
        pb.Hypothesis(
            text=text.upper() + "!" * rank,
            score=-0.5 - rank,
            log_probability=-1.5 - rank,
            finish_reason=pb.FINISH_REASON_LENGTH if "limited" in text else pb.FINISH_REASON_STOP,
            alignments=alignments,
        )
        for rank in range(wanted)
    ]
    sure = re.search(r"sure ([01]\.\d+)$", text)
    confidence = float(sure[1]) if sure else None
    timings = pb.Timings(decode=duration_pb2.Duration(nanos=250_000_000))
    return pb.Translation(
        text=text.upper(),
        hypotheses=hypotheses,
        truncated="truncated" in text,
        sentences=1,
        source_tokens=3,
        target_tokens=4,
        timings=timings,
        confidence=confidence,
    )


def answer(
    item: pb.TranslateStreamItem, version: str, error: status_pb2.Status | None
) -> pb.TranslateStreamResponse:
    if error is not None:
        return pb.TranslateStreamResponse(id=item.id, error=error)
    if item.text.startswith("!"):
        code = item.text[1:].split()[0]
        status = status_pb2.Status(code=code_pb2.Code.Value(code), message=f"scripted {code}")
        return pb.TranslateStreamResponse(id=item.id, error=status)
    model = pb.ModelReference(name="de-en", version=version)
    return pb.TranslateStreamResponse(id=item.id, translation=translate(item.text), model=model)


def model() -> pb.Model:
    return pb.Model(
        name="de-en",
        version="1",
        source_language="de",
        target_language="en",
        architecture="luong",
        parameters=10_300_000,
        precision="int8",
        providers={"encoder": "CPUExecutionProvider", "decoder_step": "CPUExecutionProvider"},
        defaults=pb.DecodingOptions(beam_size=5, length_penalty=1.0, length_policy=pb.LENGTH_POLICY_SPLIT),
        max_source_tokens=128,
        quality=[
            quality("BLEU", 45.5, precision="int8", beam_size=5, shortlist=True, length_penalty=0.6),
            quality("BLEU", 46.5, precision="fp32", beam_size=5, shortlist=True, length_penalty=0.6),
            quality("chrF", 60.0, precision="int8", beam_size=5, shortlist=True, length_penalty=0.6),
            quality("BLEU", 44.0, precision="int8", beam_size=1),
        ],
        licence="Apache-2.0",
        credit="Tatoeba",
    )


def quality(metric: str, score: float, **how) -> pb.Quality:
    return pb.Quality(test_set="val", metric=metric, score=score, signature="nrefs:1", **how)


def status(code: str, message: str = "scripted", *details) -> status_pb2.Status:
    packed = []
    for detail in details:
        packed.append(any_pb2.Any())
        packed[-1].Pack(detail)
    return status_pb2.Status(code=code_pb2.Code.Value(code), message=message, details=packed)


def bad_request(field: str, description: str) -> error_details_pb2.BadRequest:
    violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
    return error_details_pb2.BadRequest(field_violations=[violation])


def fail_after_answers(server: "ScriptedServer", answers: int, failures: int, *details) -> None:
    """Lets so many calls succeed and so many after them be UNAVAILABLE."""
    server.servicer.calls_before_outage = answers
    server.servicer.outage.extend([status("UNAVAILABLE", "it drains", *details)] * failures)


class ScriptedServer:
    """The servicer behind a real server that can be stopped and started again on its port."""

    status = staticmethod(status)
    model = staticmethod(model)
    bad_request = staticmethod(bad_request)

    def __init__(
        self, credentials: grpc.ServerCredentials | None = None, *, max_message_bytes: int = 4 << 20
    ) -> None:
        self._credentials = credentials
        self._options = (("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", max_message_bytes))
        self.servicer = ScriptedServicer()
        self.health = health.HealthServicer()
        self.health.set("", health_pb2.HealthCheckResponse.SERVING)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.start()

    def start(self) -> None:
        self._pool = ThreadPoolExecutor(8)
        self._server = grpc.server(self._pool, options=self._options)
        pb_grpc.add_TranslationServiceServicer_to_server(self.servicer, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        if self._credentials is None:
            assert self._server.add_insecure_port(self.address)
        else:
            assert self._server.add_secure_port(self.address, self._credentials)
        self._server.start()

    def stop(self) -> None:
        self._server.stop(grace=0).wait()
        self._pool.shutdown()

    def __enter__(self) -> "ScriptedServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def certified_server(authority: trustme.CA, name: str) -> ScriptedServer:
    """One over TLS whose certificate is for `name`."""
    own = authority.issue_cert(name)
    pair = (own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes())
    return ScriptedServer(grpc.ssl_server_credentials([pair]))


@pytest.fixture
def small_message_server() -> Iterator[ScriptedServer]:
    """One that takes messages of no more than 10,000 bytes."""
    with ScriptedServer(max_message_bytes=10_000) as scripted:
        yield scripted


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        yield [stack.enter_context(ScriptedServer()) for _ in range(3)]


@pytest.fixture
def client(server):
    with Client(server.address, timeout_seconds=20) as connected:
        yield connected


@pytest.fixture
def run(server):
    def call(*arguments, stdin=None, **options):
        return CliRunner().invoke(
            main, arguments, input=stdin, env={"DRAGOMAN_SERVER": server.address}, **options
        )

    return call


def client_results(client, server, texts, **options):
    """All results of a stream, of which none fails by a script."""
    server.servicer.failures.clear()
    return list(client.translate_stream(enumerate(texts), source="de", target="en", **options))

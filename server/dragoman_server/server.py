"""The server as a whole: its ports, its models, and its life from start to drained end.

starting   both ports are bound; health says NOT_SERVING and calls are answered UNAVAILABLE
serving    every bundle is loaded and has translated a sentence, or is loaded when a request needs it; SIGHUP
           has the folder read again; a model whose engines all ended is NOT_SERVING until one is replaced
draining   health says NOT_SERVING, new calls are answered UNAVAILABLE, accepted ones finish
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import grpc
from dragoman_bundle.machine import count_processors
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector

from dragoman.v1 import translation_pb2, translation_pb2_grpc
from dragoman_server.aligners.aligner import Aligners
from dragoman_server.aligners.linking import Linking
from dragoman_server.api.grpc_options import credentials_of, grpc_options, raise_limit, room_for_connections
from dragoman_server.api.health import Health
from dragoman_server.api.interceptors import CallMetrics, UnknownCallers
from dragoman_server.api.malformed import MalformedMessages
from dragoman_server.api.service import TranslationService
from dragoman_server.certificate import Certificate, read_authorities
from dragoman_server.config import ServerConfig
from dragoman_server.detection import LanguageDetector
from dragoman_server.engine import DeviceUnavailableError
from dragoman_server.errors import ServerFileError
from dragoman_server.glossaries import FOLDER, Glossaries
from dragoman_server.logs import Log
from dragoman_server.metrics.callers import CallerMetrics
from dragoman_server.metrics.process import LogMetrics, ProcessMetrics
from dragoman_server.metrics.translation import Metrics
from dragoman_server.models.loader import ModelLoader, engine_limits
from dragoman_server.models.manager import ModelManager, get_models
from dragoman_server.models.on_demand import ModelsOnDemand
from dragoman_server.models.repository import RepositoryError
from dragoman_server.options import missing_extra
from dragoman_server.service.allowance import Allowances
from dragoman_server.service.call import Gate
from dragoman_server.service.callers import Callers
from dragoman_server.service.core import ServiceCore
from dragoman_server.service.translating import Translator
from dragoman_server.turns import run_in_daemon_thread, wait_for

if TYPE_CHECKING:
    from dragoman_server.tracing import Tracing
    from dragoman_server.web.http_server import HttpServer

logger = logging.getLogger(__name__)

# Once every call is answered: time for the last answers to reach their callers.
_FLUSH_SECONDS = 1.0


class PortError(OSError):
    """A port can't be listened on."""


class EngineEndedError(RuntimeError):
    """An engine's thread ended or hangs while it should serve; nothing in the process brings it back."""

    def __init__(self, models: Sequence[str]) -> None:
        super().__init__(f"the engine of {', '.join(models)} ended; the log says why")


class Server:
    def __init__(self, config: ServerConfig, log: Log | None = None) -> None:
        """`log`: the one whose lost lines are in the metrics."""
        self._config = config
        self._registry = CollectorRegistry()
        self._metrics = Metrics(self._registry)
        for collector in (PlatformCollector, GCCollector):
            collector(registry=self._registry)
        if log is not None:
            self._registry.register(LogMetrics(log))
        self._gate = Gate(config.limits.max_calls)
        self._health = Health(self._metrics.serving, config.limits)
        self._callers = Callers(config.tokens, have_certificates=config.tls_client_ca is not None)
        self._allowances = Allowances(config.caller_limits, CallerMetrics(self._registry))
        self._translator = Translator()
        self._glossaries = Glossaries(config.glossaries or config.models / FOLDER)
        self._aligners = Aligners(config.aligners, self._metrics)
        self._linking = Linking(engine_limits(config.engine, config.limits.max_beam_size))
        self._tracing = None if config.otlp_endpoint is None else _open_tracing(config.otlp_endpoint)
        self._detector = LanguageDetector()
        self._core = ServiceCore(
            gate=self._gate,
            callers=self._callers,
            allowances=self._allowances,
            translator=self._translator,
            limits=config.limits,
            glossaries=self._glossaries,
            aligners=self._aligners,
            linking=self._linking,
            detector=self._detector,
            pivot=config.pivot,
            tracing=self._tracing,
        )
        self._grpc = self._make_grpc_server()
        loader = ModelLoader(config.engine, max_beam_size=config.limits.max_beam_size, metrics=self._metrics)
        self._models = ModelManager(
            config.models,
            loader,
            self._metrics,
            cancel_seconds=config.drain_seconds,
            on_demand=self._make_on_demand(loader),
        )
        self._registry.register(ProcessMetrics(self._models.pids, count_processors()))
        self._close_metrics_port: Callable[[], None] = lambda: None
        self._has_ended = asyncio.Event()
        self._certificate: Certificate | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._http_server: HttpServer | None = None
        self._is_reloaded = True
        # Whether everything is as its files were when they were last looked at.
        self._metrics.last_reload_successful.set_function(
            lambda: self._is_reloaded and (self._certificate is None or self._certificate.is_current)
        )
        self.port = config.port
        """Port of gRPC, once started."""
        self.http_port: int | None = None
        """Port of HTTP, once started; None without one."""

    async def start(self) -> None:
        """Listens and loads the models. Where this is cancelled, it ends after the model it is at.

        Raises ServerFileError, PortError, MissingExtraError, RepositoryError, or DeviceUnavailableError; the
        ports are free again then.
        """
        try:
            self._callers.use(await wait_for(run_in_daemon_thread(self._callers.read), None))
            self._allowances.use(
                await wait_for(run_in_daemon_thread(self._allowances.read, self._callers.names), None)
            )
            self._glossaries.use(await wait_for(run_in_daemon_thread(self._glossaries.read), None))
            await self._listen()
            self._aligners.use(await wait_for(run_in_daemon_thread(self._aligners.read), None))
            await self._models.load()
            await self._detector.warm(self._models.repository.languages)
            await self._models.load_pinned(shows_device=True)
        except BaseException:
            await self._close(flush_seconds=0)
            raise
        self._metrics.last_reload.set_to_current_time()
        self._open()
        ports = {"port": self.port, "metrics_port": self._config.metrics_port, "http_port": self.http_port}
        served = {"models": self._keys(), "aligners": list(self._aligners.by_name)}
        page = {"page": self._page} if self.http_port is not None else {}
        logger.info("ready", extra={"host": self._config.host, **ports, **served, **page})

    async def reload(self) -> None:
        """Reads the models folder again, while calls go on: new bundles are served, and missing ones no more.

        The tokens, the callers' limits, the glossaries and the aligners too. What can't be read, or not
        within `max_reload_seconds`, stays as it is, and log and metrics say so.
        """
        is_reloaded = False
        try:
            is_reloaded = await self._reload()
        finally:
            self._is_reloaded = is_reloaded

    async def watch(self) -> None:
        """Waits for a model's engine to end that nothing replaces, and raises EngineEndedError."""
        await self._has_ended.wait()
        raise EngineEndedError([model.key for model in self._models.repository.models if model.has_ended])

    async def drain(self) -> bool:
        """Takes no new calls, waits for the accepted ones, and ends; whether all of them finished in time."""
        logger.info("draining", extra={"drain_seconds": self._config.drain_seconds})
        self._health.draining()
        finished = await self._gate.drain(self._config.drain_seconds)
        if not finished:
            logger.warning("calls were cut off: they did not finish within drain_seconds")
        await self._close(flush_seconds=_FLUSH_SECONDS if finished else 0)
        logger.info("stopped")
        return finished

    @property
    def _page(self) -> str:
        """The page's address, for a browser on this machine."""
        host = (self._config.http_host or self._config.host).strip("[]")
        host = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        scheme = "http" if self._config.tls_certificate is None else "https"
        return f"{scheme}://{host}:{self.http_port}/"

    async def _reload(self) -> bool:
        """Whether all was read again."""
        files_are_read, max_seconds = True, self._config.max_reload_seconds
        files: tuple[tuple[str, Callable[[], Any], Callable[[Any], None]], ...] = (
            ("tokens", self._callers.read, self._callers.use),
            ("limits", lambda: self._allowances.read(self._callers.names), self._allowances.use),
            ("glossaries", self._glossaries.read, self._glossaries.use),
            ("aligners", self._aligners.read, self._aligners.use),
        )
        for name, read, use in files:
            try:
                use(await wait_for(run_in_daemon_thread(read), max_seconds))
            except (ServerFileError, TimeoutError) as error:
                files_are_read = False
                reason = str(error) or f"they could not be read within {max_seconds:g} seconds"
                logger.error("%s not reloaded", name, extra={"reason": reason})
        try:
            await self._models.load(max_seconds=max_seconds)
        except (DeviceUnavailableError, RepositoryError, TimeoutError) as error:
            logger.error("not reloaded", extra={"reason": str(error), "models": self._keys()})
            return False
        self._metrics.last_reload.set_to_current_time()
        self._open()
        await self._models.load_pinned()
        logger.info("reloaded" if files_are_read else "models reloaded", extra={"models": self._keys()})
        return files_are_read

    def _make_on_demand(self, loader: ModelLoader) -> ModelsOnDemand | None:
        """None where all models are loaded from the start."""
        if self._config.max_loaded_models is None:
            return None
        return ModelsOnDemand(
            loader,
            self._metrics,
            max_models=self._config.max_loaded_models,
            pinned=self._config.pinned_models,
            max_load_seconds=self._config.max_reload_seconds,
        )

    def _open(self) -> None:
        self._core.open(self._models.repository)
        loop = asyncio.get_running_loop()

        def on_change() -> None:
            loop.call_soon_threadsafe(self._look_at_engines)

        for model in self._models.repository.models:
            model.watch(on_change)
        self._look_at_engines()

    def _look_at_engines(self) -> None:
        self._health.ready(self._models.repository)
        if any(model.has_ended for model in self._models.repository.models):
            self._has_ended.set()

    def _keys(self) -> list[str]:
        return [model.key for model in self._models.repository.models]

    async def _listen(self) -> None:
        config = self._config
        self._certificate = await wait_for(run_in_daemon_thread(self._read_certificate), None)
        credentials = None
        if self._certificate is not None:
            self._renewing = asyncio.create_task(self._certificate.keep_current())
            credentials = credentials_of(self._certificate)
        self.port = self._bind(config.host, config.port, credentials)
        if not _is_loopback(config.host) and (warning := _what_is_open(config)):
            logger.warning(warning, extra={"host": config.host, "port": self.port})
        if config.metrics_port:
            metrics_host = config.metrics_host or config.host
            try:
                http, thread = start_http_server(config.metrics_port, metrics_host, self._registry)
            except OSError as error:
                why = _describe(metrics_host, config.metrics_port, error, option="--metrics-port")
                raise PortError(why) from error

            def close() -> None:
                http.shutdown()
                http.server_close()
                thread.join()

            self._close_metrics_port = close
        self._health.loading()
        if config.http_port is not None:
            await self._open_http(config.http_host or config.host, config.http_port)
        await self._grpc.start()

    async def _open_http(self, host: str, port: int) -> None:
        try:
            from dragoman_server.web.http_server import HttpServer
        except ImportError as error:
            raise missing_extra("--http-port", error, "web") from error
        self._http_server = HttpServer(
            self._core,
            registry=self._registry,
            is_ready=lambda: self._health.is_serving,
            cors_origins=self._config.http_cors_origins,
            trusted_proxies=self._config.http_trusted_proxies,
        )
        try:
            self.http_port = await self._http_server.open(host, port, self._certificate)
        except OSError as error:
            raise PortError(_describe(host, port, error, option="--http-port")) from error
        if not _is_loopback(host) and (warning := _what_is_open(self._config)):
            logger.warning(warning, extra={"host": host, "port": self.http_port})

    def _bind(self, host: str, port: int, credentials: grpc.ServerCredentials | None) -> int:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        why = _why_unbindable(host, port)
        # A name that has no IPv4 address may have others. Tried before grpc, which writes lines of its own.
        if why is not None and not isinstance(why, socket.gaierror):
            raise PortError(_describe(host, port, why, option="--port"))
        try:
            if credentials is None:
                return self._grpc.add_insecure_port(address)
            return self._grpc.add_secure_port(address, credentials)
        except RuntimeError as error:
            if why is None and credentials is not None:
                pair = f"{self._config.tls_certificate} with its key"
                raise ServerFileError(f"grpc can't use {pair}; RSA, P-256 and P-384 it can") from error
            raise PortError(_describe(host, port, why or error, option="--port")) from error

    def _read_certificate(self) -> Certificate | None:
        """Raises ServerFileError."""
        config = self._config
        if config.tls_certificate is None or config.tls_key is None:
            return None
        authorities = None if config.tls_client_ca is None else read_authorities(config.tls_client_ca)
        return Certificate(config.tls_certificate, config.tls_key, authorities)

    async def _close(self, *, flush_seconds: float) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
        if self._http_server is not None:
            await self._http_server.close()
        await self._grpc.stop(flush_seconds)
        await self._models.close()
        for threads in (self._translator, self._linking, self._detector, self._core.documents):
            threads.close()
        await asyncio.to_thread(self._close_metrics_port)
        if self._tracing is not None:
            await self._tracing.close()

    def _make_grpc_server(self) -> grpc.aio.Server:
        limits = self._config.limits
        num_http = 0 if self._config.http_port is None else limits.max_http_connections
        max_connections = room_for_connections(limits.max_connections, others=num_http)
        calls = CallMetrics(self._registry)
        descriptor = translation_pb2.DESCRIPTOR.services_by_name["TranslationService"]
        server = grpc.aio.server(
            # The first changes the kind of a handler, which the second tells.
            interceptors=[
                UnknownCallers(self._callers, descriptor.full_name),
                calls,
                MalformedMessages(max_texts=limits.max_texts),
            ],
            options=grpc_options(self._config.limits, max_connections=max_connections),
        )
        translation_pb2_grpc.add_TranslationServiceServicer_to_server(TranslationService(self._core), server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        calls.prepare(descriptor)
        if self._config.reflection:
            names = (descriptor.full_name, "grpc.health.v1.Health", reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server)
        return server


async def serve(config: ServerConfig, log: Log | None = None) -> bool:
    """Serves until SIGTERM or SIGINT, then drains; a second signal ends at once. SIGHUP reloads.

    Returns whether all accepted calls finished in time. Where the signal comes first, the rest of the models
    is not fetched or loaded. Raises as Server.start, GettingError, and EngineEndedError, after what other
    models have accepted: who supervises the process starts it anew.
    """
    stop, hang_up = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            # Python's own handler of SIGINT would take the interpreter down around running engines.
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    loop.add_signal_handler(signal.SIGHUP, hang_up.set)
    # Blocked since the process began.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    raise_limit()
    server = Server(config, log)
    starting, stopping = asyncio.create_task(_start(server, config)), asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        # It learns of it first: who reads the line may count on no further model being loaded.
        await asyncio.sleep(0)
        logger.info("stopping before the models are loaded")
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        return True
    await starting
    watching = asyncio.create_task(server.watch())
    reloading = asyncio.create_task(_reload_at(hang_up, server))
    await asyncio.wait({stopping, watching}, return_when=asyncio.FIRST_COMPLETED)
    ended = watching.exception() if watching.done() else None
    watching.cancel()
    reloading.cancel()
    finished = await server.drain()
    # It ends with the bundle that it is at, or soon.
    await asyncio.wait({reloading})
    if ended is not None:
        raise ended
    return finished


async def _start(server: Server, config: ServerConfig) -> None:
    if config.get is not None:
        await get_models(config.get, config.models)
    await server.start()


async def _reload_at(hang_up: asyncio.Event, server: Server) -> None:
    while True:
        await hang_up.wait()
        hang_up.clear()
        try:
            await server.reload()
        except Exception:
            # An error of our own: what is served goes on.
            logger.exception("not reloaded")


def _open_tracing(endpoint: str) -> "Tracing":
    """Raises MissingExtraError."""
    try:
        from dragoman_server.tracing import Tracing
    except ImportError as error:
        raise missing_extra("--otlp-endpoint", error, "tracing") from error
    return Tracing(endpoint)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _what_is_open(config: ServerConfig) -> str | None:
    """The risk of a port that is open to others, and how to end it."""
    if config.tls_client_ca is not None:
        return None
    if config.tls_certificate is None and config.tokens is None:
        return (
            "this port speaks without TLS and asks nobody who they are: put a proxy in front of it, or give "
            "the server --tls-certificate and --tokens"
        )
    if config.tls_certificate is None:
        return (
            "tokens and texts come to this port without TLS, for all on their way to read: put a proxy in "
            "front of it, or give the server --tls-certificate"
        )
    if config.tokens is None:
        return "this port asks nobody who they are: give the server --tokens"
    return None


def _why_unbindable(host: str, port: int) -> OSError | None:
    """grpc does not say why it could not bind; the system does."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error
    return None


def _describe(host: str, port: int, error: Exception, *, option: str) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        reason = f"{os.strerror(error.errno)}; choose another with {option}"
    elif isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        # Its own words say host and port again.
        reason = os.strerror(error.errno)
    else:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot listen on {host} port {port}: {reason}"

"""The `dragoman serve` command: options in, a running server out. Only wiring."""

import asyncio
import difflib
import logging
import os
import re
from pathlib import Path

import click

from dragoman_server.config import Batching, EngineConfig, LogFormat, RequestLimits, ServerConfig

PREFIX = "DRAGOMAN_SERVE"
"""How the environment variables begin that set options."""
CUT_OFF = 3
"""Exit code of a server whose drain had not the time for all calls."""
_PORT = click.IntRange(0, 65535)
_POSITIVE = click.IntRange(min=1)


class _LongRunning(click.Command):
    """A command that takes SIGHUP itself: until it does, the signal stays blocked."""

    takes_hangup = True


@click.command(cls=_LongRunning, context_settings={"auto_envvar_prefix": PREFIX, "show_default": True})
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of bundles, as NAME/VERSION.",
)
@click.option(
    "--max-loaded-models",
    type=_POSITIVE,
    default=ServerConfig.max_loaded_models,
    help="Most models that are loaded at a time. Each is loaded when a request needs it, and the least "
    "recently used one that is idle is unloaded for it.  [default: all are loaded, from the start]",
)
@click.option(
    "--pinned-model",
    "pinned_models",
    multiple=True,
    metavar="NAME[/VERSION]",
    help="With --max-loaded-models: a model that is loaded from the start and stays. Without a version the "
    "newest. Can be given several times.",
)
@click.option("--host", default=ServerConfig.host, help="Address that gRPC listens on.")
@click.option("--port", type=_PORT, default=ServerConfig.port, help="gRPC port; 0 lets the system choose.")
@click.option("--metrics-host", show_default="as --host", help="Address that the metrics port listens on.")
@click.option(
    "--metrics-port",
    type=_PORT,
    default=ServerConfig.metrics_port,
    help="HTTP port of /metrics; 0 turns it off.",
)
@click.option(
    "--http-port",
    type=_PORT,
    default=ServerConfig.http_port,
    help="Port of the page and of the APIs over HTTP, which need the extra dragoman[web]; 0 lets the system "
    "choose.  [default: none]",
)
@click.option("--http-host", show_default="as --host", help="Address that the HTTP port listens on.")
@click.option(
    "--tls-certificate",
    type=click.Path(path_type=Path),
    default=ServerConfig.tls_certificate,
    help="PEM file with the server's certificate followed by its intermediates; a changed file is used from "
    "the next connection.  [default: without TLS]",
)
@click.option(
    "--tls-key",
    type=click.Path(path_type=Path),
    default=ServerConfig.tls_key,
    help="PEM file of its key, without a password.",
)
@click.option(
    "--tokens",
    type=click.Path(path_type=Path),
    default=ServerConfig.tokens,
    help="File of those who may call, a line each: NAME TOKEN.  [default: everybody who reaches the port]",
)
@click.option(
    "--glossaries",
    type=click.Path(path_type=Path),
    default=ServerConfig.glossaries,
    help="Folder of glossaries that requests may name, as NAME.tsv: a first line of languages, then a line "
    "for each term, with tabs between.  [default: glossaries in the models folder]",
)
@click.option(
    "--pivot",
    metavar="LANGUAGE",
    default=ServerConfig.pivot,
    help="Language that texts go through where no model is for a pair but two are, such as en from de to "
    "fr. A request may say otherwise.  [default: none]",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default=EngineConfig.device,
    help="Where the graphs run. With cuda the server runs on CUDA or does not start.",
)
@click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "int8", "fp16"]),
    default=EngineConfig.precision,
    help="Which of a bundle's graphs run; auto takes what suits the device.",
)
@click.option(
    "--shortlist/--no-shortlist",
    default=EngineConfig.shortlist,
    help="Whether a bundle that has a lexical shortlist is decoded with it, which is faster; on a CPU in "
    "beams only.",
)
@click.option(
    "--threads",
    type=_POSITIVE,
    default=EngineConfig.threads,
    help="CPU cores of each model, each with its own batch.  [default: as many as this process may use]",
)
@click.option(
    "--engines-per-process",
    type=_POSITIVE,
    default=EngineConfig.engines_per_process,
    help="Cores of a model that share a process, and so its weights in memory.  "
    "[default: as many as its steps are long enough for, as is measured when it is loaded]",
)
@click.option(
    "--gpu-memory-limit",
    type=_POSITIVE,
    default=EngineConfig.gpu_memory_limit_mib,
    help="MiB of GPU memory that each of a model's two to four graphs may take.  [default: no limit]",
)
@click.option(
    "--cuda-graph-shapes",
    type=click.IntRange(min=0),
    default=EngineConfig.cuda_graph_shapes,
    help="Shapes of a batch whose steps a GPU replays from CUDA graphs; 0 is off. Not for Transformers, and "
    "not measured yet: python -m benchmarks.device does.",
)
@click.option(
    "--max-texts", type=_POSITIVE, default=RequestLimits.max_texts, help="Most texts of one Translate call."
)
@click.option(
    "--max-text-characters",
    type=_POSITIVE,
    default=RequestLimits.max_text_characters,
    help="Most characters of one text.",
)
@click.option(
    "--max-text-tokens",
    type=_POSITIVE,
    default=RequestLimits.max_text_tokens,
    help="Most source tokens of one text, which are what a translation costs.",
)
@click.option(
    "--max-interactive-tokens",
    type=_POSITIVE,
    default=RequestLimits.max_interactive_tokens,
    help="Most source tokens of an interactive request. One with more is decoded as bulk, so that nobody's "
    "sentence waits for it.",
)
@click.option(
    "--max-beam-size",
    type=_POSITIVE,
    default=RequestLimits.max_beam_size,
    help="Widest beam that a request may ask for.",
)
@click.option(
    "--max-output-tokens",
    type=_POSITIVE,
    default=RequestLimits.max_output_tokens,
    help="Most output tokens per sentence, whether a request asks for them or leaves it to the model.",
)
@click.option(
    "--max-terms",
    type=_POSITIVE,
    default=RequestLimits.max_terms,
    help="Most terms that a call may bring; glossaries may have more.",
)
@click.option(
    "--max-patterns",
    type=_POSITIVE,
    default=RequestLimits.max_patterns,
    help="Most patterns that a call may bring.",
)
@click.option(
    "--max-message-bytes",
    type=click.IntRange(min=1, max=2**31 - 1),
    default=RequestLimits.max_message_bytes,
    help="Most bytes of one gRPC message received. Our clients send up to 64 KiB of texts, or "
    "one longer text.",
)
@click.option(
    "--max-stream-items",
    type=_POSITIVE,
    default=RequestLimits.max_stream_items,
    help="Most items of one stream that are translated at a time.",
)
@click.option(
    "--max-stream-idle-seconds",
    type=click.FloatRange(0, min_open=True),
    default=RequestLimits.max_stream_idle_seconds,
    help="How long a stream may be idle, with nothing sent, read or under way, before it is ended, and an "
    "answer that nobody reads counts towards --max-calls.",
)
@click.option(
    "--max-calls",
    type=_POSITIVE,
    default=RequestLimits.max_calls,
    help="Most calls in progress at once, over all callers.",
)
@click.option(
    "--max-connections",
    type=_POSITIVE,
    default=RequestLimits.max_connections,
    help="Most connections at once; where the process may open few files, fewer. Further ones are closed.",
)
@click.option(
    "--max-http-connections",
    type=_POSITIVE,
    default=RequestLimits.max_http_connections,
    help="Most connections over HTTP at once, each with one call at most. Further ones get 503.",
)
@click.option(
    "--max-http-body-bytes",
    type=_POSITIVE,
    default=RequestLimits.max_http_body_bytes,
    help="Most bytes of a request over HTTP, files included.",
)
@click.option(
    "--max-http-seconds",
    type=click.FloatRange(0, min_open=True),
    default=RequestLimits.max_http_seconds,
    help="How long a request over HTTP may take to come in, and again to be answered.",
)
@click.option(
    "--max-health-watches",
    type=_POSITIVE,
    default=RequestLimits.max_health_watches,
    help="Most Watch calls of the health service at once, which need no token.",
)
@click.option(
    "--max-health-watches-per-host",
    type=_POSITIVE,
    default=RequestLimits.max_health_watches_per_host,
    help="Most of them that come from one address.",
)
@click.option(
    "--max-queue",
    type=_POSITIVE,
    default=EngineConfig.max_queue,
    help="Most sentences of a model that wait for a place in a batch.",
)
@click.option(
    "--max-queue-seconds",
    type=click.FloatRange(0, min_open=True),
    default=EngineConfig.max_queue_seconds,
    help="Longest that a sentence may have to wait, by what was answered of late: past it calls are refused, "
    "and streams wait.",
)
@click.option(
    "--max-rows",
    type=_POSITIVE,
    default=EngineConfig.max_rows,
    help="Most rows, sentences times beam, of a batch. There is one per thread; on a GPU there is one.",
)
@click.option(
    "--max-source-tokens",
    type=_POSITIVE,
    default=EngineConfig.max_source_tokens,
    help="Most source tokens of a batch, padding included.",
)
@click.option(
    "--max-bulk-share",
    type=click.FloatRange(0, 1, min_open=True),
    default=EngineConfig.max_bulk_share,
    help="Largest share of rows, source tokens and queue that batch jobs take; the rest is kept for others.",
)
@click.option(
    "--max-bulk-slowdown",
    type=click.FloatRange(1),
    default=EngineConfig.max_bulk_slowdown,
    help="How many times as long batch jobs may make a decoder step, and so each token, of an interactive "
    "sentence that is alone, while such sentences come. Lower: these are answered sooner, and jobs take "
    "longer.",
)
@click.option(
    "--engine-timeout-seconds",
    type=click.FloatRange(0, min_open=True),
    default=EngineConfig.engine_timeout_seconds,
    help="How long an engine may take for one run of a graph. One that is silent for longer hangs: its "
    "process is killed and replaced.",
)
@click.option(
    "--batching",
    type=click.Choice(["continuous", "request"]),
    default=EngineConfig.batching,
    help="continuous: sentences join a running batch and are answered when they are finished; "
    "request: a batch is decoded and answered as a whole before the next begins (for comparison).",
)
@click.option(
    "--drain-seconds",
    type=click.FloatRange(min=0),
    default=ServerConfig.drain_seconds,
    help="How long accepted calls may take to finish after SIGTERM or SIGINT.",
)
@click.option(
    "--max-reload-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=ServerConfig.max_reload_seconds,
    help="How long the models folder, the tokens or the glossaries may take to be read again after "
    "SIGHUP; what takes longer stays as it was.",
)
@click.option(
    "--log-format", type=click.Choice(["json", "text"]), default="json", help="Form of a line of the log."
)
@click.option(
    "--reflection/--no-reflection",
    default=ServerConfig.reflection,
    help="Whether tools such as grpcurl may ask for the API's description.",
)
def serve(
    *,
    models: Path,
    max_loaded_models: int | None,
    pinned_models: tuple[str, ...],
    host: str,
    port: int,
    metrics_host: str | None,
    metrics_port: int,
    http_port: int | None,
    http_host: str | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tokens: Path | None,
    glossaries: Path | None,
    pivot: str | None,
    device: str,
    precision: str,
    shortlist: bool,
    threads: int | None,
    engines_per_process: int | None,
    gpu_memory_limit: int | None,
    cuda_graph_shapes: int,
    max_texts: int,
    max_text_characters: int,
    max_text_tokens: int,
    max_interactive_tokens: int,
    max_beam_size: int,
    max_output_tokens: int,
    max_terms: int,
    max_patterns: int,
    max_message_bytes: int,
    max_stream_items: int,
    max_stream_idle_seconds: float,
    max_calls: int,
    max_connections: int,
    max_http_connections: int,
    max_http_body_bytes: int,
    max_http_seconds: float,
    max_health_watches: int,
    max_health_watches_per_host: int,
    max_queue: int,
    max_rows: int,
    max_source_tokens: int,
    max_bulk_share: float,
    max_bulk_slowdown: float,
    max_queue_seconds: float,
    engine_timeout_seconds: float,
    batching: Batching,
    drain_seconds: float,
    max_reload_seconds: float,
    log_format: LogFormat,
    reflection: bool,
) -> None:
    """Serve the bundles of a folder over gRPC, and over HTTP where --http-port says so.

    Every option can be given by an environment variable too: --max-texts by DRAGOMAN_SERVE_MAX_TEXTS. SIGTERM
    and SIGINT drain the server; a second one ends it at once. SIGHUP has the models folder, the tokens and
    the glossaries read again: new bundles are served, and those that are gone end once nobody uses them.

    The exit code is 0 after a drain that answered every accepted call, 3 where --drain-seconds cut some off,
    1 where the server could not start or lost an engine, and 2 for options that are none.
    """
    _check_environment()
    # Loaded here: `dragoman serve --help` needs neither onnxruntime nor grpc.
    from prometheus_client import disable_created_metrics

    from dragoman_server.api.certificate import CertificateError
    from dragoman_server.engine import DeviceUnavailableError
    from dragoman_server.glossaries import GlossaryError
    from dragoman_server.logs import open_log
    from dragoman_server.models.repository import RepositoryError
    from dragoman_server.server import EngineEndedError, MissingWebError, PortError
    from dragoman_server.server import serve as serve_until_stopped
    from dragoman_server.service.callers import TokenFileError

    try:
        config = ServerConfig(
            models=models,
            max_loaded_models=max_loaded_models,
            pinned_models=pinned_models,
            host=host,
            port=port,
            metrics_host=metrics_host,
            metrics_port=metrics_port,
            http_port=http_port,
            http_host=http_host,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            tokens=tokens,
            glossaries=glossaries,
            pivot=pivot,
            drain_seconds=drain_seconds,
            max_reload_seconds=max_reload_seconds,
            reflection=reflection,
            limits=RequestLimits(
                max_texts=max_texts,
                max_text_characters=max_text_characters,
                max_text_tokens=max_text_tokens,
                max_interactive_tokens=max_interactive_tokens,
                max_beam_size=max_beam_size,
                max_output_tokens=max_output_tokens,
                max_terms=max_terms,
                max_patterns=max_patterns,
                max_message_bytes=max_message_bytes,
                max_stream_items=max_stream_items,
                max_stream_idle_seconds=max_stream_idle_seconds,
                max_calls=max_calls,
                max_connections=max_connections,
                max_http_connections=max_http_connections,
                max_http_body_bytes=max_http_body_bytes,
                max_http_seconds=max_http_seconds,
                max_health_watches=max_health_watches,
                max_health_watches_per_host=max_health_watches_per_host,
            ),
            engine=EngineConfig(
                device=device,
                precision=precision,
                shortlist=shortlist,
                threads=threads,
                engines_per_process=engines_per_process,
                gpu_memory_limit_mib=gpu_memory_limit,
                cuda_graph_shapes=cuda_graph_shapes,
                max_rows=max_rows,
                max_source_tokens=max_source_tokens,
                max_bulk_share=max_bulk_share,
                max_bulk_slowdown=max_bulk_slowdown,
                max_queue=max_queue,
                max_queue_seconds=max_queue_seconds,
                engine_timeout_seconds=engine_timeout_seconds,
                batching=batching,
            ),
        )
    except ValueError as error:
        raise click.UsageError(_name_options(str(error))) from error
    # Every counter and histogram would have a twin, which nobody looks at: when it began.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    with open_log(log_format) as log:
        try:
            finished = asyncio.run(serve_until_stopped(config, log))
        except (
            CertificateError,
            DeviceUnavailableError,
            EngineEndedError,
            GlossaryError,
            MissingWebError,
            PortError,
            RepositoryError,
            TokenFileError,
        ) as error:
            if log_format == "text":
                raise click.ClickException(str(error)) from error
            # Whoever reads the log finds nothing in it but JSON.
            logging.getLogger(__name__).critical("not serving", extra={"reason": str(error)})
            raise SystemExit(1) from error
    if not finished:
        raise SystemExit(CUT_OFF)


def _check_environment() -> None:
    """Refuses variables that set no option: whoever misspells a limit would go without."""
    known = [f"{PREFIX}_{parameter.name}".upper() for parameter in serve.params]
    for name in sorted(os.environ):
        if name.startswith(f"{PREFIX}_") and name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise click.UsageError(f"the environment variable {name} sets no option{hint}")


def _name_options(message: str) -> str:
    """A message about fields of the configuration, with the options that set them."""
    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", lambda name: "--" + name[0].replace("_", "-"), message)

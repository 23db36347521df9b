"""The configuration of a server. Every limit is here, with its default and the command line's words."""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dragoman_server.options import check_ranges, option

LogFormat = Literal["auto", "json", "text"]
Batching = Literal["continuous", "request"]
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "fp32", "int8", "fp16"]


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """How much one caller may ask for. Raises ValueError, naming the field, for a value out of its range."""

    max_texts: int = option(1024, at_least=1, heading="What one caller may ask for")
    """Most texts of one Translate call."""
    max_text_characters: int = option(100_000, at_least=1)
    """Most characters of one text."""
    max_text_tokens: int = option(50_000, at_least=1)
    """Most source tokens of one text, which are what it costs: 100,000 letters of a language have half as
    many. Text of no language has a token for each letter, and would run on until the longest output."""
    max_interactive_tokens: int = option(4_096, at_least=1)
    """Most source tokens of an interactive request, all its texts together. One with more is decoded as bulk,
    so that nobody's sentence waits until a book is through."""
    max_beam_size: int = option(16, at_least=1)
    """Widest beam that a request may ask for."""
    max_output_tokens: int = option(1024, at_least=1)
    """Most output tokens of a sentence, whether a request asks for them or leaves it to the model."""
    max_aligned_words: int = option(500, at_least=1)
    """Most words of a line, or of a text whose lines don't match its translation's, that a saved aligner
    links at once. With twice as many it takes eight times as long."""
    max_terms: int = option(10_000, at_least=1)
    """Most terms that a call may bring, those not to be translated included; a glossary of the server may
    have more."""
    max_patterns: int = option(16, at_least=1)
    """Most patterns that a call may bring. Each is looked for in every text."""
    max_message_bytes: int = option(
        4 * 1024 * 1024, at_least=1, at_most=2**31 - 1, heading="Messages, calls and connections"
    )
    """Most bytes of one gRPC message received. Our clients send up to 64 KiB of texts, or one longer text.
    It may have 100,000 fields, or a hundred times --max-texts where that is more."""
    max_stream_items: int = option(256, at_least=1)
    """Most items of one stream that are translated at a time; no more are read until one is answered."""
    max_stream_idle_seconds: float = option(300.0, above=0)
    """How long a stream may be idle, with nothing sent, read or under way, before it is ended; and how long a
    call keeps its place while nobody reads its answer."""
    max_calls: int = option(1000, at_least=1)
    """Most calls in progress at once, of all callers together; a stream is one."""
    max_connections: int = option(10_000, at_least=1)
    """Most connections at once; fewer where the process may open too few files. Further ones are closed."""
    max_connection_age_seconds: float | None = option(
        None, above=0, at_most=1_000_000, when_none="as old as they get"
    )
    """How old a connection gets, give or take a tenth: then its client is asked to open another, and calls in
    progress end as they would. So clients of several servers behind one name find those that were added."""
    max_http_connections: int = option(500, at_least=1)
    """Most connections over HTTP at once, each with one call at most: fewer than --max-calls, so that they
    never take all of these. Each counts once it is accepted; further ones get 503, or over TLS are hung up
    on."""
    max_http_body_bytes: int = option(4 * 1024 * 1024, at_least=1)
    """Most bytes of a request over HTTP, files included."""
    max_http_seconds: float = option(60.0, above=0)
    """How long a request over HTTP may take to come in, and again to be answered; less where it says so."""
    max_document_seconds: float = option(30.0, above=0)
    """How long a file over HTTP may take to be read, and again to be written, its wait for a thread included.
    Translating it may take as long as its caller waits."""
    max_kept_file_bytes: int = option(64 * 1024 * 1024, at_least=1)
    """Most bytes of all translated files together that wait to be fetched over HTTP. The oldest make room;
    the last one stays, however large it is."""
    max_kept_file_seconds: float = option(600.0, above=0)
    """How long a translated file can be fetched over HTTP."""
    max_health_watches: int = option(1000, at_least=1)
    """Most Watch calls of the health service at once, of all callers together. They need no token."""
    max_health_watches_per_host: int = option(100, at_least=1)
    """Most of them that come from one address."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """How each model's engine runs. Raises ValueError, naming the field, for a value out of its range."""

    device: Device = option("auto", heading="How each model runs")
    """Where the graphs run. With cuda the server runs on CUDA or does not start."""
    precision: Precision = "auto"
    """Which of a bundle's graphs run; auto takes what suits the device."""
    shortlist: bool = True
    """Whether a bundle that has a lexical shortlist is decoded with it, which is faster; on a CPU a
    greedy search over fewer than 12,000 target pieces is not."""
    threads: int | None = option(None, at_least=1, when_none="as many as this process may use")
    """CPU cores of each model, each with a batch of its own."""
    engines_per_process: int | None = option(
        None,
        at_least=1,
        when_none="as many as its steps are long enough for, as is measured when it is loaded",
    )
    """Cores of a model that share a process, and so its weights in memory."""
    gpu_memory_limit: int | None = option(None, at_least=1, when_none="no limit")
    """Most MiB of GPU memory that each of a model's two to four graphs takes. A batch that needs more fails,
    so --max-rows must fit."""
    max_rows: int = option(320, at_least=1)
    """Most rows, sentences times beam, of a batch. There is one batch per thread; on a GPU there is one."""
    max_score_memory: int = option(32, at_least=1)
    """Most MiB that the scores of a step take on a CPU, four bytes for each row and token of the target
    vocabulary. With 65,000 tokens a batch has 128 rows, which are decoded as quickly as 320."""
    max_source_tokens: int = option(16_384, at_least=1)
    """Most source tokens of a batch, padding included."""
    max_bulk_share: float = option(0.75, above=0, at_most=1)
    """Largest share of rows, source tokens and queue that batch jobs take; the rest is kept for interactive
    sentences."""
    max_bulk_slowdown: float = option(3.0, at_least=1)
    """How many times as long batch jobs may make a decoder step, and so each token, of an interactive
    sentence that is alone, while such sentences come. Lower: these are answered sooner, and jobs take
    longer."""
    max_queue: int = option(10_000, at_least=1)
    """Most sentences of a model that wait for a place in a batch, or lines of all aligners for a thread."""
    max_queue_seconds: float = option(10.0, above=0)
    """Longest that a sentence may have to wait, by what was answered of late: past it calls are refused, and
    streams wait."""
    engine_timeout_seconds: float = option(30.0, above=0)
    """How long an engine may take for one run of a graph. One that is silent for longer counts as hung: its
    process is killed and replaced."""
    batching: Batching = "continuous"
    """continuous: sentences join a running batch and are answered when they are finished; request: a batch is
    decoded and answered as a whole before the next begins (for comparison)."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Everything a server is told. Raises ValueError, naming the field, for what can't be."""

    models: Path = option(Path("models"), heading="Models")
    """Folder of bundles, as NAME/VERSION."""
    get: str | None = option(None, metavar="MODEL[,...]", when_none="what is in the models folder")
    """Models that `dragoman get` fetches into the models folder before any is loaded, such as de-en,en-fr,
    where it has none for these languages. It needs the extra dragoman[get]."""
    max_loaded_models: int | None = option(None, at_least=1, when_none="all are loaded, from the start")
    """Most models that are loaded at a time. Each is loaded when a request needs it, and the least recently
    used one that is idle is unloaded for it."""
    pinned_models: tuple[str, ...] = option((), flag="--pinned-model", metavar="NAME[/VERSION]")
    """Model that is loaded from the start and stays, with --max-loaded-models. Without a version the
    newest. Can be given several times."""
    pivot: str | None = option(None, metavar="LANGUAGE", when_none="none")
    """Language that texts go through where no model is for a pair but two are, such as en from de to fr. A
    request may say otherwise."""
    glossaries: Path | None = option(None, when_none="glossaries in the models folder")
    """Folder of glossaries that requests may name, as NAME.tsv: a first line of languages, then a line for
    each term, with tabs between."""
    aligners: Path | None = option(None, when_none="words are linked by models only")
    """Folder of saved aligners that requests to link words may name: a folder of `dragoman align train` for
    each, under its name. It needs the extra dragoman[align]."""
    host: str = option("127.0.0.1", heading="Addresses and ports")
    """Address that gRPC listens on."""
    port: int = option(50051, at_least=0, at_most=65535)
    """Port of gRPC; 0 lets the system choose."""
    http_host: str | None = option(None, when_none="as --host")
    """Address that the HTTP port listens on."""
    http_port: int | None = option(None, at_least=0, at_most=65535, when_none="none")
    """Port of the page and of the APIs over HTTP, which need the extra dragoman[web]; 0 lets the system
    choose."""
    http_cors_origins: tuple[str, ...] = option((), flag="--http-cors-origin", metavar="ORIGIN")
    """Origin of pages that may call the APIs over HTTP from a browser, as https://example.org; * is every
    page. Can be given several times."""
    http_trusted_proxies: tuple[str, ...] = option((), flag="--http-trusted-proxy", metavar="ADDRESS")
    """Address or network of proxies whose X-Forwarded-Proto, -Host and -For are believed, as 10.0.0.0/8. Can
    be given several times."""
    metrics_host: str | None = option(None, when_none="as --host")
    """Address that the metrics port listens on."""
    metrics_port: int = option(9055, at_least=0, at_most=65535)
    """HTTP port of /metrics; 0 turns it off. The default is none of Prometheus's own (9090 to 9094), of its
    exporters (9100 to 9999) or of outgoing connections."""
    reflection: bool = True
    """Whether tools such as grpcurl may ask for the API's description."""
    tls_certificate: Path | None = option(None, heading="Who may call", when_none="without TLS")
    """PEM file with the server's certificate followed by its intermediates; a changed file is used
    within a second."""
    tls_key: Path | None = None
    """PEM file of its key, without a password."""
    tls_client_ca: Path | None = option(None, when_none="callers need no certificate")
    """PEM file of the authorities that callers' certificates must come from, over gRPC and HTTP; read once.
    Without --tokens a certificate's name says who calls."""
    tokens: Path | None = option(None, when_none="everybody who reaches the port")
    """File of those who may call, a line each: NAME TOKEN."""
    caller_limits: Path | None = option(None, when_none="everybody may as much as the server can")
    """File of how much each caller may, a line each: NAME LIMIT=VALUE ..., with * for all others. It needs
    --tokens or --tls-client-ca."""
    log_format: LogFormat = option("auto", heading="Log, traces, start and end")
    """Form of a line of the log; auto is text for a terminal, and json for all else."""
    otlp_endpoint: str | None = option(None, metavar="URL", when_none="no traces")
    """Collector that traces are sent to by OTLP over gRPC, as http://HOST:4317, or https:// over TLS. It
    needs the extra dragoman[tracing]."""
    drain_seconds: float = option(30.0, at_least=0)
    """How long accepted calls may take to finish after SIGTERM or SIGINT."""
    max_reload_seconds: float = option(300.0, above=0)
    """How long the models folder, the tokens, the limits, the glossaries or the aligners may take to be read
    again after SIGHUP. What takes longer stays as it was."""
    limits: RequestLimits = field(default_factory=RequestLimits)
    """How much one caller may ask for."""
    engine: EngineConfig = field(default_factory=EngineConfig)
    """How each model's engine runs."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key are given together, or neither is")
        if self.otlp_endpoint is not None and not re.fullmatch(r"https?://[^/\s]+/?", self.otlp_endpoint):
            raise ValueError(f"otlp_endpoint is {self.otlp_endpoint!r}; it must be as http://localhost:4317")
        for origin in self.http_cors_origins:
            if not re.fullmatch(r"\*|https?://[^/\s]+", origin):
                raise ValueError(f"http_cors_origins is {origin!r}; it must be as https://example.org, or *")
        for proxy in self.http_trusted_proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                rule = "it must be an address or a network, as 10.0.0.0/8"
                raise ValueError(f"http_trusted_proxies is {proxy!r}; {rule}") from error
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise ValueError("tls_client_ca needs TLS; give tls_certificate and tls_key too")
        if self.caller_limits is not None and self.tokens is None and self.tls_client_ca is None:
            raise ValueError(
                "caller_limits is given without tokens: nobody would know whose a call is; give tokens or "
                "tls_client_ca too"
            )
        has_same_host = (self.metrics_host or self.host) == self.host
        if has_same_host and self.metrics_port == self.port != 0:
            where = f"{self.metrics_port}, where gRPC listens already"
            raise ValueError(f"metrics_port is {where}; choose another, or 0 for no metrics")
        if self.http_port and (self.http_host or self.host) == self.host and self.http_port == self.port:
            raise ValueError(f"http_port is {self.http_port}, where gRPC listens already; choose another")
        if self.pinned_models and self.max_loaded_models is None:
            raise ValueError(
                f"pinned_models begins with {self.pinned_models[0]!r}, and without max_loaded_models every "
                "model is loaded from the start and stays; set that, or pin none"
            )
        if self.limits.max_beam_size > self.engine.max_rows:
            rows = f"more rows than max_rows = {self.engine.max_rows} allows"
            raise ValueError(f"max_beam_size is {self.limits.max_beam_size}, {rows}")

"""What a server is told at its start. Every limit is here, with the default that the command line shows."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

LogFormat = Literal["json", "text"]
Batching = Literal["continuous", "request"]


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """How much one caller may ask for. Raises ValueError, naming the field, for one that leaves no room."""

    max_texts: int = 1024
    """Most texts of one Translate call."""
    max_text_characters: int = 100_000
    """Most code points of one text."""
    max_text_tokens: int = 50_000
    """Most source tokens of one text: twice as many as 100,000 letters of ordinary text have. What is no
    language has a token for each letter, and runs on until the longest output."""
    max_interactive_tokens: int = 4_096
    """Most source tokens of an interactive request, all its texts together. One with more is decoded as bulk,
    so that nobody's sentence waits until a book is through."""
    max_beam_size: int = 16
    """Widest beam of a request."""
    max_output_tokens: int = 1024
    """Most output tokens per sentence, whether a request asks for them or leaves it to the model's bundle."""
    max_terms: int = 10_000
    """Most terms of one call, do_not_translate included; a glossary of the server may have more."""
    max_patterns: int = 16
    """Most patterns of one call, each of which is looked for in every text."""
    max_message_bytes: int = 4 * 1024 * 1024
    """Most bytes of one gRPC message received; what is sent is bounded by what was accepted. It is
    decoded at once, on the event loop: one of nothing but empty texts takes some 30 times its size."""
    max_stream_items: int = 256
    """Most items of one stream that are translated at a time; no more are read until one is answered."""
    max_stream_idle_seconds: float = 300.0
    """How long a stream may hold its place in which nothing is sent, read or under way, and any call one
    whose answer nobody reads."""
    max_calls: int = 1000
    """Most calls that are in at a time, of all callers together; a stream is one."""
    max_connections: int = 10_000
    """Most connections at a time, and fewer where the process may open too few files; who comes then is hung
    up on."""
    max_http_connections: int = 500
    """Most connections over HTTP at a time, each of which has one call at most: fewer than `max_calls`, so
    that they never take all of these."""
    max_http_body_bytes: int = 4 * 1024 * 1024
    """Most bytes of a request over HTTP, a file that it brings among them."""
    max_http_seconds: float = 60.0
    """How long a request over HTTP may take to come, and again to be answered; less where it says so."""
    max_health_watches: int = 1000
    """Most Watch calls of grpc.health.v1 at a time, of all callers together: nobody needs a token for one."""
    max_health_watches_per_host: int = 100
    """Most of them of one address, so that no single host takes them all."""

    def __post_init__(self) -> None:
        _require_positive(
            self,
            "max_texts",
            "max_text_characters",
            "max_text_tokens",
            "max_interactive_tokens",
            "max_beam_size",
            "max_output_tokens",
            "max_terms",
            "max_patterns",
            "max_message_bytes",
            "max_stream_items",
            "max_calls",
            "max_connections",
            "max_http_connections",
            "max_http_body_bytes",
            "max_health_watches",
            "max_health_watches_per_host",
        )
        if not self.max_stream_idle_seconds > 0:
            raise ValueError(f"max_stream_idle_seconds is {self.max_stream_idle_seconds}; it must be above 0")
        if not self.max_http_seconds > 0:
            raise ValueError(f"max_http_seconds is {self.max_http_seconds}; it must be above 0")


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """How each model's engine runs."""

    device: str = "auto"
    """"auto", "cpu" or "cuda". With "cuda" the server runs on CUDA or does not start."""
    precision: str = "auto"
    """"auto", "fp32", "int8" or "fp16"."""
    shortlist: bool = True
    """Whether a bundle that has a lexical shortlist is decoded with it; on a CPU in beams only."""
    threads: int | None = None
    """CPU cores of one model, each with a batch of its own; None: as many as this process may use."""
    engines_per_process: int | None = None
    """Cores of a model that share a process, and so its weights; None: few where steps are short, as they
    wait for Python's lock, and many where they are long."""
    gpu_memory_limit_mib: int | None = None
    """Most MiB of GPU memory that each of a model's two to four graphs takes; None: what the GPU has.
    A batch that needs more fails, so max_rows must fit."""
    cuda_graph_shapes: int = 0
    """Shapes of a batch, of those that come most, whose steps a GPU replays from CUDA graphs; 0: none. Each
    takes GPU memory, for the batch twice and for two graphs a time. Models whose state grows have none."""
    max_rows: int = 320
    """Most rows, sentences times beam, of a batch."""
    max_source_tokens: int = 16_384
    """Most source tokens of a batch, padding included."""
    max_bulk_share: float = 0.75
    """Largest share of rows, source tokens and queue that bulk takes: the rest is interactive sentences'."""
    max_bulk_slowdown: float = 3.0
    """How many times as long bulk makes a step, and so each token, of a lone interactive sentence at most,
    while such sentences come."""
    max_queue: int = 10_000
    """Most sentences of a model that wait for a place in a batch."""
    max_queue_seconds: float = 10.0
    """More sentences may wait only while those before them take no longer, by what was answered of late."""
    engine_timeout_seconds: float = 30.0
    """How long an engine may take for one run of a graph; one that says nothing for longer counts as hung. A
    process is then killed and replaced; a thread can't be, and the server ends."""
    batching: Batching = "continuous"
    """"continuous": sentences join and leave a running batch; "request": it ends as one before another."""

    def __post_init__(self) -> None:
        _require_positive(self, "max_rows", "max_source_tokens", "max_queue")
        if not 0 < self.max_bulk_share <= 1:
            raise ValueError(f"max_bulk_share is {self.max_bulk_share}; it must be above 0 and at most 1")
        if not self.max_bulk_slowdown >= 1:
            raise ValueError(f"max_bulk_slowdown is {self.max_bulk_slowdown}; it must be at least 1")
        if not self.max_queue_seconds > 0:
            raise ValueError(f"max_queue_seconds is {self.max_queue_seconds}; it must be above 0")
        if not self.engine_timeout_seconds > 0:
            raise ValueError(f"engine_timeout_seconds is {self.engine_timeout_seconds}; it must be above 0")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads is {self.threads}; it must be at least 1")
        if self.engines_per_process is not None and self.engines_per_process < 1:
            raise ValueError(f"engines_per_process is {self.engines_per_process}; it must be at least 1")
        if self.gpu_memory_limit_mib is not None and self.gpu_memory_limit_mib < 1:
            raise ValueError(
                f"gpu_memory_limit_mib is {self.gpu_memory_limit_mib}; "
                "it must be at least 1, or None for no limit"
            )
        if self.cuda_graph_shapes < 0:
            raise ValueError(f"cuda_graph_shapes is {self.cuda_graph_shapes}; it must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Everything a server is told."""

    models: Path
    """Folder of bundles, as NAME/VERSION."""
    max_loaded_models: int | None = None
    """Most models that are loaded at a time, each when a request needs it; None: all, from the start."""
    pinned_models: tuple[str, ...] = ()
    """Of those, NAME for its newest version or NAME/VERSION, that are loaded from the start and stay."""
    host: str = "127.0.0.1"
    """Address that gRPC listens on."""
    port: int = 50051
    """Port of gRPC; 0 lets the system choose."""
    metrics_host: str | None = None
    """Address that the metrics port listens on; None: as `host`."""
    metrics_port: int = 9055
    """Port of /metrics over HTTP; 0 serves none. The default is neither one of Prometheus (9090 to 9094) nor
    of its exporters (9100 to 9999), nor one that Linux gives to outgoing connections."""
    http_host: str | None = None
    """Address that the HTTP port listens on; None: as `host`."""
    http_port: int | None = None
    """Port of the APIs and the page over HTTP; 0 lets the system choose, None: there is none."""
    tls_certificate: Path | None = None
    """PEM file with the server's certificate followed by its intermediates; a changed file is used from the
    next connection. None: without TLS."""
    tls_key: Path | None = None
    """PEM file of its key, without a password."""
    tokens: Path | None = None
    """File of those who may call, as `callers.read_tokens` reads it; None: everybody who reaches the port."""
    glossaries: Path | None = None
    """Folder of glossaries, as NAME.tsv; None: "glossaries" in the models folder, if it is there."""
    pivot: str | None = None
    """Language that texts go through where no model is for a pair, unless a request says otherwise; None:
    they do not."""
    drain_seconds: float = 30.0
    """How long accepted calls may take to finish after SIGTERM or SIGINT."""
    max_reload_seconds: float = 300.0
    """How long the models folder, or the tokens, may take to be read again after SIGHUP. What is not read by
    then stays as it was."""
    reflection: bool = True
    """Whether the server describes its API to tools such as grpcurl."""
    limits: RequestLimits = field(default_factory=RequestLimits)
    """How much one caller may ask for."""
    engine: EngineConfig = field(default_factory=EngineConfig)
    """How each model's engine runs."""

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key are given together, or neither is")
        has_same_host = (self.metrics_host or self.host) == self.host
        if has_same_host and self.metrics_port == self.port != 0:
            raise ValueError(
                f"metrics_port is {self.metrics_port}, where gRPC listens already; choose another, "
                "or 0 for no metrics"
            )
        if self.http_port and (self.http_host or self.host) == self.host and self.http_port == self.port:
            raise ValueError(f"http_port is {self.http_port}, where gRPC listens already; choose another")
        if self.max_loaded_models is not None and self.max_loaded_models < 1:
            raise ValueError(f"max_loaded_models is {self.max_loaded_models}; it must be at least 1")
        if self.pinned_models and self.max_loaded_models is None:
            raise ValueError(
                f"pinned_models begins with {self.pinned_models[0]!r}, and without max_loaded_models every "
                "model is loaded from the start and stays; set that, or pin none"
            )
        if not self.drain_seconds >= 0:
            raise ValueError(f"drain_seconds is {self.drain_seconds}; it must be 0 or more")
        if not self.max_reload_seconds > 0:
            raise ValueError(f"max_reload_seconds is {self.max_reload_seconds}; it must be above 0")
        if self.limits.max_beam_size > self.engine.max_rows:
            raise ValueError(
                f"max_beam_size is {self.limits.max_beam_size}, "
                f"more rows than max_rows = {self.engine.max_rows} allows"
            )


def _require_positive(config: object, *names: str) -> None:
    for name in names:
        if getattr(config, name) < 1:
            raise ValueError(f"{name} is {getattr(config, name)}; it must be at least 1")

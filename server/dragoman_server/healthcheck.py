"""`python -m dragoman_server.healthcheck`: exit code 0 where the server takes calls, 1 where not.

For containers and their like, whose health check is a command. Asks grpc.health.v1, as any other client, and
prints where the graphs of each model run: the container's own record of its readiness says so too.
"""

import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc
from dragoman_server.config import ServerConfig
from dragoman_server.errors import ServerFileError
from dragoman_server.service.callers import AUTHORIZATION, HASHED, read_tokens

CALLER = "healthcheck"
"""The token that it calls a server with tokens with."""
_SERVING = health_pb2.HealthCheckResponse.SERVING


def _default_server() -> str:
    """Where `dragoman serve`, told by the same environment, listens."""
    host = os.environ.get("DRAGOMAN_SERVE_HOST") or ServerConfig.host
    port = os.environ.get("DRAGOMAN_SERVE_PORT") or ServerConfig.port
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _file_option(flag: str, variable: str, meaning: str) -> Callable[[Any], Any]:
    path = click.Path(path_type=Path)
    return click.option(flag, envvar=variable, type=path, show_envvar=True, help=meaning)


@click.command(context_settings={"show_default": True})
@click.option(
    "--server",
    default=_default_server,
    show_default="host and port as `dragoman serve` takes them",
    help="HOST:PORT of the server.",
)
@_file_option(
    "--tls-certificate",
    "DRAGOMAN_SERVE_TLS_CERTIFICATE",
    "PEM file of the certificate that the server has; without one it is called without TLS.",
)
@_file_option(
    "--tokens",
    "DRAGOMAN_SERVE_TOKENS",
    f"The server's file of tokens. It tells where its graphs run if one is of the caller {CALLER!r}.",
)
@_file_option(
    "--client-certificate",
    "DRAGOMAN_CLIENT_CERTIFICATE",
    "PEM file of the certificate that a server with --tls-client-ca asks for.",
)
@_file_option("--client-key", "DRAGOMAN_CLIENT_KEY", "PEM file of its key.")
@click.option("--service", default="", help='Which service; "" is the server as a whole.')
@click.option("--timeout", default=3.0, help="Seconds to wait.")
def healthcheck(
    server: str,
    tls_certificate: Path | None,
    tokens: Path | None,
    client_certificate: Path | None,
    client_key: Path | None,
    service: str,
    timeout: float,
) -> None:
    """Ask a server whether it is healthy, and which provider its graphs run on."""
    if (client_certificate is None) != (client_key is None):
        raise click.UsageError("--client-certificate and --client-key are given together, or neither is")
    deadline = time.monotonic() + timeout

    def left() -> float:
        return max(0.001, deadline - time.monotonic())

    # Over TLS that waits up to twice, to connect and to shake hands, and the check is to have its time.
    files = None if client_certificate is None or client_key is None else (client_certificate, client_key)
    with _open_channel(server, tls_certificate, files, timeout / 3) as channel:
        try:
            request = health_pb2.HealthCheckRequest(service=service)
            status = health_pb2_grpc.HealthStub(channel).Check(request, timeout=left()).status
        except grpc.RpcError as error:
            raise click.ClickException(f"{server} does not answer: {error.code().name}") from error
        if status != _SERVING:
            name = health_pb2.HealthCheckResponse.ServingStatus.Name(status)
            raise click.ClickException(f"{server} is {name}")
        # A server that is too busy to tell is still healthy, and one that tells only others is not asked.
        with suppress(grpc.RpcError, ServerFileError):
            metadata = _metadata(tokens)
            if tokens is not None and not metadata:
                return
            stub = pb_grpc.TranslationServiceStub(channel)
            listed = stub.ListModels(pb.ListModelsRequest(), timeout=left(), metadata=metadata)
            for model in listed.models:
                graphs = (f"{graph} on {provider}" for graph, provider in sorted(model.providers.items()))
                click.echo(f"{model.name}/{model.version}, {model.precision}: {', '.join(graphs)}")


def _metadata(tokens: Path | None) -> tuple[tuple[str, str], ...]:
    """What shows the server the token of this command, where the file has one."""
    names = {} if tokens is None else read_tokens(tokens)
    shown = [token for token, name in names.items() if name == CALLER and not token.startswith(HASHED)]
    return tuple((AUTHORIZATION, f"Bearer {token}") for token in shown[:1])


def _open_channel(
    server: str, certificate: Path | None, client_files: tuple[Path, Path] | None, timeout: float
) -> grpc.Channel:
    # Directly: a proxy that `http_proxy` names knows nothing of the host that this runs on.
    options: list[tuple[str, int | str]] = [("grpc.enable_http_proxy", 0)]
    if certificate is None:
        return grpc.insecure_channel(server, options=options)
    host, _, port = server.rpartition(":")
    try:
        name = _name_in(certificate, host.strip("[]"), int(port), timeout_seconds=timeout)
        chain, key = (None, None) if client_files is None else (file.read_bytes() for file in client_files)
        credentials = grpc.ssl_channel_credentials(certificate.read_bytes(), key, chain)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{server} does not answer with {certificate}: {error}") from error
    options.append(("grpc.ssl_target_name_override", name))
    return grpc.secure_channel(server, credentials, options=options)


def _name_in(chain: Path, host: str, port: int, *, timeout_seconds: float) -> str:
    """A name that the certificate is for, of a server there that has that very certificate.

    For a probe, which calls by another name, such as localhost. Raises OSError, also where the server has
    another certificate than the file, or one that has expired.
    """
    context = ssl.create_default_context(cafile=chain)
    context.check_hostname = False
    # Whoever made the certificate need not be known: it is in the file.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, port), timeout_seconds) as connection,
        context.wrap_socket(connection) as secured,
    ):
        certificate: Mapping[str, Any] = secured.getpeercert() or {}
    names = [*certificate.get("subjectAltName", ())]
    names += [pair for part in certificate.get("subject", ()) for pair in part]
    by_kind = {kind: str(name) for kind, name in reversed(names)}
    if "DNS" in by_kind:
        # A star stands for any one label.
        return by_kind["DNS"].replace("*", "any")
    if "IP Address" in by_kind:
        return str(ipaddress.ip_address(by_kind["IP Address"]))
    return by_kind.get("commonName", host)


if __name__ == "__main__":
    healthcheck()

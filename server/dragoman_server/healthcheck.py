"""`python -m dragoman_server.healthcheck`: exit code 0 where the server takes calls, 1 where not.

For containers and their like, whose health check is a command. Asks grpc.health.v1, as any other client.
"""

import os

import click
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman_server.config import ServerConfig

_SERVING = health_pb2.HealthCheckResponse.SERVING


def _default_server() -> str:
    """Where `dragoman serve`, told by the same environment, listens."""
    host = os.environ.get("DRAGOMAN_SERVE_HOST", ServerConfig.host)
    port = os.environ.get("DRAGOMAN_SERVE_PORT", ServerConfig.port)
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@click.command(context_settings={"show_default": True})
@click.option(
    "--server",
    default=_default_server,
    show_default="host and port as `dragoman serve` takes them",
    help="HOST:PORT of the server.",
)
@click.option("--service", default="", help='Which service; "" is the server as a whole.')
@click.option("--timeout", default=3.0, help="Seconds to wait.")
def healthcheck(server: str, service: str, timeout: float) -> None:
    """Ask a server whether it is healthy."""
    with grpc.insecure_channel(server) as channel:
        try:
            request = health_pb2.HealthCheckRequest(service=service)
            status = health_pb2_grpc.HealthStub(channel).Check(request, timeout=timeout).status
        except grpc.RpcError as error:
            raise click.ClickException(f"{server} does not answer: {error.code().name}") from error
    if status != _SERVING:
        raise click.ClickException(f"{server} is {health_pb2.HealthCheckResponse.ServingStatus.Name(status)}")


if __name__ == "__main__":
    healthcheck()

"""The layers around the app: origins of other pages, and proxies in front of the server.

Both are nobody, unless the server is told of them.
"""

import ipaddress
import re
from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from dragoman_server.service.call import TRACE_RESPONSE
from dragoman_server.web.exchange import ID_HEADER, TIMEOUT_HEADER

_HOST = re.compile(rb"[\w.:\[\]-]{1,255}")


def with_middleware(app: ASGIApp, *, cors_origins: Sequence[str], trusted_proxies: Sequence[str]) -> ASGIApp:
    """The application as it is asked by these pages and through these proxies."""
    if trusted_proxies:
        # uvicorn's own types of ASGI are written otherwise.
        behind = ProxyHeadersMiddleware(app, trusted_hosts=list(trusted_proxies))  # type: ignore[arg-type]
        app = ForwardedHost(behind, trusted_proxies)  # type: ignore[arg-type]
    if cors_origins:
        app = CORSMiddleware(
            app,
            allow_origins=cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", ID_HEADER, TIMEOUT_HEADER, "traceparent"],
            expose_headers=[ID_HEADER, "Retry-After", TRACE_RESPONSE],
        )
    return app


class ForwardedHost:
    """Takes the host that a caller asked for from X-Forwarded-Host, where a trusted proxy says so.

    uvicorn does the same with the scheme and the caller's address.
    """

    def __init__(self, app: ASGIApp, trusted_proxies: Sequence[str]) -> None:
        self._app = app
        self._networks = [ipaddress.ip_network(network) for network in trusted_proxies]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["client"] and self._trusts(scope["client"][0]):
            headers = scope["headers"]
            # The last proxy's own word stands last.
            forwarded = [value for name, value in headers if name == b"x-forwarded-host"]
            host = forwarded[-1].rpartition(b",")[2].strip() if forwarded else b""
            if _HOST.fullmatch(host):
                remaining = [(name, value) for name, value in headers if name != b"host"]
                scope["headers"] = [*remaining, (b"host", host)]
        await self._app(scope, receive, send)

    def _trusts(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)

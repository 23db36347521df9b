"""The page at /: static files, which load nothing from elsewhere and call /v1 alone."""

import hashlib
from pathlib import Path

from starlette.responses import Response

from dragoman_server.web.endpoint import Handle
from dragoman_server.web.exchange import Exchange

FILES = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js", "/icon.svg": "icon.svg"}
"""By path what is there."""

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOLDER = Path(__file__).parent / "static"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def file(name: str) -> Handle:
    """GET of one of them."""
    path = _FOLDER / name
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}

    async def handle(exchange: Exchange) -> Response:
        if exchange.request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=_KINDS[path.suffix], headers=headers)

    return handle

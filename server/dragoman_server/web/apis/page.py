"""The page at /: static files, which load nothing from elsewhere, call /v1, and ask for its settings."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from starlette.responses import JSONResponse, Response

from dragoman_server.web.apis.files import suffixes
from dragoman_server.web.apis.languages import targets_by_source
from dragoman_server.web.endpoint import Handle
from dragoman_server.web.exchange import Exchange

_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_FOLDER = Path(__file__).parent / "static"
FILES = {
    "/": "index.html",
    **{f"/page/{path.name}": path.name for path in sorted(_FOLDER.iterdir()) if path.suffix in _KINDS},
}
"""The page's files by path."""
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


async def settings(exchange: Exchange) -> Response:
    """GET /page/settings: limits that the page tells before a request meets them, a target, the version."""
    core, limits = exchange.core, exchange.core.limits
    pairs = targets_by_source(core)
    return JSONResponse(
        {
            "fileSuffixes": suffixes(),
            "maxBodyBytes": limits.max_http_body_bytes,
            "maxTextCharacters": limits.max_text_characters,
            "pivotLanguage": core.pivot or "",
            # Where the browser's own languages are none: as LibreTranslate's settings propose it.
            "targetLanguage": next((targets[0] for targets in pairs.values() if targets), ""),
            "version": version("dragoman"),
        },
        headers={"Cache-Control": "no-cache"},
    )

"""Files that wait to be fetched, each for a while, under names that nobody guesses."""

import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from urllib.parse import quote as quote_url

from starlette.responses import JSONResponse, Response

from dragoman_server.web.exchange import Exchange

MAX_KEPT_BYTES = 64 << 20
"""Of all files together; the oldest make room."""
MAX_KEPT_SECONDS = 600.0
"""How long a file can be fetched."""


@dataclass(frozen=True, kw_only=True)
class _Kept:
    name: str
    content: bytes
    until: float


class KeptFiles:
    """The files, by path."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def keep(self, name: str, content: bytes) -> str:
        """Keeps it, and returns the path that it is fetched at."""
        key = uuid.uuid4().hex
        self._kept[key] = _Kept(name=name, content=content, until=time.monotonic() + MAX_KEPT_SECONDS)
        self._forget()
        return f"download_file/{key}"

    async def download(self, exchange: Exchange) -> Response:
        """GET /download_file/KEY: its name is all that is asked for."""
        self._forget()
        kept = self._kept.get(exchange.request.path_params["key"])
        if kept is None:
            seconds = f"{MAX_KEPT_SECONDS:g}"
            return JSONResponse({"error": f"there is no such file; one is kept for {seconds} seconds"}, 404)
        return Response(
            kept.content,
            media_type="application/octet-stream",
            headers={
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote_url(kept.name, safe='')}",
                "X-Content-Type-Options": "nosniff",
            },
        )

    def _forget(self) -> None:
        now = time.monotonic()
        num_bytes = sum(len(each.content) for each in self._kept.values())
        for key, each in list(self._kept.items()):
            if each.until >= now and (num_bytes <= MAX_KEPT_BYTES or len(self._kept) == 1):
                break
            num_bytes -= len(each.content)
            del self._kept[key]

"""Files that wait to be fetched, each for a while, under names that nobody guesses."""

import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from urllib.parse import quote as quote_url

from starlette.responses import JSONResponse, Response

from dragoman_server.config import RequestLimits
from dragoman_server.web.exchange import Exchange


@dataclass(frozen=True, kw_only=True)
class _File:
    name: str
    content: bytes
    until: float


class KeptFiles:
    """The files, by path."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._files: OrderedDict[str, _File] = OrderedDict()

    def keep(self, name: str, content: bytes) -> str:
        """Keeps it, and returns the path that it is fetched at."""
        key = uuid.uuid4().hex
        self._files[key] = _File(
            name=name, content=content, until=time.monotonic() + self._limits.max_kept_file_seconds
        )
        self._forget()
        return f"download_file/{key}"

    async def download(self, exchange: Exchange) -> Response:
        """GET /download_file/KEY: its name is all that is asked for."""
        self._forget()
        file = self._files.get(exchange.request.path_params["key"])
        if file is None:
            seconds = f"{self._limits.max_kept_file_seconds:g}"
            return JSONResponse({"error": f"there is no such file; one is kept for {seconds} seconds"}, 404)
        return Response(
            file.content,
            media_type="application/octet-stream",
            headers={
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote_url(file.name, safe='')}",
                "X-Content-Type-Options": "nosniff",
            },
        )

    def _forget(self) -> None:
        now, maximum = time.monotonic(), self._limits.max_kept_file_bytes
        num_bytes = sum(len(file.content) for file in self._files.values())
        for key, file in list(self._files.items()):
            if file.until >= now and (num_bytes <= maximum or len(self._files) == 1):
                break
            num_bytes -= len(file.content)
            del self._files[key]

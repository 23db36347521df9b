"""The certificate of the door over HTTP, which is renewed while it serves."""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman_server.daemon_threads import run_in_daemon_thread, wait_for

LOOK_SECONDS = 5.0
"""Between two looks at whether the files have changed."""

logger = logging.getLogger(__name__)


class RenewedContext:
    """A chain of certificates, the server's own first, and its key, as its connections use them."""

    def __init__(self, chain: Path, key: Path, client_authorities: bytes | None = None) -> None:
        """`client_authorities`: what callers' certificates must come from, in PEM; None asks for none."""
        self._chain, self._key = chain, key
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if client_authorities is not None:
            self._context.load_verify_locations(cadata=client_authorities.decode())
            self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._versions = self._look()

    def load(self) -> ssl.SSLContext:
        """The context that connections use. Raises OSError."""
        self._versions = self._look()
        # Tried apart: half of a bad pair would stay in the one in use.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._chain, self._key, password="")
        self._context.load_cert_chain(self._chain, self._key, password="")
        return self._context

    async def keep_current(self) -> None:
        """Uses files that have changed from then on; those that can't be used are told and tried once."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if await wait_for(run_in_daemon_thread(self._look), None) != self._versions:
                    await wait_for(run_in_daemon_thread(self.load), None)
            except OSError as error:
                logger.error("certificate of the HTTP port not renewed", extra={"reason": str(error)})

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_version(path) for path in (self._chain, self._key)]


def certified_names(certificate: Mapping[str, Any] | None) -> list[str]:
    """The names in a certificate as ssl describes it, the common name first."""
    shown = certificate or {}
    pairs = [pair for part in shown.get("subject", ()) for pair in part if pair[0] == "commonName"]
    return [str(name) for _, name in (*pairs, *shown.get("subjectAltName", ()))]


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino

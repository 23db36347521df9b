"""The certificate of the HTTP port, which is renewed while it serves."""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman_server.daemon_threads import run_in_daemon_thread, wait_for

LOOK_SECONDS = 5.0
"""Time between two looks at whether the files have changed."""

logger = logging.getLogger(__name__)


class RenewedContext:
    """A chain of certificates, the server's own first, and its key, as its connections use them."""

    def __init__(self, chain: Path, key: Path, client_authorities: bytes | None = None) -> None:
        """`client_authorities`: what callers' certificates must come from, in PEM; None asks for none."""
        self._chain, self._key = chain, key
        self._client_authorities = client_authorities
        self._versions = self._look()
        self._asked: ssl.SSLContext | None = None
        self._current: ssl.SSLContext | None = None

    def load(self) -> ssl.SSLContext:
        """The context that connections use, also when the files are read again. Raises OSError."""
        self._versions = self._look()
        # A context of its own: a handshake in between would have half of the old pair and half of the new.
        self._current = self._read()
        if self._asked is None:
            self._asked = self._current
            self._asked.sni_callback = self._choose
        return self._asked

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self._client_authorities is not None:
            context.load_verify_locations(cadata=self._client_authorities.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._chain, self._key, password="")
        return context

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _asked: ssl.SSLContext) -> None:
        """Called in every handshake, before it has a certificate."""
        assert self._current is not None
        connection.context = self._current

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
    found = certificate or {}
    pairs = [pair for part in found.get("subject", ()) for pair in part if pair[0] == "commonName"]
    return [str(name) for _, name in (*pairs, *found.get("subjectAltName", ()))]


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino

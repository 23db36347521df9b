"""The server's TLS certificate, which is renewed while it serves, for both doors. Must not know gRPC."""

import asyncio
import logging
import ssl
from pathlib import Path

from dragoman_bundle.checked_files import read_regular

from dragoman_server.errors import ServerFileError
from dragoman_server.turns import run_in_daemon_thread, wait_for

MAX_FILE_BYTES = 1 << 20
"""Most bytes of a certificate's file, or of its key's."""
LOOK_SECONDS = 1.0
"""Time between two looks at whether the files have changed."""
MAX_LOOK_SECONDS = 1.0
"""Time after which a look counts as failed; it is waited for, and nothing else waits with it."""

logger = logging.getLogger(__name__)


class Certificate:
    """A chain of certificates, the server's own first, and its key: two PEM files."""

    def __init__(self, chain: Path, key: Path, client_authorities: bytes | None = None) -> None:
        """Raises ServerFileError. `client_authorities`: what callers' certificates must come from, in PEM;
        None asks for none.
        """
        self._chain, self._key = chain, key
        self.client_authorities = client_authorities
        self._versions = self._look()
        self.pair, self.context = self._load()
        """The key and the chain as they were read, and what secures a connection with them."""
        self._is_usable, self._is_late = True, False

    @property
    def is_current(self) -> bool:
        """Whether the files could be used when they were last read."""
        return self._is_usable and not self._is_late

    async def keep_current(self) -> None:
        """Uses files that have changed from then on; those that can't be used are told and tried once."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            look = run_in_daemon_thread(self._renew)
            try:
                await wait_for(look, MAX_LOOK_SECONDS)
            except TimeoutError:
                self._is_late = True
                _log(f"{self._chain} or {self._key} could not be read within {MAX_LOOK_SECONDS:g} seconds")
                await wait_for(look, None)
                self._is_late = False

    def _renew(self) -> None:
        """Reads the files again where they have changed."""
        versions = self._look()
        if versions == self._versions:
            return
        # Noted before anything is read, and of what can't be read too.
        self._versions = versions
        try:
            self.pair, self.context = self._load()
            self._is_usable = True
        except ServerFileError as error:
            self._is_usable = False
            _log(str(error))

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_version(path) for path in (self._chain, self._key)]

    def _load(self) -> tuple[tuple[bytes, bytes], ssl.SSLContext]:
        """Raises ServerFileError."""
        try:
            key, chain = (read_regular(path, max_bytes=MAX_FILE_BYTES) for path in (self._key, self._chain))
        except OSError as error:
            raise ServerFileError(f"{error.filename} can't be read: {error.strerror}") from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.client_authorities is not None:
            context.load_verify_locations(cadata=self.client_authorities.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(self._chain, self._key, password="")
        except OSError as error:
            raise ServerFileError(
                f"{self._chain} and {self._key} are no certificate with its key, both in PEM and the key "
                f"without a password: {error}"
            ) from error
        return (key, chain), context


def read_authorities(path: Path) -> bytes:
    """A PEM file of authorities, checked. Raises ServerFileError."""
    try:
        content = read_regular(path, max_bytes=MAX_FILE_BYTES)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=content.decode("ascii"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        kind = "certificates of authorities, in PEM"
        raise ServerFileError(f"{path} can't be read as {kind}: {reason}") from error
    return content


def _log(reason: str) -> None:
    logger.error("certificate not renewed", extra={"reason": reason})


def _version(path: Path) -> tuple[int, int, int] | None:
    """A stamp that changes when the file does; None where the file can't be looked at."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino

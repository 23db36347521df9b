"""The server's TLS certificate, which is renewed while it serves.

Knows the two files, and how grpc and a probe are given them.
"""

import ipaddress
import logging
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import grpc
from dragoman_bundle.files.regular_file import read_regular

from dragoman_server.daemon_threads import run_in_daemon_thread

MAX_FILE_BYTES = 1 << 20
"""Most bytes of a certificate's file, or of its key's."""
MAX_LOOK_SECONDS = 1.0
"""How long a connection waits until it is known whether the files have changed."""

logger = logging.getLogger(__name__)


class CertificateError(ValueError):
    """A certificate and its key can't be read, or are none."""


class Certificate:
    """A chain of certificates, the server's own first, and its key: two PEM files."""

    def __init__(self, chain: Path, key: Path, client_authorities: bytes | None = None) -> None:
        """`client_authorities`: what callers' certificates must come from, in PEM; None asks for none."""
        self._chain, self._key = chain, key
        self._client_authorities = client_authorities
        self._read: list[tuple[int, int, int] | None] = []
        self._is_usable = True
        # A look at the files that takes too long.
        self._late_look: Future[grpc.ServerCertificateConfiguration | None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the files could be used when they were last read."""
        return self._is_usable and self._late_look is None

    def credentials(self) -> grpc.ServerCredentials:
        """The credentials that grpc listens with. Files that change are read again at the next connection.

        Raises CertificateError for the first pair only; a later pair that can't be used is logged and the one
        in use kept.
        """
        # Declared as if there were always another one, unlike grpc's own description.
        return grpc.dynamic_ssl_server_credentials(
            self._load(),
            self._renewed,  # type: ignore[arg-type]
            require_client_authentication=self._client_authorities is not None,
        )

    def _renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """Returns the credentials for grpc, whose threads ask at every connection, one at a time; None where
        nothing has changed.

        Where the files hang, nobody waits for them but a first one, and that not for long.
        """
        late_look = self._late_look
        look = late_look or run_in_daemon_thread(self._load_if_changed)
        try:
            renewed = look.result(timeout=0 if late_look else MAX_LOOK_SECONDS)
        except TimeoutError:
            self._late_look = look
            if not late_look:
                _log(f"{self._chain} or {self._key} could not be read within {MAX_LOOK_SECONDS:g} seconds")
            return None
        except CertificateError as error:
            self._late_look = None
            self._is_usable = False
            _log(str(error))
            return None
        self._late_look = None
        if renewed is not None:
            self._is_usable = True
        return renewed

    def _load_if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        return None if self._read == self._versions() else self._load()

    def _load(self) -> grpc.ServerCertificateConfiguration:
        # Noted before anything is read, and of what can't be read too: it is tried and told once.
        self._read = self._versions()
        try:
            pair = (
                read_regular(self._key, max_bytes=MAX_FILE_BYTES),
                read_regular(self._chain, max_bytes=MAX_FILE_BYTES),
            )
        except OSError as error:
            raise CertificateError(f"{error.filename} can't be read: {error.strerror}") from error
        try:
            # Checked here: grpc would notice a bad renewed pair only at the next connection, silently.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._chain, self._key, password="")
        except OSError as error:
            raise CertificateError(
                f"{self._chain} and {self._key} are no certificate with its key, both in PEM and the key "
                f"without a password: {error}"
            ) from error
        return grpc.ssl_server_certificate_configuration([pair], self._client_authorities)

    def _versions(self) -> list[tuple[int, int, int] | None]:
        return [_version(path) for path in (self._chain, self._key)]


def read_authorities(path: Path) -> bytes:
    """A PEM file of authorities, checked. Raises CertificateError."""
    try:
        content = read_regular(path, max_bytes=MAX_FILE_BYTES)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=content.decode("ascii"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CertificateError(
            f"{path} can't be read as certificates of authorities, in PEM: {reason}"
        ) from error
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


def name_in(chain: Path, host: str, port: int, *, timeout_seconds: float) -> str:
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

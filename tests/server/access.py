"""What tests need to call a server over TLS, and as somebody."""

from dataclasses import dataclass
from pathlib import Path

import grpc
import trustme

ADA, BOB = "a" * 16 + "1", "b" * 16 + "2"
"""Tokens of two callers."""


@dataclass(frozen=True)
class Certified:
    """A certificate's two files and the authority behind it."""

    authority: trustme.CA
    tls_certificate: Path
    tls_key: Path

    @property
    def files(self) -> dict[str, Path]:
        """As the server's configuration names them."""
        return {"tls_certificate": self.tls_certificate, "tls_key": self.tls_key}

    @property
    def roots(self) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(self.authority.cert_pem.bytes())


def certify(folder: Path, *names: str) -> Certified:
    """Writes a new certificate into the folder, over the one that may be there."""
    authority = trustme.CA()
    own = authority.issue_cert(*names)
    chain, key = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(b"".join(pem.bytes() for pem in own.cert_chain_pems))
    key.write_bytes(own.private_key_pem.bytes())
    return Certified(authority, chain, key)


def shows(token: str, scheme: str = "Bearer") -> tuple[tuple[str, str], ...]:
    return (("authorization", f"{scheme} {token}"),)

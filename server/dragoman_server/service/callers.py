"""Who may call: everybody, or whoever shows a token of a file.

Keeps digests of the tokens alone. No status and no log tells more of one than whose it is.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dragoman_bundle.files.regular_file import read_regular

from dragoman_server.errors import UnknownCallerError

MIN_TOKEN_CHARACTERS = 16
"""A shorter token could be guessed."""
MAX_NAME_CHARACTERS = 64
"""A name stands in every line of the log that is its caller's."""
MAX_FILE_BYTES = 1 << 24
"""Most bytes of a file: a hundred thousand tokens have a third."""
AUTHORIZATION = "authorization"
"""The key of a call's metadata that its token travels under, as `Bearer TOKEN` (RFC 6750, section 2.1)."""


class TokenFileError(ValueError):
    """A file of tokens can't be read, or is none."""


def read_tokens(path: Path) -> dict[str, str]:
    """The tokens of a file and whose they are: a line each, the caller's name and the token.

    A name has letters, digits and ".", "_", "@" or "-"; a token is of visible ASCII characters. Empty lines
    and those that begin with # are skipped. A caller may have several tokens, as while they are changed.
    Raises TokenFileError, which names the line and no token.
    """
    try:
        content = read_regular(path, max_bytes=MAX_FILE_BYTES)
        lines = content.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise TokenFileError(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TokenFileError(f"{path} can't be read: {error}") from error
    names: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 2:
            raise TokenFileError(f"{path}, line {number}: {len(fields)} words; a line is NAME TOKEN")
        name, token = fields
        if not re.fullmatch(rf"[\w.@-]{{1,{MAX_NAME_CHARACTERS}}}", name, re.ASCII):
            raise TokenFileError(
                f"{path}, line {number}: what stands first must be a name, of at most {MAX_NAME_CHARACTERS} "
                "letters, digits, dots, underscores, @ and hyphens"
            )
        if not re.fullmatch(rf"[!-~]{{{MIN_TOKEN_CHARACTERS},}}", token):
            raise TokenFileError(
                f"{path}, line {number}: the token, behind the name, must be of {MIN_TOKEN_CHARACTERS} ASCII "
                "characters or more; `openssl rand -hex 32` makes one"
            )
        if names.get(token, name) != name:
            raise TokenFileError(f"{path}, line {number}: the token is another caller's too")
        names[token] = name
    if not names:
        raise TokenFileError(f"{path} holds no token, so that nobody could call; a line is NAME TOKEN")
    return names


class Callers:
    """Those who may call."""

    def __init__(self, path: Path | None) -> None:
        """`path`: a file as `read_tokens` reads it, read by `read`; None lets everybody in."""
        self._path = path
        self._names: Mapping[bytes, str] = {}

    def read(self) -> Mapping[bytes, str]:
        """What the file holds now, for `use`. Raises TokenFileError."""
        if self._path is None:
            return {}
        return {_digest(token): name for token, name in read_tokens(self._path).items()}

    def use(self, names: Mapping[bytes, str]) -> None:
        """Knows these callers from now on, and no others."""
        self._names = names

    @property
    def are_asked(self) -> bool:
        """Whether a call must show a token."""
        return self._path is not None

    def identify(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
        """Whose token a call's metadata show; None where none is asked for. Raises UnknownCallerError."""
        for key, value in metadata or ():
            if key == AUTHORIZATION and isinstance(value, str):
                scheme, _, token = value.partition(" ")
                return self.name(token.strip() if scheme.lower() == "bearer" else "")
        return self.name(None)

    def name(self, token: str | None) -> str | None:
        """Whose token it is; None where none is asked for. Raises UnknownCallerError, also for no token."""
        if self._path is None:
            return None
        if token is None:
            raise UnknownCallerError("the server answers callers with a token, and the call has none")
        # How long a look for a digest takes says nothing of a token.
        name = self._names.get(_digest(token))
        if name is None:
            raise UnknownCallerError("the token is none of those that the server knows")
        return name


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()

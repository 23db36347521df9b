"""The callers: everybody, whoever shows a token of a file, or whoever has a certificate; and their limits.

Keeps digests of the tokens alone. No status and no log tells more of one than whose it is. A file is read
strictly.
"""

import hashlib
import logging
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from dragoman_bundle.checked_files import read_regular

from dragoman_server.errors import ServerFileError, UnknownCallerError, list_names, quote

MAX_FILE_BYTES = 1 << 24
"""Most bytes of a file: a hundred thousand tokens have a third."""


def read_words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of each line that says something, and its words.

    Empty lines and those that begin with # say nothing. Raises ServerFileError for a file that can't be read.
    """
    try:
        lines = read_regular(path, max_bytes=MAX_FILE_BYTES).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise ServerFileError(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ServerFileError(f"{path} can't be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            yield number, words


MIN_TOKEN_CHARACTERS = 16
"""A shorter token could be guessed."""
MAX_NAME_CHARACTERS = 64
"""A name stands in every line of the log that is its caller's."""
MAX_CERTIFIED_NAME_CHARACTERS = 256
"""The same of a certificate's name, as SPIFFE's are longer."""
HASHED = "sha256:"
"""What a token begins with in a file that has its SHA-256 in its place, in hexadecimal digits."""
AUTHORIZATION = "authorization"
"""The key of a call's metadata that its token travels under, as `Bearer TOKEN` (RFC 6750, section 2.1)."""

logger = logging.getLogger(__name__)

_CERTIFICATE_WAY_OUT = (
    "its common name, or its first alternative name, must be of at most "
    f"{MAX_CERTIFIED_NAME_CHARACTERS} letters, digits, and . _ @ : / -"
)


NAME_RULE = (
    f"must be a name, of at most {MAX_NAME_CHARACTERS} letters, digits, dots, underscores, @ and hyphens"
)


def read_tokens(path: Path) -> dict[str, str]:
    """The tokens of a file and whose they are: a line each, the caller's name and the token or its hash.

    A name has letters, digits and ".", "_", "@" or "-"; a token is of visible ASCII characters. Empty lines
    and those that begin with # are skipped. A caller may have several tokens, as while they are changed.
    Raises ServerFileError, which names the line and no token.
    """
    names: dict[str, str] = {}
    owners: dict[bytes, str] = {}
    for number, words in read_words(path):
        if len(words) != 2:
            raise ServerFileError(f"{path}, line {number}: {len(words)} words; a line is NAME TOKEN")
        name, token = words
        if not is_name(name):
            raise ServerFileError(f"{path}, line {number}: what stands first {NAME_RULE}")
        if not re.fullmatch(rf"[!-~]{{{MIN_TOKEN_CHARACTERS},}}", token):
            raise ServerFileError(
                f"{path}, line {number}: the token, behind the name, must be of {MIN_TOKEN_CHARACTERS} ASCII "
                f"characters or more, or {HASHED} and its hash; `dragoman keys add NAME` makes one"
            )
        if owners.setdefault(token_digest(token), name) != name:
            raise ServerFileError(f"{path}, line {number}: the token is another caller's too")
        names[token] = name
    if not names:
        raise ServerFileError(f"{path} holds no token, so that nobody could call; a line is NAME TOKEN")
    return names


def is_name(text: str) -> bool:
    """Whether a caller can be called so: see NAME_RULE."""
    return bool(re.fullmatch(rf"[\w.@-]{{1,{MAX_NAME_CHARACTERS}}}", text, re.ASCII))


class Callers:
    """Those who may call."""

    def __init__(self, path: Path | None, *, have_certificates: bool = False) -> None:
        """`path`: a file as `read_tokens` reads it, read by `read`; None lets everybody in.

        Then a caller's certificate names it where callers `have_certificates`.
        """
        self._path = path
        self._have_certificates = have_certificates
        self._names: Mapping[bytes, str] = {}

    def read(self) -> Mapping[bytes, str]:
        """The file's content now, for `use`. Raises ServerFileError."""
        if self._path is None:
            return {}
        if self._path.is_file() and self._path.stat().st_mode & stat.S_IROTH:
            logger.warning(
                "the file of tokens can be read by every user of the machine: chmod o-r takes that from them",
                extra={"path": str(self._path)},
            )
        return {token_digest(token): name for token, name in read_tokens(self._path).items()}

    def use(self, names: Mapping[bytes, str]) -> None:
        """Knows these callers from now on, and no others."""
        self._names = names

    @property
    def names(self) -> frozenset[str] | None:
        """The names of all who may call; None where nobody knows them before they do."""
        return frozenset(self._names.values()) if self.are_asked else None

    @property
    def are_asked(self) -> bool:
        """Whether a call must show a token."""
        return self._path is not None

    def identify(
        self, metadata: Iterable[tuple[str, str | bytes]] | None, certified: Sequence[str] = ()
    ) -> str | None:
        """Whose call it is, by the token in its metadata or by its certificate; see `name`."""
        for key, value in metadata or ():
            if key == AUTHORIZATION and isinstance(value, str):
                scheme, _, token = value.partition(" ")
                return self.name(token.strip() if scheme.lower() == "bearer" else "", certified)
        return self.name(None, certified)

    def name(self, token: str | None, certified: Sequence[str] = ()) -> str | None:
        """Whose token it is, or whose certificate, by its names; None where nobody is asked.

        Raises UnknownCallerError, also for no token where there are tokens: then a certificate names nobody.
        """
        if self._path is None:
            return _certified_name(certified) if self._have_certificates else None
        if token is None:
            raise UnknownCallerError("the server answers callers with a token, and the call has none")
        # How long a look for a digest takes says nothing of a token.
        name = self._names.get(_digest(token))
        if name is None:
            raise UnknownCallerError("the token is none of those that the server knows")
        return name


def _certified_name(names: Sequence[str]) -> str:
    """Raises UnknownCallerError."""
    if not names:
        raise UnknownCallerError("the caller's certificate has no name", _CERTIFICATE_WAY_OUT)
    if not re.fullmatch(rf"[\w.@:/-]{{1,{MAX_CERTIFIED_NAME_CHARACTERS}}}", names[0], re.ASCII):
        reason = f"the caller's certificate names {quote(names[0])}, which can't be a caller's name"
        raise UnknownCallerError(reason, _CERTIFICATE_WAY_OUT)
    return names[0]


def token_digest(entry: str) -> bytes:
    """The SHA-256 of a token, as a file has it."""
    if re.fullmatch(HASHED + "[0-9a-f]{64}", entry):
        return bytes.fromhex(entry.removeprefix(HASHED))
    return _digest(entry)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


OTHERS = "*"
"""The name of all callers that have no line of their own."""
UNLIMITED = "unlimited"
"""The only word of a caller who is bound by no limit of the file."""
MAX_VALUE = 10**15
"""Greatest value of a limit."""


@dataclass(frozen=True, kw_only=True)
class CallerLimits:
    """The limits of one caller; None is no limit. The file has hyphens in the names."""

    calls: int | None = None
    """Calls in progress at once, over gRPC and HTTP together; a stream is one."""
    calls_per_minute: int | None = None
    """Calls begun in any sixty seconds."""
    characters_per_minute: int | None = None
    """Characters of texts in any sixty seconds."""
    characters_per_day: int | None = None
    """Characters of texts in a day of UTC."""


NAMES = {limit_field.name.replace("_", "-"): limit_field.name for limit_field in fields(CallerLimits)}
"""The fields by their names in the file."""


def read_limits(path: Path, known_names: Collection[str] | None) -> dict[str, CallerLimits]:
    """The limits of a file by caller: a line each, the name and LIMIT=VALUE one or more times.

    Empty lines and those that begin with # are skipped. `known_names` are those of all callers, None where
    nobody knows them before they call. Raises ServerFileError, which names the line.
    """
    limits: dict[str, CallerLimits] = {}
    for number, (name, *words) in read_words(path):
        try:
            if name in limits:
                raise ValueError(f"{name} has a line already; say all of its limits in one")
            if known_names is not None and name != OTHERS and name not in known_names:
                raise ValueError(f"{quote(name)} is no caller of the file of tokens, and not {OTHERS}")
            limits[name] = CallerLimits() if words == [UNLIMITED] else _read_limits(words)
        except ValueError as error:
            raise ServerFileError(f"{path}, line {number}: {error}") from None
    return limits


def limits_of(name: str | None, limits: Mapping[str, CallerLimits]) -> CallerLimits:
    """A caller's own, or those of all others."""
    return limits.get(name or OTHERS) or limits.get(OTHERS) or CallerLimits()


def _read_limits(words: list[str]) -> CallerLimits:
    values: dict[str, int] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in NAMES:
            raise ValueError(f"{quote(word)} is no limit; a line is NAME LIMIT=VALUE ..., and there are "
                             f"{list_names(list(NAMES))}, or {UNLIMITED} alone")  # fmt: skip
        if NAMES[name] in values:
            raise ValueError(f"{name} stands there twice")
        if not re.fullmatch("[0-9]{1,16}", value) or not 1 <= int(value) <= MAX_VALUE:
            raise ValueError(f"{name} is {quote(value)}; it must be a whole number from 1 to {MAX_VALUE}")
        values[NAMES[name]] = int(value)
    if not values:
        raise ValueError(f"no limit stands behind the name; {UNLIMITED} is for a caller who has none")
    return CallerLimits(**values)

"""The `dragoman keys` command: adds, lists and revokes callers' tokens, in the file of `serve --tokens`.

The file has a token's SHA-256 alone: whoever reads it can't call. Lines that a person wrote stay as they are.
"""

import contextlib
import hashlib
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dragoman_server.errors import ServerFileError
from dragoman_server.service.callers import HASHED, NAME_RULE, is_name, read_limits, read_tokens, token_digest

_AFTER = "A running server takes it in on SIGHUP."


def _file_option(flag: str, name: str, default: str, meaning: str) -> Callable[[Any], Any]:
    """An option that names a file, which the server's environment variable names too."""
    return click.option(
        flag,
        name,
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="DRAGOMAN_SERVE_" + flag.removeprefix("--").replace("-", "_").upper(),
        default=default,
        show_default=True,
        show_envvar=True,
        help=meaning,
    )


_tokens_option = _file_option(
    "--tokens", "path", "tokens", "File of tokens, which `dragoman serve --tokens` reads."
)


@click.group()
def keys() -> None:
    """Add, list and revoke callers' tokens.

    \b
    Whoever has a token may call; the file has no token but its hash:
      dragoman keys add web
      dragoman keys add jobs --limits calls=4 --limits characters-per-day=1000000
      dragoman serve --tokens tokens --caller-limits limits
      dragoman keys revoke jobs
    """


@keys.command()
@click.argument("name")
@_tokens_option
@click.option(
    "--limits",
    multiple=True,
    metavar="LIMIT=VALUE",
    help="Limit of the caller, such as calls-per-minute=60; can be given several times.",
)
@_file_option(
    "--caller-limits",
    "limits_path",
    "limits",
    "File of limits, which `dragoman serve --caller-limits` reads; --limits is written there.",
)
def add(name: str, path: Path, limits: tuple[str, ...], limits_path: Path) -> None:
    """Make a token for the caller NAME, and print it.

    It is printed this once. A caller may have several, as while one is replaced by another.
    """
    if not is_name(name):
        raise click.ClickException(f"{name!r} {NAME_RULE}")
    token = secrets.token_hex(32)
    entry = f"{name} {HASHED}{hashlib.sha256(token.encode()).hexdigest()}\n"
    _rewrite(path, lambda text: text + entry, read_tokens)
    if limits:
        line = " ".join([name, *limits]) + "\n"
        try:
            _rewrite(limits_path, lambda text: text + line, lambda file: read_limits(file, None))
        except click.ClickException:
            _rewrite(path, lambda text: text.replace(entry, ""), lambda file: None)
            raise
    click.echo(token)
    click.echo(f"Kept as a hash in {path}. {_AFTER}", err=True)


@keys.command("list")
@_tokens_option
def list_keys(path: Path) -> None:
    """Print each caller's name, how many tokens it has, and the beginning of the hash of each."""
    try:
        owners = read_tokens(path)
    except ServerFileError as error:
        raise click.ClickException(str(error)) from error
    counts = Counter(owners.values())
    for name in sorted(counts):
        hashes = sorted(token_digest(token).hex()[:8] for token, owner in owners.items() if owner == name)
        click.echo(f"{name}  {counts[name]}  {' '.join(hashes)}")


@keys.command()
@click.argument("name")
@click.argument("beginning", required=False, default="")
@_tokens_option
def revoke(name: str, beginning: str, path: Path) -> None:
    """Take the tokens of the caller NAME out of the file; with BEGINNING those whose hash begins so.

    The last token of a file stays: a server would not take a file without any.
    """
    num_revoked = 0

    def without(text: str) -> str:
        nonlocal num_revoked
        kept = []
        for line in text.splitlines(keepends=True):
            words = line.split()
            is_revoked = words[:1] == [name] and token_digest(words[1]).hex().startswith(beginning.lower())
            num_revoked += is_revoked
            kept += [] if is_revoked else [line]
        if not num_revoked:
            lack = f"{path} has no such token of {name!r}"
            raise click.ClickException(f"{lack}; `dragoman keys list` shows all")
        return "".join(kept)

    _rewrite(path, without, read_tokens, exists=True)
    click.echo(f"{num_revoked} revoked in {path}. {_AFTER}", err=True)


def _rewrite(
    path: Path, edit: Callable[[str], str], read: Callable[[Path], Any], *, exists: bool = False
) -> None:
    """Puts an edited file in the place of another at once, where `read` takes it.

    A new one can be read by its owner alone; another stays with its owner and group. Raises ClickException.
    """
    path = path.resolve()
    new = path
    try:
        text = path.read_text(encoding="utf-8") if exists or path.exists() else ""
        if text:
            read(path)
            text += "" if text.endswith("\n") else "\n"
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            new = Path(folder) / path.name
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                if text:
                    status = path.stat()
                    os.fchmod(descriptor, status.st_mode & 0o660)
                    # Who may not is the owner already, or else the file is one's own from now on.
                    with contextlib.suppress(PermissionError):
                        os.fchown(descriptor, status.st_uid, status.st_gid)
                file.write(edit(text))
                file.flush()
                os.fsync(descriptor)
            read(new)
            new.replace(path)
    except ServerFileError as error:
        raise click.ClickException(str(error).replace(str(new), str(path))) from error
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} can't be changed: {error}") from error

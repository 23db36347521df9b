"""Downloads files over HTTP: what is cut off goes on where it was, and what does not check out is dropped.

Owns the transfer, and how it is told to people. Must not know which registry a file is from.
"""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from dragoman_export.get.registry import RemoteFile

MAX_INDEX_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 4_000_000_000
"""The limit of a file whose registry does not say how large it is."""
ATTEMPTS = 5
"""The number of tries without a byte of progress before giving up."""
TIMEOUT_SECONDS = 60.0
_CHUNK = 1 << 18
_HEADERS = {"User-Agent": "dragoman", "Accept-Encoding": "identity"}

Report = Callable[[str, int, int | None], None]
"""Told a file's name, how many of its bytes are there, and of how many; None: nobody knows."""


class DownloadError(ValueError):
    """A file can't be had, or is not what it should be."""


def read_url(url: str) -> bytes:
    """A small file's content. Raises DownloadError."""
    try:
        with _open(url, {}) as response:
            content: bytes = response.read(MAX_INDEX_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(_reason(url, error)) from error
    if len(content) > MAX_INDEX_BYTES:
        raise DownloadError(f"{url} has more than {MAX_INDEX_BYTES >> 20} MB, and is no index of models")
    return content


def fetch(
    file: RemoteFile, folder: Path, progress: Report, *, wait: Callable[[float], None] = time.sleep
) -> Path:
    """The file in the folder, downloaded unless it is there. Raises DownloadError.

    What came before a download was cut off is kept in the folder, and the next call goes on behind it.
    """
    path = folder / file.name
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{file.name}.part"
    failures = 0
    while True:
        before = _size(part)
        try:
            _receive(file, part, progress)
            break
        except (OSError, http.client.HTTPException) as error:
            failures = failures + 1 if _size(part) <= before else 0
            is_final = isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code != 429
            if is_final or failures >= ATTEMPTS:
                size = _size(part)
                kept = f"; {size} bytes are kept, and the same command goes on there" if size else ""
                raise DownloadError(_reason(file.url, error) + kept) from error
            wait(float(2**failures))
    _validator_file(part).unlink(missing_ok=True)
    _check(file, part)
    if file.unpacked_sha256 or file.unpacked_size is not None:
        unpacked = folder / f"{file.name}.unpacked"
        _unpack(file, part, unpacked)
        unpacked.replace(path)
        part.unlink()
    else:
        part.replace(path)
    return path


def _receive(file: RemoteFile, part: Path, progress: Report) -> None:
    """Appends what is missing of the file. Raises OSError or HTTPException where it is cut off."""
    have = _size(part)
    if have and have == file.size:
        return
    headers = {}
    kept = _validator_file(part)
    # What tells the file that was begun from another one at its address.
    validator = kept.read_text() if kept.exists() else ""
    # Without a way to tell whether the file is another by now it begins anew.
    if have and (validator or file.sha256 or file.git_sha1):
        headers["Range"] = f"bytes={have}-"
        if validator:
            headers["If-Range"] = validator
    try:
        response = _open(file.url, headers)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            # It is shorter than what is here: another one.
            part.unlink()
        raise
    with response:
        is_rest = response.status == http.HTTPStatus.PARTIAL_CONTENT
        if is_rest and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink()
            raise ConnectionError(f"{file.url} answered with another part than the one asked for")
        have = have if is_rest else 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdecimal() else file.size
        etag = response.headers.get("ETag", "")
        validator = (etag if etag.startswith('"') else "") or response.headers.get("Last-Modified", "")
        kept.write_text(validator)
        with part.open("ab" if is_rest else "wb") as stream:
            progress(file.name, have, total)
            while chunk := response.read(_CHUNK):
                stream.write(chunk)
                have += len(chunk)
                if file.size is not None and have > file.size:
                    part.unlink()
                    raise DownloadError(
                        f"{file.url} has more bytes than the {file.size} that its registry says"
                    )
                progress(file.name, have, total)
    if total is not None and have < total:
        raise ConnectionError(f"the connection ended after {have} of {total} bytes")


def _check(file: RemoteFile, path: Path) -> None:
    """Removes a file that is another than its registry says, and raises DownloadError."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        path.unlink()
        raise DownloadError(
            f"{file.url} has {size} bytes, and its registry says {file.size}; try again later"
        )
    for expected, digest in (
        (file.sha256, hashlib.sha256()),
        (file.git_sha1, hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)),
    ):
        if not expected:
            continue
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != expected.lower():
            path.unlink()
            raise DownloadError(
                f"{file.url} has the checksum {digest.hexdigest()}, and its registry says {expected}: it is "
                "damaged, or another file; nothing of it is kept"
            )


def _unpack(file: RemoteFile, packed: Path, path: Path) -> None:
    """Unpacks Zstandard. Raises DownloadError, and neither file is kept then."""
    import zstandard

    digest, size = hashlib.sha256(), 0
    max_size = MAX_UNPACKED_BYTES if file.unpacked_size is None else file.unpacked_size
    wrong = ""
    try:
        with packed.open("rb") as source, path.open("wb") as target:
            for chunk in zstandard.ZstdDecompressor().read_to_iter(source):
                size += len(chunk)
                if size > max_size:
                    break
                digest.update(chunk)
                target.write(chunk)
    except zstandard.ZstdError as error:
        wrong = f"can't be unpacked: {error}"
    if not wrong and (size > max_size or file.unpacked_size not in (None, size)):
        wrong = f"does not unpack to the {max_size} bytes that its registry says"
    if not wrong and file.unpacked_sha256 not in ("", digest.hexdigest()):
        wrong = f"unpacks to the checksum {digest.hexdigest()}, and its registry says {file.unpacked_sha256}"
    if wrong:
        path.unlink()
        packed.unlink()
        raise DownloadError(f"{file.url} {wrong}; nothing of it is kept")


def _open(url: str, headers: dict[str, str]) -> "http.client.HTTPResponse":
    request = urllib.request.Request(url, headers=_HEADERS | headers)
    return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".validator")


def _reason(url: str, error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return f"{url} can't be downloaded: {reason or type(error).__name__}"


_SECONDS_PER_LINE = 5.0


@contextmanager
def progress_shown() -> Iterator[Report]:
    """Shows how far downloads are: bars on a terminal, elsewhere a line now and then."""
    console = Console(stderr=True, highlight=False)
    tasks: dict[str, TaskID] = {}
    said_at = 0.0

    def show(name: str, done: int, total: int | None) -> None:
        if name not in tasks:
            tasks[name] = bars.add_task(name, total=total)
        bars.update(tasks[name], completed=done, total=total)

    def say(name: str, done: int, total: int | None) -> None:
        nonlocal said_at
        now = time.monotonic()
        if done == total or now - said_at >= _SECONDS_PER_LINE:
            said_at = now
            of_total = f" of {total / 1e6:.1f}" if total is not None else ""
            click.echo(f"{name}: {done / 1e6:.1f}{of_total} MB", err=True)

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bars:
        yield show if console.is_terminal else say

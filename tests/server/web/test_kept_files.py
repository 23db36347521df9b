"""Translated files wait to be fetched, for a while and within so many bytes."""

import time
from types import SimpleNamespace
from typing import cast

import pytest

from dragoman_server.config import RequestLimits
from dragoman_server.web.apis.file_calls import KeptFiles
from dragoman_server.web.exchange import Exchange


async def status(files: KeptFiles, path: str) -> int:
    request = SimpleNamespace(path_params={"key": path.removeprefix("download_file/")})
    return (await files.download(cast(Exchange, SimpleNamespace(request=request)))).status_code


async def test_files_make_room_for_younger_ones() -> None:
    files = KeptFiles(RequestLimits(max_kept_file_bytes=10))
    first, second, third = (files.keep(f"{number}.txt", bytes(size)) for number, size in enumerate((6, 4, 1)))
    assert [await status(files, path) for path in (first, second, third)] == [404, 200, 200]
    large = files.keep("large.txt", bytes(100))
    assert [await status(files, path) for path in (second, third, large)] == [404, 404, 200]


async def test_a_file_can_be_fetched_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    files = KeptFiles(RequestLimits(max_kept_file_seconds=60))
    path, now = files.keep("a.txt", b"a"), time.monotonic()
    for later, expected in ((59, 200), (61, 404)):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        assert await status(files, path) == expected

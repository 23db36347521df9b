"""Translating files of all formats by a real server that answers in capitals."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.clients import conftest as clients
from tests.clients.jobs import running

from dragoman import Client
from dragoman.jobs import FormatOptions, JobError

server, client = clients.server, clients.client


@pytest.fixture
def run(server):
    """Translates a file into another."""

    def call(source: Path, output: Path, **options):
        job_names = ("settings", "format_name", "patience_seconds", "checkpoint_seconds", "window")
        job = {name: options.pop(name) for name in job_names if name in options}
        with Client(server.address) as client:
            return running.run(client, source, output, options=FormatOptions(**options), **job)

    return call


@pytest.fixture
def translate(run, tmp_path) -> Callable[..., str | bytes]:
    """What becomes of a content under a name: text of text, bytes of bytes."""

    def call(name: str, content: str | bytes, **options):
        source, output = tmp_path / f"in.{name}", tmp_path / f"out.{name}"
        source.write_bytes(content.encode() if isinstance(content, str) else content)
        run(source, output, **options)
        translated = output.read_bytes()
        output.unlink()
        return translated.decode() if isinstance(content, str) else translated

    return call


@pytest.fixture
def refuse(run, tmp_path) -> Callable[..., str]:
    """Asserts that a file is refused with these words, and nothing written; returns all that is said."""

    def call(name: str, content: str | bytes, told: str, output: str = "", **options):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(JobError, match=told) as raised:
            run(tmp_path / name, tmp_path / (output or f"out{Path(name).suffix}"), **options)
        assert [path.name for path in tmp_path.iterdir()] == [name]
        return str(raised.value)

    return call

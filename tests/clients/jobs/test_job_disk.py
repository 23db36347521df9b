"""A file job's files: a full disk, and other processes that write the same."""

import errno
import fcntl
import gzip
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest
from google.rpc import code_pb2, status_pb2
from tests.clients.jobs.running import PARTIAL, Listener, left_behind, run

from dragoman import ModelNotFoundError
from dragoman.jobs import JobError


def test_a_full_disk_is_told_with_the_file_and_what_is_safe(client, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"zeile {number}\n" for number in range(300)))

    class Narrow(Listener):
        saved = 0

        def on_save(self, *, lines):
            self.saved = lines

        def on_line(self, **told):
            super().on_line(**told)
            if self.lines == 100:
                resource.setrlimit(resource.RLIMIT_FSIZE, (2 * 100 * 8, hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    listener = Narrow()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises(OSError, match=r"File too large.*out\.partial"):
            run(client, source, output, listener=listener, checkpoint_seconds=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    again = Listener()
    run(client, source, output, listener=again)
    assert 100 <= again.resumed == listener.saved < 300
    assert output.read_text() == source.read_text().upper()


@pytest.mark.parametrize(
    ("fails", "file"),
    [
        ("journal.json.dump", "out.gz.progress.json.new"),
        ("files.shutil.copyfileobj", "out.gz.compressed"),
    ],
)
def test_a_full_disk_is_told_with_the_file_of_progress_or_of_compression_too(
    client, tmp_path, monkeypatch, fails, file
):
    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source, output = tmp_path / "in", tmp_path / "out.gz"
    source.write_text("a\n")
    monkeypatch.setattr(f"dragoman.jobs.{fails}", fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        run(client, source, output)
    assert caught.value.filename == str(tmp_path / file)


@pytest.mark.parametrize("name", ["out", "out.gz"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_finished_output_that_is_removed_before_it_has_its_name_is_missed(
    client, tmp_path, monkeypatch, name, overwrite
):
    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source, output = tmp_path / "in", tmp_path / name
    source.write_text("a\n")
    if overwrite:
        output.write_bytes(gzip.compress(b"another\n") if name.endswith(".gz") else b"another\n")
    with monkeypatch.context() as patched:
        patched.setattr("dragoman.jobs.files.Output.publish", fail)
        with pytest.raises(OSError, match="No space left on device"):
            run(client, source, output, overwrite=overwrite)
    (tmp_path / f"{name}.partial").unlink()
    with pytest.raises(JobError, match=r"\.partial has lost its end; begin anew with --restart"):
        run(client, source, output, overwrite=overwrite)
    run(client, source, output, overwrite=overwrite, restart=True)
    content = output.read_bytes()
    assert (gzip.decompress(content) if name.endswith(".gz") else content) == b"A\n"


def test_two_processes_do_not_write_the_same_output(client, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)

    class Intruder(Listener):
        def on_start(self, **told):
            with pytest.raises(JobError, match="another process"):
                run(client, source, output)

    run(client, source, output, listener=Intruder())
    assert output.read_text() == "A\n" * 10


def test_nobody_else_writes_an_output_that_is_being_compressed(client, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out.gz"
    source.write_text("a\n" * 10)
    refusals = []
    copy = shutil.copyfileobj

    def intrude(*files):
        with pytest.raises(JobError, match="another process is writing") as refused:
            run(client, source, output, restart=True, overwrite=True)
        refusals.append(refused)
        copy(*files)

    monkeypatch.setattr(shutil, "copyfileobj", intrude)
    run(client, source, output)
    assert len(refusals) == 1
    assert gzip.decompress(output.read_bytes()) == b"A\n" * 10
    assert left_behind(output) == {"out.gz"}


def test_nobody_else_writes_an_output_that_is_being_removed(client, server, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)
    refusals = []
    unlink = Path.unlink

    def intrude(path, **options):
        if path.exists():
            with pytest.raises(JobError, match="another process is writing") as refused:
                run(client, source, output)
            refusals.append(refused)
        unlink(path, **options)

    server.servicer.failures.append(status_pb2.Status(code=code_pb2.NOT_FOUND))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", intrude)
        with pytest.raises(ModelNotFoundError):
            run(client, source, output)
    assert len(refusals) == len(PARTIAL)
    assert left_behind(output) == set()


def test_who_waited_for_a_file_that_became_the_output_leaves_it_alone(client, tmp_path, monkeypatch):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a\n" * 10)
    flock = fcntl.flock

    def finish_before(file, how):
        (tmp_path / "out.partial").replace(output)
        output.write_text("whole\n")
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", finish_before)
    with pytest.raises(JobError, match="another process has just finished"):
        run(client, source, output, restart=True, overwrite=True)
    assert output.read_text() == "whole\n"
    assert left_behind(output) == {"out"}

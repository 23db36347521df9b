"""A file job's files: it ends at any moment, on a full disk, beside others, and loses nothing."""

import errno
import fcntl
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from google.rpc import code_pb2, status_pb2
from tests.clients.jobs.running import PARTIAL, Listener, left_behind, numbered, resume, run, write

from dragoman import ModelNotFoundError
from dragoman.jobs import JobError
from dragoman.jobs import journal as journal_module


def test_a_full_disk_is_told_with_the_file_and_what_is_safe(client, tmp_path, monkeypatch):
    source, output = write(tmp_path, numbered(300))

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
    assert 100 <= resume(client, source, output) == listener.saved < 300
    assert output.read_text() == source.read_text().upper()


def fail(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("fails", "file"),
    [("journal.json.dump", "out.gz.progress.json.new"), ("files.shutil.copyfileobj", "out.gz.compressed")],
)
def test_a_full_disk_is_told_with_each_file(client, tmp_path, monkeypatch, fails, file):
    source, _ = write(tmp_path, "a\n")
    monkeypatch.setattr(f"dragoman.jobs.{fails}", fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        run(client, source, tmp_path / "out.gz")
    assert caught.value.filename == str(tmp_path / file)


@pytest.mark.parametrize("name", ["out", "out.gz"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_an_output_removed_before_it_has_its_name_is_missed(client, tmp_path, monkeypatch, name, overwrite):
    source, output = write(tmp_path, "a\n")[0], tmp_path / name
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
    source, output = write(tmp_path, "a\n" * 10)

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
    source, output = write(tmp_path, "a\n" * 10)
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
    source, output = write(tmp_path, "a\n" * 10)
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


class Crash(BaseException):
    """Stands for the end of the process at some moment."""


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_end_at_any_step_on_disk_loses_and_doubles_nothing(client, server, tmp_path, monkeypatch, suffix):
    """Every call that changes the disk for good crashes once, before and after it is done."""
    source = tmp_path / "in"
    source.write_text("eins\n!INTERNAL zwei\ndrei\nvier\n")
    whole = tmp_path / f"whole{suffix}"
    run(client, source, whole)
    expected = whole.read_bytes(), (tmp_path / f"whole{suffix}.errors.jsonl").read_bytes()

    real = {"fsync": os.fsync, "replace": Path.replace, "unlink": Path.unlink}
    steps = {"left": None, "after": False}

    def crashing(name):
        def call(*arguments, **options):
            if steps["left"] == 0 and not steps["after"]:
                raise Crash
            answer = real[name](*arguments, **options)
            if steps["left"] == 0:
                raise Crash
            if steps["left"] is not None:
                steps["left"] -= 1
            return answer

        return call

    monkeypatch.setattr(os, "fsync", crashing("fsync"))
    monkeypatch.setattr(Path, "replace", crashing("replace"))
    monkeypatch.setattr(Path, "unlink", crashing("unlink"))
    crashes = 0
    for after in (False, True):
        for moment in range(10_000):
            output = tmp_path / f"{after}-{moment}{suffix}"
            steps.update(left=moment, after=after)
            try:
                run(client, source, output, checkpoint_seconds=0.0)
                finished = True
            except Crash:
                finished = False
            steps.update(left=None)
            if finished:
                break
            crashes += 1
            # The very last steps come when the output has its name and the job is forgotten.
            if journal_module.Path(f"{output}.progress.json").exists() or not output.exists():
                run(client, source, output)
            assert (output.read_bytes(), Path(f"{output}.errors.jsonl").read_bytes()) == expected
    assert crashes > 50


@pytest.mark.parametrize("name", [pytest.param("in.txt", marks=pytest.mark.long), "in.jsonl.gz"])
def test_killed_process_loses_and_doubles_nothing(server, tmp_path, name):
    """Real processes, really killed, at random moments; the last one comes to the end."""
    lines = [f"{'!INTERNAL ' if number % 50 == 7 else ''}zeile {number}" for number in range(600)]
    if "jsonl" in name:
        lines = [json.dumps({"text": line, "n": number}) for number, line in enumerate(lines)]
    content = "".join(f"{line}\n" for line in lines).encode()
    source = tmp_path / name
    source.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    whole, output = tmp_path / f"whole-{name}", tmp_path / f"out-{name}"
    assert translate_file(server, source, whole).wait() == 3

    server.servicer.delay_seconds = 0.004
    moments = random.Random(1)
    kills = 0
    while kills < 10 and not output.exists():
        process = translate_file(server, source, output)
        enough = server.servicer.items + moments.randrange(150)
        while server.servicer.items < enough and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.wait()
        kills += 1
    assert kills >= 4
    server.servicer.delay_seconds = 0
    if not output.exists() or Path(f"{output}.progress.json").exists():
        assert translate_file(server, source, output).wait() == 3
    assert output.read_bytes() == whole.read_bytes()
    errors = [tmp_path / f"{path.name}.errors.jsonl" for path in (output, whole)]
    assert errors[0].read_bytes() == errors[1].read_bytes()
    assert left_behind(output) == {output.name, errors[0].name}


@pytest.mark.parametrize(("stop", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_job_that_is_stopped_tells_how_to_go_on(server, tmp_path, stop, status):
    source, output = write(tmp_path, "a\n" * 2000)
    server.servicer.delay_seconds = 0.002
    process = translate_file(server, source, output, stderr=subprocess.PIPE)
    while server.servicer.items < 100:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(stop)
    _, told = process.communicate()
    assert process.returncode == status, told.decode()
    assert "The same command goes on from there." in told.decode()
    assert "Traceback" not in told.decode()
    server.servicer.delay_seconds = 0
    assert translate_file(server, source, output).wait() == 0
    assert output.read_text() == "A\n" * 2000
    assert server.servicer.items < 2000 + 500


def test_ctrl_c_before_the_first_line_leaves_nothing_to_go_on_with(server, tmp_path):
    source, output = write(tmp_path, "a\n")
    server.servicer.delay_seconds = 3
    process = translate_file(server, source, output, stderr=subprocess.PIPE)
    while not server.servicer.configs:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130
    assert told == b"Interrupted before the first line was done.\n"
    assert left_behind(output) == set()


def translate_file(server, source, output, **options):
    command = [sys.executable, "-m", "dragoman", "translate-file", "--server", server.address]
    command += ["--from", "de", "--to", "en", str(source), str(output)]
    return subprocess.Popen(command, **{"stderr": subprocess.DEVNULL} | options)

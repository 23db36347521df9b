"""A file job that goes on: with its own work, and with nothing else."""

import os
import resource
import shutil
import signal
from dataclasses import replace

import pytest
from google.rpc import code_pb2, status_pb2
from tests.clients.jobs.running import (
    DE_EN,
    PARTIAL,
    Listener,
    cut_short,
    left_behind,
    numbered,
    resume,
    run,
    write,
)

from dragoman import ModelNotFoundError, Settings, UnavailableError
from dragoman.jobs import JobError


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("input", "the input has changed"),
        ("target", "target was en and is fr"),
        ("beam", "beam_size was not set and is 1"),
    ],
)
def test_another_job_does_not_go_on_with_this_ones_work(client, server, tmp_path, change, told):
    source, output = write(tmp_path, "a\n" * 100)
    cut_short(client, server, source, output)
    changed = {"target": Settings(source="de", target="fr"), "beam": replace(DE_EN, beam_size=1)}
    settings = changed.get(change, DE_EN)
    if change == "input":
        source.write_text("b\n" * 100)
    with pytest.raises(JobError, match=f"belongs to another job: {told}; .*--restart"):
        run(client, source, output, settings)
    assert resume(client, source, output, settings, restart=True) == 0
    assert len(output.read_text().splitlines()) == 100


@pytest.mark.parametrize("change", ["emptied", "rewritten", "longer"])
def test_an_input_that_changes_ends_the_job_and_what_was_done_stays(client, server, tmp_path, change):
    given = numbered(5000)
    source, output = write(tmp_path, given)
    changed = {"emptied": "", "rewritten": given.replace("zeile", "reihe"), "longer": given + "x\n"}

    class Changer(Listener):
        def on_line(self, *, failed, position):
            super().on_line(failed=failed, position=position)
            if self.lines == 100:
                # In place: a file that takes the other's name is not what the job reads.
                with source.open("r+") as file:
                    file.truncate()
                    file.write(changed[change])

    with pytest.raises(JobError, match=r"was changed while the job read it.*--restart"):
        run(client, source, output, listener=Changer(), window=8, checkpoint_seconds=0)
    assert not output.exists()
    with pytest.raises(JobError, match=r"belongs to another job: the input has changed"):
        run(client, source, output)
    source.write_text(given)
    assert resume(client, source, output) == 99
    assert output.read_text() == given.upper()


def test_a_file_that_takes_the_inputs_name_meanwhile_is_not_read(client, tmp_path):
    source, output = write(tmp_path, "a\n" * 1000)

    class Replacer(Listener):
        def on_line(self, *, failed, position):
            super().on_line(failed=failed, position=position)
            if self.lines == 10:
                (tmp_path / "new").write_text("b\n" * 2000)
                (tmp_path / "new").replace(source)

    assert run(client, source, output, listener=Replacer(), window=8).lines == 1000
    assert output.read_text() == "A\n" * 1000


def test_a_job_that_did_nothing_is_no_job(client, tmp_path):
    source, output = write(tmp_path, "a\n" * 10)

    class Killed(Listener):
        def on_start(self, **told):
            for path in tmp_path.glob("out*"):
                shutil.copy(path, tmp_path / "killed")

    (tmp_path / "killed").mkdir()
    run(client, source, output, Settings(source="xx", target="en"), listener=Killed())
    output = tmp_path / "killed" / "out"
    assert len(left_behind(output)) == 3
    run(client, source, output)
    assert output.read_text() == "A\n" * 10
    assert left_behind(output) == {"out"}


@pytest.mark.parametrize("fails", ["at once", "after a kill", "on a full disk"])
def test_a_job_that_ends_before_its_first_line_leaves_nothing_behind(client, server, tmp_path, fails):
    source, output = write(tmp_path, "a\n" * 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Failing(Listener):
        def on_start(self, **told):
            if fails == "on a full disk":
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))

    if fails == "after a kill":
        (tmp_path / "out.partial").write_text("A\nA\nA")
        (tmp_path / "out.errors.jsonl.partial").touch()
    server.servicer.failures.append(status_pb2.Status(code=code_pb2.NOT_FOUND, message="no such pair"))
    if fails == "on a full disk":
        server.servicer.failures.clear()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with pytest.raises((ModelNotFoundError, OSError), match=r"no such pair|File too large.*out\."):
            run(client, source, output, listener=Failing())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert left_behind(output) == set()


def test_a_job_that_went_on_and_did_nothing_more_keeps_what_it_has(client, server, tmp_path):
    source, output = write(tmp_path, "a\n" * 100)
    server.servicer.disconnects.extend([40, 0])
    for _ in range(2):
        with pytest.raises(UnavailableError):
            run(client, source, output, window=8, patience_seconds=0)
        assert left_behind(output) == {f"out{suffix}" for suffix in PARTIAL}
    assert resume(client, source, output) == 40
    assert output.read_text() == "A\n" * 100


def test_a_job_whose_partial_output_has_lost_its_end_does_not_go_on(client, server, tmp_path):
    source, output = write(tmp_path, "a\n" * 100)
    cut_short(client, server, source, output)
    os.truncate(tmp_path / "out.partial", 7)
    with pytest.raises(JobError, match=r"out\.partial has lost its end; begin anew with --restart"):
        run(client, source, output)
    assert (tmp_path / "out.partial").read_text() == "A\nA\nA\nA"


def test_restart_drops_nothing_where_the_output_may_not_be_replaced(client, server, tmp_path):
    source, output = write(tmp_path, "a\n" * 100)
    output.write_text("another\n")
    cut_short(client, server, source, output, overwrite=True)
    before = left_behind(output)
    assert len(before) > 1
    with pytest.raises(JobError, match="exists; replace it with --overwrite"):
        run(client, source, output, restart=True)
    assert left_behind(output) == before
    assert resume(client, source, output, overwrite=True) == 40
    assert output.read_text() == "A\n" * 100

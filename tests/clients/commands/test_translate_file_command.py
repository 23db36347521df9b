"""`dragoman translate-file`: exit codes, and what people see meanwhile."""

import os
import pty
import subprocess
import sys

import pytest

DE_EN = ("--from", "de", "--to", "en")


def test_file_is_translated_and_failures_have_their_exit_code(run, tmp_path):
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("a\n!INTERNAL x\n")
    result = run("translate-file", *DE_EN, str(source), str(output))
    assert result.exit_code == 3
    assert "2 lines, of which 1 failed: see" in result.stderr
    assert output.read_text() == "A\n\n"
    again = run("translate-file", *DE_EN, str(source), str(output))
    assert again.exit_code == 1
    assert "--overwrite" in again.stderr
    source.write_text("a\n")
    assert run("translate-file", *DE_EN, "--overwrite", str(source), str(output)).exit_code == 0
    result = run("translate-file", *DE_EN, str(source), str(tmp_path / "no" / "out.txt"))
    assert result.exit_code == 1
    assert f"there is no folder {tmp_path / 'no'}" in result.stderr


def test_translations_that_lack_an_end_are_told(run, tmp_path):
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("a\ntruncated\ntruncated limited\nb\n")
    result = run("translate-file", *DE_EN, str(source), str(output))
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-3:] == [
        "4 lines",
        "of 2 a sentence was too long for the model, and its end was dropped",
        "of 1 the translation ended at the limit of output tokens",
    ]
    for told in (run("translate", *DE_EN, "a", "limited"), run("translate", *DE_EN, stdin="a\nlimited")):
        assert (told.exit_code, told.stdout) == (0, "A\nLIMITED\n")
        assert told.stderr == "text 2: the translation ended at the limit of output tokens\n"


def test_what_is_told_meanwhile_is_not_broken_where_nobody_looks(run, server, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "in").write_text("a\n")
    reason = ":warning: [no] server is where it was, as far as anybody around here knows of it"
    server.servicer.failures.append(server.status("UNAVAILABLE", reason))
    result = run("translate-file", *DE_EN, str(tmp_path / "in"), str(tmp_path / "out"))
    assert result.exit_code == 0
    first, *_, last_but_one, last = result.stderr.splitlines()
    assert first == reason
    assert last_but_one == "Trying again in 0.5 s; Ctrl-C stops, and nothing is lost."
    assert last == "1 line"


@pytest.mark.parametrize("names", [("-", "out"), ("in", "-")])
def test_standard_input_and_output_are_no_files(run, tmp_path, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("a\n")
    result = run("translate-file", *DE_EN, *names)
    assert result.exit_code == 2
    assert "`dragoman translate` reads standard input" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_progress_bar_shows_on_a_terminal_and_nowhere_else(server, tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("a\n" * 50)
    command = [sys.executable, "-m", "dragoman", "translate-file", "--server", server.address]
    command += [*DE_EN, str(source)]
    piped = subprocess.run([*command, str(tmp_path / "piped")], capture_output=True, check=True)
    assert piped.stderr == b"50 lines\n"
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([*command, str(tmp_path / "shown")], stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # Linux says so when the other side is closed.
        pass
    os.close(ours)
    assert process.wait() == 0
    assert b"100%" in shown
    assert b"50 lines" in shown

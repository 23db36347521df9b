"""`dragoman doctor` and `dragoman keys`: what they say, and whom they let in and put out."""

import shutil
import signal
import socket
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.server.access import ADA
from tests.server.conftest import StartProcess
from tests.server.copying_bundle import write_bundle

from dragoman import Client, DragomanError
from dragoman_server.config import ServerConfig
from dragoman_server.doctor import doctor
from dragoman_server.keys import keys
from dragoman_server.service.callers import read_tokens


def run_doctor(models: Path) -> Result:
    return CliRunner().invoke(doctor, ["--models", str(models)])


def test_a_machine_that_can_serve_is_told_so_and_a_damaged_model_is_an_error(tmp_path: Path) -> None:
    result = run_doctor(tmp_path / "nowhere")
    assert result.exit_code == 1
    assert "dragoman get de-en" in result.output
    write_bundle(tmp_path)
    result = run_doctor(tmp_path)
    assert result.exit_code == 0, result.output
    assert "ERROR" not in result.output
    assert "model de-en/1: every file is whole" in result.output
    shutil.copytree(tmp_path / "de-en" / "1", tmp_path / "de-en" / "2")
    (tmp_path / "de-en" / "1" / "manifest.json").write_text("{")
    result = run_doctor(tmp_path)
    assert result.exit_code == 1
    errors = [line.split()[2] for line in result.output.splitlines() if line.startswith("ERROR")]
    assert errors == ["de-en/1:", "de-en/2:"]


def test_a_port_that_is_taken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bundle(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ServerConfig, "port", port)
        assert f"warning  port {port}: [Errno 98]" in run_doctor(tmp_path).output


def test_a_gpu_that_cannot_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    write_bundle(tmp_path)
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    is_here = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    assert ("install server in place of server-cpu" in run_doctor(tmp_path).output) == (not is_here)


def run_keys(*arguments: str) -> Result:
    return CliRunner().invoke(keys, arguments)


def test_who_has_a_key_may_call_until_it_is_revoked(start_process: StartProcess, tmp_path: Path) -> None:
    write_bundle(tmp_path / "models")
    tokens, limits = tmp_path / "tokens", tmp_path / "limits"
    files = ("--tokens", str(tokens), "--caller-limits", str(limits))
    added = run_keys("add", "web", *files, "--limits", "calls=4", "--limits", "calls-per-minute=1")
    other = run_keys("add", "jobs", "--tokens", str(tokens))
    assert (added.exit_code, other.exit_code) == (0, 0)
    web, jobs = added.stdout.strip(), other.stdout.strip()
    assert web not in tokens.read_text()
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    server = start_process(tmp_path / "models", *files)

    def ask(token: str) -> str:
        with Client(server.address, token=token, timeout_seconds=5) as client:
            return client.translate(["ja"], source="de", target="en")[0].text

    assert ask(jobs) == "ja"
    assert ask(web) == "ja"
    with pytest.raises(DragomanError, match="calls-per-minute"):
        ask(web)
    with pytest.raises(DragomanError, match="none of those"):
        ask(tokens.read_text().split()[1])
    listed = run_keys("list", "--tokens", str(tokens)).stdout
    assert [line.split()[:2] for line in listed.splitlines()] == [["jobs", "1"], ["web", "1"]]
    assert run_keys("revoke", "jobs", listed.split()[2], "--tokens", str(tokens)).exit_code == 0
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("reloaded")
    with pytest.raises(DragomanError, match="none of those"):
        ask(jobs)


def test_what_a_person_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# of the web shop\nada   {ADA}")
    path.chmod(0o640)
    assert run_keys("add", "ada", "--tokens", str(path)).exit_code == 0
    assert path.read_text().startswith(f"# of the web shop\nada   {ADA}\nada sha256:")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(read_tokens(path).values()) == ["ada", "ada"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("add", "a b"), "must be a name"),
        (("add", "#"), "must be a name"),
        (("add", "bob", "--limits", "speed=3"), "is no limit"),
        (("revoke", "ada"), "no token, so that nobody could call"),
        (("revoke", "bob"), "no such token of 'bob'"),
        (("revoke", "ada", "0"), "no such token of 'ada'"),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tokens").write_text(before := f"ada {ADA}\n")
    result = run_keys(*arguments)
    assert result.exit_code == 1
    assert told in result.stderr
    assert ADA not in result.output
    assert Path("tokens").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokens"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for command in (("list",), ("revoke", "ada")):
        result = run_keys(*command, "--tokens", str(tmp_path / "none"))
        assert result.exit_code == 1
        assert f"{tmp_path}/none can't be" in result.stderr

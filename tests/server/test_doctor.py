"""`dragoman doctor`: what it says of a machine that can serve, and of one that can't."""

import shutil
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.server.copying_bundle import write_bundle

from dragoman_server.config import ServerConfig
from dragoman_server.doctor import doctor


def run(models: Path) -> Result:
    return CliRunner().invoke(doctor, ["--models", str(models)])


def test_a_machine_that_can_serve_is_told_so(tmp_path: Path) -> None:
    write_bundle(tmp_path)
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert "ERROR" not in result.output
    assert "model de-en/1: every file is whole" in result.output


def test_a_damaged_model_is_an_error(tmp_path: Path) -> None:
    write_bundle(tmp_path)
    shutil.copytree(tmp_path / "de-en" / "1", tmp_path / "de-en" / "2")
    (tmp_path / "de-en" / "1" / "manifest.json").write_text("{")
    result = run(tmp_path)
    assert result.exit_code == 1
    assert [line.split()[2] for line in result.output.splitlines() if line.startswith("ERROR")] == [
        "de-en/1:",
        "de-en/2:",
    ]


def test_without_models_it_says_where_they_are_from(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere")
    assert result.exit_code == 1
    assert "dragoman get de-en" in result.output


def test_a_port_that_is_taken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bundle(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ServerConfig, "port", port)
        assert f"warning  port {port}: [Errno 98]" in run(tmp_path).output


def test_a_gpu_that_cannot_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    write_bundle(tmp_path)
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    is_here = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    assert ("install server in place of server-cpu" in run(tmp_path).output) == (not is_here)

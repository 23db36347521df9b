"""The unit for systemd: its command, how it ends, and how little it may."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.deploy.conftest import ROOT

from dragoman_server.cli import serve

UNIT = (ROOT / "deploy" / "dragoman.service").read_text()

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here"
)


def setting(name: str) -> str:
    [found] = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    return str(found)


def test_it_starts_the_server_and_waits_for_its_drain() -> None:
    program, command, *options = setting("ExecStart").split()
    assert (Path(program).name, command) == ("dragoman", "serve")
    values = serve.make_context("serve", options).params
    assert values["http_port"] == 8080
    assert int(setting("TimeoutStopSec")) >= values["drain_seconds"] + 5


@needs_systemd
def test_systemd_understands_it(tmp_path: Path) -> None:
    unit = tmp_path / "dragoman.service"
    unit.write_text(UNIT.replace(setting("ExecStart").split()[0], sys.executable))
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=True
    )
    assert checked.stdout + checked.stderr == ""


@needs_systemd
def test_it_may_little() -> None:
    """By systemd's own measure, from 0 to 10, of what a service could do if it were taken over."""
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", "deploy/dragoman.service"]
    rated = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert rated.returncode == 0, rated.stdout

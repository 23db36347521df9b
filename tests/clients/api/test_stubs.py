"""The committed stubs are what proto/ generates."""

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def check(root):
    command = [sys.executable, str(root / "proto" / "generate.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_stubs_are_current():
    assert check(REPOSITORY).returncode == 0


def test_drift_is_told_by_file(tmp_path):
    shutil.copytree(REPOSITORY / "proto", tmp_path / "proto")
    stubs = tmp_path / "clients" / "dragoman" / "v1"
    shutil.copytree(REPOSITORY / "clients" / "dragoman" / "v1", stubs)
    assert check(tmp_path).returncode == 0
    (stubs / "translation_pb2.pyi").write_text("")
    (stubs / "gone_pb2.py").write_text("")
    drifted = check(tmp_path)
    assert drifted.returncode == 1
    assert "translation_pb2.pyi" in drifted.stderr
    assert "gone_pb2.py" in drifted.stderr
    assert "translation_pb2.py " not in drifted.stderr

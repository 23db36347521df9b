"""`make size` counts what is there, in a repository of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / ".ci" / "size.py"


@pytest.mark.parametrize(("num_lines", "code"), [(1_500, 0), (1_700, 1)], ids=["within", "over"])
def test_lines_are_counted_by_room_beside_their_budget(tmp_path: Path, num_lines: int, code: int) -> None:
    files = {
        "bundle/dragoman_bundle/bundle.py": num_lines,
        "server/dragoman_server/text/find.py": 20,
        "server/dragoman_server/text/patterns.toml": 7,
        "clients/dragoman/v1/translation_pb2.py": 900,
        "tests/test_bundle.py": 30,
        "benchmarks/results/old.txt": 50,
    }
    for name, number in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("line\n" * number)
    (tmp_path / ".ci").mkdir()
    program = shutil.copy(PROGRAM, tmp_path / ".ci")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    counted = subprocess.run(
        [sys.executable, program, "--strict"], capture_output=True, text=True, check=False
    )
    rows = {line[:32].strip(): line[32:].replace(",", "").split() for line in counted.stdout.splitlines()[1:]}
    assert counted.returncode == code
    assert rows["bundle"] == [str(num_lines), "1600", "0", *["over"] * code]
    assert rows["server/dragoman_server/text"] == ["20", "3200", "7"]
    assert rows["server"] == ["20", "15900", "7"]
    assert rows["clients/dragoman"] == ["0", "6500", "0"]
    assert rows["all sources"][0] == str(
        num_lines + 20 + (tmp_path / ".ci" / "size.py").read_bytes().count(b"\n")
    )
    assert rows["tests"] == ["30", "40000", "0"]
    assert rows["folders with Python"] == ["3", "60", "0"]
    assert not subprocess.run([sys.executable, program], capture_output=True, check=False).returncode

"""SECURITY.md claims nothing that no test holds."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_claim_names_a_test_that_there_is() -> None:
    defended = (ROOT / "SECURITY.md").read_text().split("## What is defended")[1].split("## What is not")[0]
    rows = [line for line in defended.splitlines() if line.startswith("| ")][2:]
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert set(named) <= tests, row

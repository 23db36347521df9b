"""`make size`: lines of Python by room beside their budget, and of data; `--strict` exits with 1 beyond one.

Generated stubs do not count, tests count apart. Data are text files that a room's code reads.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGETS = {
    "clients/dragoman": 6_500,
    "clients/dragoman_files": 2_300,
    "bundle": 1_600,
    "export": 7_000,
    "server": 15_900,
    "server/dragoman_server/engine": 4_500,
    "server/dragoman_server/text": 3_200,
    "training": 14_000,
    "benchmarks": 4_500,
}
"""Lines of Python a room may have; a room's lines count in the room around it, too."""
SOURCE_LINES, TEST_LINES, FOLDERS = 52_000, 40_000, 60
DATA = {".css", ".csv", ".html", ".js", ".json", ".toml", ".tsv", ".txt"}
NO_ROOMS = ("benchmarks/results", "deploy", "docs", "models", "training/recipes")
"""Folders whose files are no room's data."""


def main(is_strict: bool) -> int:
    """Counts the files that git knows or would add, prints a line for each room, returns the exit code."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    code: Counter[str] = Counter()
    data: Counter[str] = Counter()
    folders = set()
    for path in sorted({Path(name) for name in names if name and (ROOT / name).is_file()}):
        is_code = path.suffix == ".py" and path.parent.name != "v1"
        if not is_code and (path.suffix not in DATA or path.is_relative_to("clients/dragoman/v1")):
            continue
        rooms = [str(folder) for folder in path.parents if str(folder) in BUDGETS]
        rooms += ["tests" if path.is_relative_to("tests") else "all sources"]
        number = (ROOT / path).read_bytes().count(b"\n")
        if is_code:
            code.update(dict.fromkeys(rooms, number))
            if "tests" not in rooms:
                folders.add(path.parent)
        elif len(rooms) > 1 and not any(path.is_relative_to(folder) for folder in NO_ROOMS):
            data.update(dict.fromkeys(rooms, number))
    budgets = {**BUDGETS, "all sources": SOURCE_LINES, "tests": TEST_LINES}
    counted = [(room, code[room], budget) for room, budget in budgets.items()]
    counted.append(("folders with Python", len(folders), FOLDERS))
    print(f"{'room':32}{'Python':>8}{'budget':>8}{'data':>8}")
    for room, number, budget in counted:
        print(f"{room:32}{number:8,}{budget:8,}{data[room]:8,}{'  over' if number > budget else ''}")
    return int(is_strict and any(number > budget for _, number, budget in counted))


if __name__ == "__main__":
    sys.exit(main("--strict" in sys.argv[1:]))

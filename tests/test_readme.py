"""The README's lists are whole and true."""

from pathlib import Path

HOUSE = Path(__file__).parents[1]


def section(heading: str) -> str:
    """What stands below the heading."""
    after = (HOUSE / "README.md").read_text().split(f"\n## {heading}\n")[1]
    return after.split("\n## ")[0]


def test_the_tree_has_what_there_is() -> None:
    tree = section("What is where").split("```")[1].strip()
    names = [line.split()[0] for line in tree.splitlines()]
    assert len(names) > 10
    for name in names:
        path = HOUSE / name
        assert path.is_dir() if name.endswith("/") else path.is_file(), name

"""What the documents name is there: files and headings they link, commands and options they show."""

import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dragoman.cli.group import main

HOUSE = Path(__file__).parents[1]
DOCUMENTS = [
    *sorted(HOUSE.glob("*.md")),
    *sorted((HOUSE / "docs").rglob("*.md")),
    *sorted((HOUSE / "models").rglob("README.md")),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\.venv/bin/)?dragoman ([a-z-]+)((?: [a-z]+)?)(.*)$", re.MULTILINE)
_BENCHMARK = re.compile(r"-m benchmarks ([\w-]+)")
SCENARIOS = {module.name for module in pkgutil.iter_modules([str(HOUSE / "benchmarks" / "scenarios")])}


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(HOUSE)) for path in paths]


def anchors(path: Path) -> set[str]:
    """Those that GitHub gives the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str) -> Iterator[tuple[str, str, set[str]]]:
    """Each `dragoman` command that a document's blocks show, the word after it, and its options."""
    for block in _BLOCK.findall(text):
        for name, word, arguments in _COMMAND.findall(block.replace("\\\n", " ")):
            shown = re.sub(r"'[^']*'|\"[^\"]*\"", "''", arguments.split(" #")[0].split(" -- ")[0])
            yield name, word.strip(), set(re.findall(r"(?<= )--[a-z][a-z0-9-]*", shown))


@pytest.mark.parametrize("path", DOCUMENTS, ids=names(DOCUMENTS))
def test_links_lead_to_files_and_headings(path: Path) -> None:
    for link in _LINK.findall(path.read_text()):
        if not link.startswith(("http:", "https:", "mailto:")):
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_commands_and_their_options_are_there() -> None:
    shown = [command for path in DOCUMENTS for command in commands(path.read_text())]
    assert len(shown) > 40
    context = click.Context(main)
    for name, word, options in shown:
        command = main.get_command(context, name)
        if isinstance(command, click.Group) and word:
            name, command = f"{name} {word}", command.get_command(context, word)
        assert command is not None, name
        known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
        assert options <= known, f"dragoman {name}: {options - known}"


def test_benchmarks_that_documents_name_are_there() -> None:
    # What a version changed is named as it was then.
    lasting = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
    assert not [path for path in lasting if "-m benchmarks." in path.read_text()]
    shown = {name for path in lasting for name in _BENCHMARK.findall(path.read_text())} - {"--list"}
    assert len(shown) >= len(SCENARIOS)
    assert shown <= SCENARIOS


def test_each_dependency_has_a_line_that_says_why() -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    extras = {name: found for name, found in project["optional-dependencies"].items() if name != "dev"}
    required = {
        re.split(r"[\[>=]", line)[0]
        for found in [project["dependencies"], *extras.values()]
        for line in found
    }
    page = (HOUSE / "docs/reference/dependencies.md").read_text()
    listed = [
        name
        for row in re.findall(r"^\| ([a-z][\w,. -]*) \| [^|]{10,} \| [A-Z][\w.-]+ \|", page, re.MULTILINE)
        for name in row.split(", ")
    ]
    assert sorted(listed) == sorted(required - {"dragoman"})


def test_the_tree_has_what_there_is() -> None:
    tree = (HOUSE / "CONTRIBUTING.md").read_text().split("\n## What is where\n")[1].split("```")[1].strip()
    names = [line.split()[0] for line in tree.splitlines()]
    assert len(names) > 10
    for name in names:
        path = HOUSE / name
        assert path.is_dir() if name.endswith("/") else path.is_file(), name


def test_documents_keep_to_their_length() -> None:
    limits = dict.fromkeys((HOUSE / "docs").rglob("*.md"), 120) | {HOUSE / "README.md": 100}
    for generated in ("reference/recipes", "reference/server", "research/attention"):
        del limits[HOUSE / "docs" / f"{generated}.md"]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in limits}
    assert names([path for path in limits if lengths[path] > limits[path]]) == []


def known_tests() -> set[str]:
    """The names of all tests."""
    sources = [path.read_text() for path in (HOUSE / "tests").rglob("test_*.py")]
    pattern = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
    return {name for source in sources for name in pattern.findall(source)}


def test_each_claim_of_security_names_a_test_that_there_is() -> None:
    security = (HOUSE / "SECURITY.md").read_text()
    defended = security.split("## What is defended")[1].split("## What is not")[0]
    rows = [line for line in defended.splitlines() if line.startswith("| ")][2:]
    tests = known_tests()
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert set(named) <= tests, row

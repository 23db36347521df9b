"""What `pip install dragoman` would install: built, checked as an index does, installed, and called."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.deploy.conftest import ROOT
from tests.server.server_process import ServerProcess

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The archive of source, and the wheel that is built of it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, capture_output=True, check=True)
    return folder / f"dragoman-{VERSION}.tar.gz", folder / f"dragoman-{VERSION}-py3-none-any.whl"


def test_an_index_takes_them_and_the_guide_names_the_wheel(built: tuple[Path, Path]) -> None:
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)], check=True)
    assert f"'{built[1].name}[" in (ROOT / "docs" / "guide" / "install.md").read_text()


def test_a_wheel_holds_the_packages_and_nothing_else(built: tuple[Path, Path]) -> None:
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    expected = {
        str(path.relative_to((ROOT / package).parent))
        for package in packages
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if not name.startswith(f"dragoman-{VERSION}.dist-info/")}
    assert names == expected
    assert {f"{Path(package).name}/py.typed" for package in packages} <= names


def test_an_archive_of_source_holds_no_models_and_no_tests(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = {name.partition("/")[0] for name in names if "/" in name}
    assert folders == {"bundle", "clients", "export", "proto", "server", "training"}
    assert {"README.md", "LICENSE", "pyproject.toml", "proto/google/LICENSE"} <= names


def test_an_empty_environment_serves_and_calls(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Dependencies are those of the tests; nothing of the checkout is on the path."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    python = tmp_path / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(built[1])], check=True, capture_output=True)
    [site] = tmp_path.glob("lib/python*/site-packages")
    found = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in found))

    def run(*command: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        place = {"cwd": tmp_path, "env": environment}
        return subprocess.run(command, **place, capture_output=True, text=True, check=True).stdout.strip()

    dragoman = str(tmp_path / "bin" / "dragoman")
    assert run(dragoman, "--version") == f"dragoman, version {VERSION}"
    where = "import dragoman, dragoman_files, dragoman_server as s; print(dragoman.__file__, s.__file__)"
    assert all(str(site) in path for path in run(str(python), "-c", where).split())
    with ServerProcess(ROOT / "models", command=[dragoman, "serve"]) as server:
        options = ["--server", server.address, "--from", "de", "--to", "en"]
        assert run(dragoman, "translate", *options, "Guten Morgen.") == "Good morning."
        assert server.stop()[0] == 0

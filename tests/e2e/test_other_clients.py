"""The guide's program for Node, as it stands there, against a server; and buf, on what proto/ holds."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.server_process import ServerProcess

HOUSE = Path(__file__).parents[2]
PACKAGES = ("@grpc/grpc-js", "@grpc/proto-loader", "@bufbuild/buf")

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("npm") is None, reason="needs node and npm")]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of the guide."""
    folder = tmp_path_factory.mktemp("node")
    subprocess.run(["npm", "install", "--silent", "--prefix", str(folder), *PACKAGES], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ServerProcess(HOUSE / "models", "auto")
    yield server.address
    assert server.stop() == 0


def test_the_guides_program_calls_and_streams(node: Path, address: str) -> None:
    guide = (HOUSE / "docs/guide/other-clients.md").read_text()
    (node / "call.js").write_text(re.findall(r"^```js\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)[0])
    shutil.copytree(HOUSE / "proto", node / "proto")
    called = subprocess.run(
        ["node", "call.js", address], cwd=node, capture_output=True, text=True, timeout=60, check=True
    )
    first, *streamed = called.stdout.splitlines()
    assert first == "Good morning."
    assert sorted(streamed) == ["a Yes.", "b No."]


def test_buf_finds_nothing_to_say_of_the_contract(node: Path) -> None:
    subprocess.run([node / "node_modules/.bin/buf", "lint"], cwd=HOUSE / "proto", check=True)

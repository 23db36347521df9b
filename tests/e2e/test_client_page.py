"""The guides of the client and the README's example: what they show is what happens, against a server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from tests.server.server_process import ServerProcess

HOUSE = Path(__file__).parents[2]
GUIDES = ("guide/client", "guide/coming-from", "guide/streams", "guide/client-errors", "operate/connections")
TOKEN = "0123456789abcdef"
_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the examples run: it has the roots and the tokens that one of them needs."""
    folder = tmp_path_factory.mktemp("client-page")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "roots.pem")
    own = authority.issue_cert("localhost")
    own.private_key_pem.write_to_path(folder / "key.pem")
    own.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    (folder / "tokens").write_text(f"reader {TOKEN}\n")
    return folder


@pytest.fixture(scope="module")
def addresses(folder: Path) -> Iterator[dict[str, str]]:
    """By the page's address of a server: where one like it listens."""
    models = ("--models", str(HOUSE / "models"), "--port", "0", "--host", "localhost")
    files = {"--tls-certificate": "certificate.pem", "--tls-key": "key.pem", "--tokens": "tokens"}
    tls = [word for option, name in files.items() for word in (option, str(folder / name))]
    servers = {
        "localhost:50051": ServerProcess(*models, "--http-port", "0", environment={}),
        "localhost:50052": ServerProcess(*models, *tls, environment={}),
    }
    try:
        ready = {address: server.wait_for("ready") for address, server in servers.items()}
        ports = {address: event["port"] for address, event in ready.items()}
        ports["localhost:8080"] = ready["localhost:50051"]["http_port"]
        yield {address: f"localhost:{port}" for address, port in ports.items()}
    finally:
        for server in servers.values():
            server.kill()


def run(code: str, addresses: dict[str, str], folder: Path) -> str:
    """What it prints, with the servers where they really are."""
    for written, actual in addresses.items():
        code = code.replace(f'{written}"', f'{actual}"')
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {**os.environ, "DRAGOMAN_TOKEN": TOKEN}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def examples() -> list[tuple[str, str]]:
    """Those of the guides, each with what it prints."""
    text = "\n".join((HOUSE / "docs" / f"{name}.md").read_text() for name in GUIDES)
    found = [(match[1], match[2]) for match in _EXAMPLE.finditer(text)]
    assert len(found) == text.count("```python")
    return found


@pytest.mark.parametrize("number", range(len(examples())))
def test_each_example_prints_what_the_page_says(number: int, addresses: dict[str, str], folder: Path) -> None:
    code, printed = examples()[number]
    assert run(code, addresses, folder) == printed


def test_the_example_of_the_readme_translates(addresses: dict[str, str], folder: Path) -> None:
    [code] = re.findall(
        r"^```python\n(.*?)^```$", (HOUSE / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert run(code, addresses, folder) == "Good morning.\n"

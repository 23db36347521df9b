"""The guides of the clients and the README's example: what they show is what happens, against a server."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
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
    files = {"--tls-certificate": "certificate.pem", "--tls-key": "key.pem", "--tokens": "tokens"}
    tls = [word for option, name in files.items() for word in (option, folder / name)]
    models = (HOUSE / "models", "--host", "localhost")
    with ServerProcess(*models, "--http-port", 0) as plain, ServerProcess(*models, *tls) as secured:
        written = ("localhost:50051", "localhost:8080", "localhost:50052")
        ports = (*plain.ports, secured.ports[0])
        yield {address: f"localhost:{port}" for address, port in zip(written, ports, strict=True)}


@pytest.fixture
def run(
    addresses: dict[str, str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str], str]:
    """What code prints, with the servers where they really are."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DRAGOMAN_TOKEN", TOKEN)

    def run(code: str) -> str:
        for written, actual in addresses.items():
            code = code.replace(f'{written}"', f'{actual}"')
        exec(compile(code, "example", "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    return run


def examples() -> list[tuple[str, str]]:
    """Those of the guides, each with what it prints."""
    text = "\n".join((HOUSE / "docs" / f"{name}.md").read_text() for name in GUIDES)
    found = [(match[1], match[2]) for match in _EXAMPLE.finditer(text)]
    assert len(found) == text.count("```python")
    return found


@pytest.mark.parametrize("number", range(len(examples())))
def test_each_example_prints_what_the_page_says(number: int, run: Callable[[str], str]) -> None:
    code, printed = examples()[number]
    assert run(code) == printed


def test_the_example_of_the_readme_translates(run: Callable[[str], str]) -> None:
    [code] = re.findall(r"(?ms)^```python\n(.*?)^```$", (HOUSE / "README.md").read_text())
    assert run(code) == "Good morning.\n"


PACKAGES = ("@grpc/grpc-js", "@grpc/proto-loader", "@bufbuild/buf")

needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="needs node and npm")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of the guide."""
    folder = tmp_path_factory.mktemp("node")
    subprocess.run(["npm", "install", "--silent", "--prefix", str(folder), *PACKAGES], cwd=folder, check=True)
    return folder


@pytest.mark.long
@needs_node
def test_the_guides_program_calls_and_streams(node: Path, addresses: dict[str, str]) -> None:
    guide = (HOUSE / "docs/guide/other-clients.md").read_text()
    (node / "call.js").write_text(re.findall(r"^```js\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)[0])
    shutil.copytree(HOUSE / "proto", node / "proto")
    command = ["node", "call.js", addresses["localhost:50051"]]
    called = subprocess.run(command, cwd=node, capture_output=True, text=True, timeout=60, check=True)
    first, *streamed = called.stdout.splitlines()
    assert first == "Good morning."
    assert sorted(streamed) == ["a Yes.", "b No."]


@pytest.mark.long
@needs_node
def test_buf_finds_nothing_to_say_of_the_contract(node: Path) -> None:
    subprocess.run([node / "node_modules/.bin/buf", "lint"], cwd=HOUSE / "proto", check=True)

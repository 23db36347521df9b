"""`dragoman keys`: who it lets in, and whom it puts out."""

import signal
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.server.access import ADA
from tests.server.conftest import StartProcess
from tests.server.copying_bundle import write_bundle

from dragoman import Client, DragomanError
from dragoman_server.keys import keys
from dragoman_server.service.callers import read_tokens


def run(*arguments: str) -> Result:
    return CliRunner().invoke(keys, arguments)


def test_who_has_a_key_may_call_until_it_is_revoked(start_process: StartProcess, tmp_path: Path) -> None:
    write_bundle(tmp_path / "models")
    tokens, limits = tmp_path / "tokens", tmp_path / "limits"
    files = ("--tokens", str(tokens), "--caller-limits", str(limits))
    added = run("add", "web", *files, "--limits", "calls=4", "--limits", "calls-per-minute=1")
    other = run("add", "jobs", "--tokens", str(tokens))
    assert (added.exit_code, other.exit_code) == (0, 0)
    web, jobs = added.stdout.strip(), other.stdout.strip()
    assert web not in tokens.read_text()
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    server = start_process("--models", str(tmp_path / "models"), "--port", "0", *files)
    address = f"127.0.0.1:{server.wait_for('ready')['port']}"

    def ask(token: str) -> str:
        with Client(address, token=token, timeout_seconds=5) as client:
            return client.translate(["ja"], source="de", target="en")[0].text

    assert ask(jobs) == "ja"
    assert ask(web) == "ja"
    with pytest.raises(DragomanError, match="calls-per-minute"):
        ask(web)
    with pytest.raises(DragomanError, match="none of those"):
        ask(tokens.read_text().split()[1])
    listed = run("list", "--tokens", str(tokens)).stdout
    assert [line.split()[:2] for line in listed.splitlines()] == [["jobs", "1"], ["web", "1"]]
    assert run("revoke", "jobs", listed.split()[2], "--tokens", str(tokens)).exit_code == 0
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("reloaded")
    with pytest.raises(DragomanError, match="none of those"):
        ask(jobs)


def test_what_a_person_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# of the web shop\nada   {ADA}")
    path.chmod(0o640)
    assert run("add", "ada", "--tokens", str(path)).exit_code == 0
    assert path.read_text().startswith(f"# of the web shop\nada   {ADA}\nada sha256:")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(read_tokens(path).values()) == ["ada", "ada"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("add", "a b"), "must be a name"),
        (("add", "#"), "must be a name"),
        (("add", "bob", "--limits", "speed=3"), "is no limit"),
        (("revoke", "ada"), "no token, so that nobody could call"),
        (("revoke", "bob"), "no such token of 'bob'"),
        (("revoke", "ada", "0"), "no such token of 'ada'"),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tokens").write_text(before := f"ada {ADA}\n")
    result = run(*arguments)
    assert result.exit_code == 1
    assert told in result.stderr
    assert ADA not in result.output
    assert Path("tokens").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokens"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for command in (("list",), ("revoke", "ada")):
        result = run(*command, "--tokens", str(tmp_path / "none"))
        assert result.exit_code == 1
        assert f"{tmp_path}/none can't be" in result.stderr

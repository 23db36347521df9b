"""A peer's environment is made once, and anew where other packages are wanted."""

from pathlib import Path

import pytest

from benchmarks import environment
from benchmarks.environment import PeerMissingError, make_environment


def test_it_is_made_once_for_the_same_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "FOLDER", tmp_path)
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        (tmp_path / "peer").mkdir(exist_ok=True)

    monkeypatch.setattr(environment, "_run", run)
    python = make_environment("peer", ("one",), ("one", "two"))
    assert python == tmp_path / "peer" / "bin" / "python"
    assert [command[-1] for command in commands] == [str(tmp_path / "peer"), "one", "two"]
    make_environment("peer", ("one",), ("one", "two"))
    assert len(commands) == 3
    make_environment("peer", ("one", "three"))
    assert [command[-1] for command in commands[3:]] == [str(tmp_path / "peer"), "three"]


def test_what_cannot_be_installed_is_an_error_with_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "FOLDER", tmp_path)
    (tmp_path / "peer").write_text("a file where the folder should be")
    with pytest.raises(PeerMissingError, match="failed:"):
        make_environment("peer", ("one",))
    assert not (tmp_path / "peer" / "ready").exists()

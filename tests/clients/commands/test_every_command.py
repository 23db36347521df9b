"""Every command there is, called with as little as a person may call it with: a sentence, never a trace."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from dragoman.cli.group import main

NOBODY = {"DRAGOMAN_SERVER": "127.0.0.1:1"}
"""A server that is not there."""


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands(main))


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments, env=NOBODY)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "A bug" not in result.output
    assert "Traceback" not in result.output
    return result


def test_the_commands_are_those_of_the_documents() -> None:
    assert {("serve",), ("translate",), ("align", "train"), ("models", "copy")} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_has_its_help(path: tuple[str, ...]) -> None:
    result = call(*path, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_without_arguments_says_what_it_lacks(
    path: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """Four need none: of them one finds no server, two no models, one no tokens."""
    result = call(*path)
    told = result.output + capfd.readouterr().err
    needs_none = {
        ("doctor",): "models: none in models",
        ("keys", "list"): "tokens can't be read: No such file or directory",
        ("models",): "Is a server running there",
        ("serve",): "the models folder models does not exist: --models names the folder to serve",
    }
    assert result.exit_code == (1 if path in needs_none else 2)
    assert needs_none.get(path, "Usage: ") in told

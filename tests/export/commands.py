"""Commands as they are called."""

from pathlib import Path

import click
from click.testing import CliRunner
from dragoman_bundle import Bundle, open_bundle

from dragoman_export.get.cli import get


def call(command: click.Command, *arguments: object, answer: str | None = None) -> tuple[int, str]:
    """The status, and all that is said, in a line."""
    result = CliRunner().invoke(command, list(map(str, arguments)), input=answer)
    return result.exit_code, " ".join(result.output.split())


def got(source: Path, folder: Path, *options: object) -> Bundle:
    """The bundle that `dragoman get` makes there of a model that is here."""
    code, said = call(get, source, "--out", folder, *options)
    assert code == 0, said
    return open_bundle(folder)


def refusal(source: Path, folder: Path, *options: object) -> str:
    """What `dragoman get` says that makes no bundle there."""
    code, said = call(get, source, "--out", folder, *options)
    assert code in (1, 2)
    assert not folder.parent.exists()
    return said

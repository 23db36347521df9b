"""The `dragoman` command. Its subcommands come from all packages, each loaded when it is called."""

from dragoman.cli.group import main

__all__ = ["main"]

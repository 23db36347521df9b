"""What a person reads when a command fails: one line that says what went wrong and the way out."""

from importlib.metadata import EntryPoint

import click

from dragoman.cli.options import TOKEN_VARIABLE
from dragoman.errors import (
    AuthenticationError,
    DeadlineExceededError,
    DragomanError,
    OverloadedError,
    UnavailableError,
)


class Failure(click.ClickException):
    """Any error, as one line. Exit code 1."""

    def __init__(self, error: Exception) -> None:
        super().__init__(_message(error))


def missing_extra(what: str, entry_point: EntryPoint, error: ModuleNotFoundError) -> click.ClickException:
    """What to install for something whose module is missing.

    A whole package of ours may be left out of an image; a module missing within one is a bug: raises `error`.
    """
    name = error.name or ""
    if not entry_point.extras or (name.startswith("dragoman") and "." in name):
        raise error
    return click.ClickException(f"{what} needs {name}, which is not installed: {how_to_install(entry_point)}")


def how_to_install(entry_point: EntryPoint) -> str:
    """The command that installs what an entry point needs beyond the bare install."""
    return f"pip install 'dragoman[{','.join(entry_point.extras)}]'"


def _message(error: Exception) -> str:
    match error:
        case UnavailableError():
            return f"{error}\nIs a server running there? `dragoman serve --models models` starts one."
        case AuthenticationError():
            return f"{error}\nPut it into the environment variable {TOKEN_VARIABLE}."
        case DeadlineExceededError():
            return f"{error}\nA longer --timeout gives the server more time."
        case OverloadedError():
            wait = error.retry_after_seconds
            return f"{error}\nTry again {'later' if wait is None else f'in {wait:g} seconds'}."
        case OSError(filename=str() as name, strerror=str() as reason):
            return f"{name}: {reason}"
        case DragomanError() | ValueError() | OSError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}\nA bug: `dragoman --debug ...` shows where."

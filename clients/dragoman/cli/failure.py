"""The message of a command that fails: one line with what went wrong and the way out."""

import importlib.util
import os
import re
import shutil
import sys
from importlib.metadata import EntryPoint
from typing import Any

import click

from dragoman import errors
from dragoman.cli.options import OPTIONS, TOKEN_VARIABLE
from dragoman.connection.channel import ROOTS_VARIABLE


class Failure(click.ClickException):
    """Any error, as one line. Exit code 1."""

    def __init__(self, error: Exception) -> None:
        super().__init__(printable(message_of(error)))


def printable(text: str) -> str:
    """The text with escapes for what a server may have sent to steer a terminal; lines stay lines."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


def missing_extra(feature: str, entry_point: EntryPoint, error: ModuleNotFoundError) -> click.ClickException:
    """The error for a missing module, with the extra that installs it.

    A whole package of ours may be left out of an image; a module missing within one is a bug: raises `error`.
    """
    name = error.name or ""
    if not entry_point.extras or (name.startswith("dragoman") and "." in name):
        raise error
    command = f"{sys.executable} -m pip install --constraint constraints.txt --editable"
    return click.ClickException(
        f"{feature} needs {name}, which is not installed. In the source checkout run `make install`, "
        "or just\n"
        f"{command} '.[{','.join(map(_suitable, entry_point.extras))}]'"
    )


def load(entry_point: EntryPoint, feature: str) -> Any:
    """The object that an entry point names. Raises ClickException where its extra is not installed."""
    try:
        return entry_point.load()
    except ModuleNotFoundError as error:
        raise missing_extra(feature, entry_point, error) from error


def _suitable(extra: str) -> str:
    """The extra; for `server` one that fits this machine, and brings no second build of onnxruntime."""
    if extra != "server":
        return extra
    if importlib.util.find_spec("onnxruntime") is not None:
        return "server-base"
    return "server" if shutil.which("nvidia-smi") else "server-cpu"


def message_of(error: Exception) -> str:
    """The error in a person's words, with the way out where there is one."""
    match error:
        case errors.UnavailableError(reason=None):
            return f"{error}\n{_unavailable_hint(str(error))}"
        case errors.AuthenticationError() if os.environ.get(TOKEN_VARIABLE):
            return f"{error}\nThe token is the one in the environment variable {TOKEN_VARIABLE}."
        case errors.AuthenticationError():
            return f"{error}\nPut it into the environment variable {TOKEN_VARIABLE}."
        case errors.InvalidRequestError():
            return _with_options(error)
        case errors.DeadlineExceededError():
            return f"{error}\nA longer --timeout gives the server more time."
        case errors.OverloadedError():
            wait = error.retry_after_seconds
            return f"{error}\nTry again {'later' if wait is None else f'in {wait:g} seconds'}."
        case OSError(filename=str() as name, strerror=str() as reason):
            return f"{name}: {reason}"
        case errors.DragomanError() | ValueError() | OSError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}\nA bug: `dragoman --debug ...` shows where."


def _unavailable_hint(message: str) -> str:
    """The way out by what gRPC tells of a connection that failed."""
    if "errors resolving" in message or "DNS resolution failed" in message:
        return "Nobody knows a machine of that name: is it spelt right?"
    if "Hostname Verification Check failed" in message:
        return "The server's certificate is for another name: give its address by a name that it has."
    if "Failed parsing HTTP/2" in message:
        return "What answers there speaks no gRPC. Is it the port of the metrics, or of a proxy?"
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return (
            "The server's certificate is signed by nobody whom this machine trusts. The environment variable "
            f"{ROOTS_VARIABLE} may name a PEM file with those to trust."
        )
    if "WRONG_VERSION_NUMBER" in message:
        return "The server speaks no TLS: give its address without grpcs://."
    if "Tls handshake failed" in message:
        return "A server is there, but TLS with it failed."
    if "Socket closed" in message:
        return "The connection was lost: the server ended, or it speaks TLS and wants grpcs://HOST:PORT."
    return (
        "Is a server running there, and over TLS (grpcs://) or not? "
        "`dragoman serve` starts one of the bundles in ./models."
    )


def _with_options(error: errors.InvalidRequestError) -> str:
    """The message, with the options of the command line in place of the fields that they set."""
    message = str(error)
    for violation in error.violations:
        # Of an option that is repeatable, one of its values is meant.
        name = re.sub(r"^(options|protection)\.|_language$|\[\d+\]$", "", violation.field)
        if (option := OPTIONS.get(name)) is not None:
            message = re.sub(rf"(?<![\w.]){re.escape(violation.field)}:? ", f"{option} ", message, count=1)
    return message

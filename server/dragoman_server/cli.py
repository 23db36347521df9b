"""The `dragoman serve` command: options in, a running server out. Only wiring."""

import asyncio
import dataclasses
import difflib
import logging
import os
import re
import sys
from itertools import groupby
from typing import Any

import click

from dragoman_server.config import ServerConfig
from dragoman_server.errors import ServerFileError
from dragoman_server.options import MissingExtraError, build, options, parameters

PREFIX = "DRAGOMAN_SERVE"
"""How the environment variables begin that set options."""
CUT_OFF = 3
"""Exit code of a server whose drain had not the time for all calls."""


class _LongRunning(click.Command):
    """A command that lasts, of which the program that runs it knows two things."""

    takes_hangup = True
    """It takes SIGHUP itself: until it does, the signal stays blocked."""
    abandons_threads = True
    """All is closed and written once it returns, and nobody waits for threads that are still at work."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the options by group."""
        headings = {option.name: option.heading for option in options(ServerConfig)}
        listed = self.get_params(ctx)
        for heading, group in groupby(listed, key=lambda each: headings.get(each.name or "", "")):
            with formatter.section(heading or "Help"):
                formatter.write_dl([record for each in group if (record := each.get_help_record(ctx))])


@click.command(
    cls=_LongRunning,
    context_settings={"auto_envvar_prefix": PREFIX, "show_default": True},
    params=parameters(ServerConfig),
)
def serve(**values: Any) -> None:
    """Serve the bundles of a folder over gRPC, and over HTTP where --http-port says so.

    Every option can be given by an environment variable too: --max-texts by DRAGOMAN_SERVE_MAX_TEXTS. SIGTERM
    and SIGINT drain the server; a second one ends it at once. SIGHUP has the models folder, the tokens, the
    callers' limits, the glossaries and the aligners read again: new bundles are served, and those that are
    gone end once nobody uses them.

    The exit code is 0 after a drain that answered every accepted call, 3 where --drain-seconds cut some off,
    1 where the server could not start or lost an engine, and 2 for options that are none.
    """
    _check_environment()
    # Loaded here: `dragoman serve --help` needs neither onnxruntime nor grpc.
    from prometheus_client import disable_created_metrics

    from dragoman_server.engine import DeviceUnavailableError
    from dragoman_server.logs import open_log
    from dragoman_server.models.manager import GettingError
    from dragoman_server.models.repository import RepositoryError
    from dragoman_server.server import EngineEndedError, PortError
    from dragoman_server.server import serve as serve_until_stopped

    try:
        config: ServerConfig = build(ServerConfig, values)
    except ValueError as error:
        raise click.UsageError(_name_options(str(error))) from error
    if config.log_format == "auto":
        config = dataclasses.replace(config, log_format="text" if sys.stderr.isatty() else "json")
    # Every counter and histogram would have a twin, which nobody looks at: when it began.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    with open_log(config.log_format) as log:
        try:
            finished = asyncio.run(serve_until_stopped(config, log))
        except (
            DeviceUnavailableError,
            EngineEndedError,
            GettingError,
            MissingExtraError,
            PortError,
            RepositoryError,
            ServerFileError,
        ) as error:
            if config.log_format == "text":
                raise click.ClickException(str(error)) from error
            # The log holds nothing but JSON.
            logging.getLogger(__name__).critical("not serving", extra={"reason": str(error)})
            raise SystemExit(1) from error
    if not finished:
        raise SystemExit(CUT_OFF)


def _check_environment() -> None:
    """Refuses variables that set no option: a misspelt limit would be none."""
    known = [f"{PREFIX}_{parameter.name}".upper() for parameter in serve.params]
    for name in sorted(os.environ):
        if name.startswith(f"{PREFIX}_") and name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise click.UsageError(f"the environment variable {name} sets no option{hint}")


def _name_options(message: str) -> str:
    """A message about fields of the configuration, with the options that set them."""
    flags = {option.name: option.flags[0] for option in options(ServerConfig)}
    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", lambda name: flags.get(name[0], name[0]), message)

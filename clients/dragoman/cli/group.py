"""The group of all subcommands: finds them, loads them late, and says in one line what went wrong.

Subcommands register as entry points of the group `dragoman.commands`; the extra in an entry point's brackets
is what a subcommand needs beyond the bare install. Nothing here imports one before it is called. A subcommand
may have texts as its arguments, one of which may begin with a dash.
"""

import ast
import difflib
import importlib.util
import re
import signal
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import click

from dragoman.cli.failure import Failure, load, missing_extra

_OPTION = re.compile(r"-[a-zA-Z]\S*|--[a-zA-Z][\w-]*(=.*)?", re.DOTALL)
"""An argument that is meant for an option, known or not: a dash before a space, a digit or a sentence
belongs to a text."""


class TextCommand(click.Command):
    """A command with options, and any number of texts as its only argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts texts behind `--`, where no dash matters. Raises UsageError for a file in a text's place."""
        try:
            options, texts, after = self._sort(ctx, args)
            if not ctx.resilient_parsing:
                for text in texts:
                    _check_is_no_file(text, ctx)
            return super().parse_args(ctx, [*options, "--", *texts, *after])
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            message = f"{error.format_message()} A text that begins with a dash stands after `--`."
            raise click.UsageError(message, ctx) from error

    def _sort(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str], list[str]]:
        """Options with their values, texts, and the texts after `--`, which are taken as they are."""
        known = {
            name: option
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }
        options: list[str] = []
        texts: list[str] = []
        words = iter(args)
        for word in words:
            if word == "--":
                break
            if not _OPTION.fullmatch(word):
                texts.append(word)
                continue
            name, is_equal, _ = word.partition("=")
            if not word.startswith("--") and word not in known:
                # click would take its first letter for an option, and the rest for others.
                raise click.NoSuchOption(word, ctx=ctx)
            options.append(word)
            option = known.get(name)
            if option is not None and not is_equal and not (option.is_flag or option.count):
                options += [value for value in [next(words, None)] if value is not None]
        return options, texts, list(words)


def _check_is_no_file(text: str, ctx: click.Context) -> None:
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):
        # Too long for a name, or with a NUL.
        return
    if is_file:
        raise click.UsageError(
            f"{text!r} is a file, and would be translated as a text. What is in it is translated by "
            f"`dragoman translate-file ... {text} OUTPUT` or `dragoman translate ... < {text}`, its name "
            "where it stands after `--`.",
            ctx,
        )


SECTIONS = {
    "Serve and call": ("serve", "translate", "translate-file", "models", "align-texts", "keys", "doctor"),
    "Get and train models": ("get", "corpora", "new-recipe", "train", "adapt", "average", "export"),
    "Measure": ("evaluate", "record-quality", "load-test"),
}
"""Headings of `dragoman --help` and what stands below each; a subcommand that none names is research."""
RESEARCH = "Research: aligners, phrases, attention"


class CommandGroup(click.Group):
    """Subcommands that register as entry points."""

    abandons_threads = False
    """Whether the subcommand that was loaded leaves threads at work for which nobody waits."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(entry_points(group="dragoman.commands").names)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the subcommand. Raises UsageError that proposes the names most like an unknown one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            similar = difflib.get_close_matches(args[0], self.list_commands(ctx))
            if similar and "Did you mean" not in error.message:
                proposal = " or ".join(similar)
                raise click.UsageError(f"{error.message} Did you mean {proposal}?", ctx) from error
            raise

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads a subcommand. Raises ClickException where its extra is not installed."""
        entry_point = _entry_point(cmd_name)
        if entry_point is None:
            return None
        command = load(entry_point, f"`dragoman {cmd_name}`")
        assert isinstance(command, click.Command)
        self.abandons_threads = getattr(command, "abandons_threads", False)
        # Blocked since the start, for a command that does more at SIGHUP than to end.
        if not getattr(command, "takes_hangup", False):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the subcommands by section, without loading them."""
        found = {entry_point.name: entry_point for entry_point in entry_points(group="dragoman.commands")}
        placed = {name for names in SECTIONS.values() for name in names}
        sections = {**SECTIONS, RESEARCH: sorted(found.keys() - placed)}
        width = max(map(len, found), default=0)
        for heading, names in sections.items():
            rows = [(name.ljust(width), _summary(found[name])) for name in names if name in found]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        """Runs the subcommand. What it raises becomes one line and an exit code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(130)
        except Exception as error:
            if ctx.params["debug"]:
                raise
            entry_point = _entry_point(ctx.invoked_subcommand or "")
            if isinstance(error, ModuleNotFoundError) and entry_point is not None:
                raise missing_extra(f"`dragoman {entry_point.name}`", entry_point, error) from error
            raise Failure(error) from error


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, envvar="DRAGOMAN_DEBUG", help="Show the traceback of an error.")
@click.version_option(package_name="dragoman", prog_name="dragoman")
def main(debug: bool) -> None:
    """Self-hosted translation: train, export, serve, translate.

    \b
    A server, and a translation by it:
      dragoman serve
      dragoman translate --from de --to en "Guten Morgen." "Wie geht es dir?"
      dragoman translate --from de --to en --n-best 3 --alignments "Guten Morgen."
    \b
    A file, line by line; the same command goes on where it was stopped:
      dragoman translate-file --from de --to en corpus.de.gz corpus.en.gz
    \b
    A model of your own:
      dragoman new-recipe our.de our.en --minutes 30
      dragoman train data/de-en/recipe.toml
      dragoman export runs/de-en/best.safetensors --out models/de-en/3

    `dragoman COMMAND --help` says more about each. Completion by Tab, for bash (zsh and fish alike):
    eval "$(_DRAGOMAN_COMPLETE=bash_source dragoman)"
    """
    # A terminal that cannot show a character gets its number, not an error.
    for stream in (sys.stdout, sys.stderr):
        # None where the shell closed it.
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _entry_point(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group="dragoman.commands", name=name)), None)


def _summary(entry_point: EntryPoint) -> str:
    """First line of the command's docstring, read from the source: importing it may need its extra."""
    try:
        spec = importlib.util.find_spec(entry_point.module)
    except ModuleNotFoundError:
        return "Not installed."
    if spec is None or spec.origin is None:
        return ""
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point.attr:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""

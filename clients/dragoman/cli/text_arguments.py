"""The words of a command line whose arguments are texts: a text may begin with a dash, a file is none."""

import re
from pathlib import Path

import click

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

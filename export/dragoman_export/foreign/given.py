"""The options that a model from elsewhere was read with, as its card repeats them."""

import shlex
from pathlib import Path


def command_line(**given: str | Path | None) -> str:
    """Those that are given, by their names, with a space before each; of a file its name alone, as the folder
    that it was in is nobody else's.
    """
    texts = {name: value.name if isinstance(value, Path) else value for name, value in given.items()}
    return "".join(f" --{name.replace('_', '-')} {shlex.quote(text)}" for name, text in texts.items() if text)

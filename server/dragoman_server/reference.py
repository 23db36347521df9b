"""The page of a server's options, docs/reference/server.md, written from the configuration's own docstrings.

`python -m dragoman_server.reference > docs/reference/server.md`
"""

from itertools import groupby
from pathlib import Path

from dragoman_server.cli import PREFIX
from dragoman_server.config import ServerConfig
from dragoman_server.options import Option, options

HEAD = f"""# Options of the server

`dragoman serve` takes these options. Each is an environment variable too: `--max-queue` is
`{PREFIX}_MAX_QUEUE`.
How a server is run is told in [operations.md](../operate/operations.md).

This page is written by `python -m dragoman_server.reference > docs/reference/server.md`.
"""


def reference() -> str:
    """Every option with its values, default and meaning, as Markdown."""
    parts = [HEAD]
    for heading, group in groupby(options(ServerConfig), key=lambda option: option.heading):
        parts.append(f"## {heading}\n\n| option | values | default | |\n| --- | --- | --- | --- |")
        parts += [*map(_row, group), ""]
    return "\n".join(parts)


def _row(option: Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in option.flags)
    return (
        f"| {flags} | {_values(option)} | {_default(option)} | {option.meaning.replace('|', chr(92) + '|')} |"
    )


def _values(option: Option) -> str:
    if option.values:
        return ", ".join(f"`{value}`" for value in option.values)
    setting = option.setting
    seconds = "seconds" if option.name.endswith("_seconds") else "number"
    words = {int: "whole number", float: seconds, bool: "", Path: "path"}
    bounds = [
        f"{name} {bound}"
        for name, bound in (("above", setting.above), ("from", setting.at_least), ("to", setting.at_most))
        if bound is not None
    ]
    return " ".join([words.get(option.kind, "text"), *bounds])


def _default(option: Option) -> str:
    if option.kind is bool:
        return f"`{option.flags[0 if option.default else 1]}`"
    if option.default is None or option.default == ():
        return option.setting.when_none or "none"
    return f"`{option.default}`"


if __name__ == "__main__":
    print(reference(), end="")

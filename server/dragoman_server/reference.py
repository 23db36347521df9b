"""The page of a server's options, docs/server.md, written from the configuration's own docstrings.

`python -m dragoman_server.reference > docs/server.md`
"""

import dataclasses
from pathlib import Path

from dragoman_server.cli import PREFIX
from dragoman_server.config import ServerConfig
from dragoman_server.options import Option, options

HEAD = f"""# Options of the server

`dragoman serve` takes these options. Each is an environment variable too: `--max-queue` is
`{PREFIX}_MAX_QUEUE`.
How a server is run is told in [operations.md](operations.md).

This page is written by `python -m dragoman_server.reference > docs/server.md`.
"""
TITLES = {
    (): "Where and what",
    ("limits",): "What one caller may ask for",
    ("engine",): "How each model runs",
}


def reference() -> str:
    """Every option with its values, default and meaning, as Markdown."""
    parts = [HEAD]
    for path, title in TITLES.items():
        parts.append(f"## {title}\n\n| option | values | default | |\n| --- | --- | --- | --- |")
        parts += [_row(each) for each in options(ServerConfig) if each.path == path]
        parts.append("")
    return "\n".join(parts)


def _row(each: Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in each.flags)
    return f"| {flags} | {_values(each)} | {_default(each)} | {each.meaning.replace('|', chr(92) + '|')} |"


def _values(each: Option) -> str:
    if each.values:
        return ", ".join(f"`{value}`" for value in each.values)
    setting = each.setting
    seconds = "seconds" if each.name.endswith("_seconds") else "number"
    words = {int: "whole number", float: seconds, bool: "", Path: "path"}
    bounds = [
        f"{name} {bound}"
        for name, bound in (("above", setting.above), ("from", setting.at_least), ("to", setting.at_most))
        if bound is not None
    ]
    return " ".join([words.get(each.kind, "text"), *bounds])


def _default(each: Option) -> str:
    if each.default is dataclasses.MISSING:
        return "must be given"
    if each.kind is bool:
        return f"`{each.flags[0 if each.default else 1]}`"
    if each.default is None or each.default == ():
        return each.setting.when_none or "none"
    return f"`{each.default}`"


if __name__ == "__main__":
    print(reference(), end="")

"""Words and strings against the translations that count as right, and outputs of several models mixed."""

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import Row

References = Mapping[str, Sequence[str]]
"""Texts with the translations that count as right."""
_STOP = re.compile(r"[.!?]$")


def read_words(path: Path) -> References:
    """A word a line, a tab, and its translations between bars."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return {word: translations.split("|") for word, translations in lines}


def read_strings(path: Path) -> References:
    """A string a line, and after tabs its translations, as `dragoman corpora` writes ui-heldout.tsv."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return {text: translations for text, *translations in lines}


def judge(name: str, references: References, outputs: Sequence[str]) -> Row:
    """How many outputs are one of their references, and how many are but for case and a full stop."""
    pairs = list(zip(references.items(), outputs, strict=True))
    right = sum(output in accepted for (_, accepted), output in pairs)
    loosely = sum(_bare(output) in map(_bare, accepted) for (_, accepted), output in pairs)
    stops = sum(
        bool(_STOP.search(output)) and not any(map(_STOP.search, (text, *accepted)))
        for (text, accepted), output in pairs
    )
    shares = {
        key: number / len(pairs) for key, number in (("right", right), ("loosely", loosely), ("stops", stops))
    }
    return {"texts": name, "count": len(pairs), **shares}


def mix(
    texts: Sequence[str], outputs: Mapping[str, Sequence[str]], seed: int
) -> tuple[list[str], list[list[str]]]:
    """Lines to judge without knowing whose an output is, and whose they are, in the same order."""
    generator = random.Random(seed)
    lines, keys = [], []
    for number, text in enumerate(texts):
        names = sorted(outputs)
        generator.shuffle(names)
        lines += [
            f"{number + 1}. {text}",
            *(f"   {'abcdefgh'[n]}: {outputs[name][number]}" for n, name in enumerate(names)),
        ]
        keys.append(names)
    return lines, keys


def _bare(text: str) -> str:
    return text.rstrip(" .!").casefold()

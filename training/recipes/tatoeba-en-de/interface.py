"""Interface strings and documentation, as a translation service meets them and Tatoeba has none.

    python training/recipes/tatoeba-en-de/interface.py data/interface data/tatoeba-de-en

The first folder has a folder for each source below, with English and German line by line in en-de.en and
en-de.de; the second has val.de and val.en. It writes interface.en and interface.de to the second folder.

The service translates with words in place of placeholders and code, and without tags. So does this: a
placeholder becomes the same name or number on both sides, tags are taken off, and a link is its text. Pairs
whose sides disagree about them are left out, and so are long ones, shortcuts ("&File"), a second translation
of the same string, and whatever has a side of a validation pair. The same files give the same pairs.
"""

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

Pair = tuple[str, str]

SOURCES = {
    "ui-android": 6_000,
    "ui-wikipedia": 6_000,
    "ui-wagtail": 6_000,
    "ui-windows": 6_000,
    "ui-id-editor": 6_000,
    "ui-lighthouse": 6_000,
    "docs-tldr": 6_000,
    "docs-react": 6_000,
    "docs-opensource-guide": 6_000,
    "ui-dotnet": 3_000,
    "ui-godot": 2_500,
}
"""Folders, and the most pairs taken of each: the last two would outweigh all others."""
MAX_CHARACTERS = 140
NAMES = (
    "Boston Anna Paris John Berlin Mary Facebook London Peter Google Bob Tom Hamburg Julia Wien Laura".split()  # noqa: SIM905
)

_COUNT = r"%(?:\d+\$)?d|%\(\w*(?:count|num|total)\w*\)[ds]|\{(?:count|num|n)\}"
_PLACEHOLDER = re.compile(rf"`[^`]+`|\{{\{{[^{{}}]+\}}\}}|{_COUNT}|%(?:\d+\$)?[s@]|%\(\w+\)[sd]|\{{[\w.]*\}}")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_EMPHASIS = re.compile(r"\*\*?([^*]+)\*\*?")
_LABEL = re.compile(r"^(?:[A-Z]{2,}\d+|description|title): ")
_LEFT_OVER = re.compile(r'[\\<>{}`|]|""|[&_]\w|\w_|%\w|\w\(\)|https?:|\.\.\.[a-z]|\*')


def make_pairs(pairs: list[Pair], generator: random.Random) -> Iterator[Pair]:
    """What is of use of a source's pairs, as the service would have the model translate it."""
    for source, target in pairs:
        pair = fill(plain(source), plain(target), generator)
        if pair is None or max(map(len, pair)) > MAX_CHARACTERS or any(map(_LEFT_OVER.search, pair)):
            continue
        if pair[0].casefold() != pair[1].casefold() and all(map(str.strip, pair)):
            yield pair


def plain(text: str) -> str:
    """The text without tags, emphasis, links' targets and the code of a message."""
    for pattern, kept in ((_LABEL, ""), (_LINK, r"\1"), (_TAG, ""), (_EMPHASIS, r"\1")):
        text = pattern.sub(kept, text)
    return " ".join(text.split())


def fill(source: str, target: str, generator: random.Random) -> Pair | None:
    """The pair with names and numbers for its placeholders; None where the sides have not the same ones."""
    found = _PLACEHOLDER.findall(source)
    if sorted(found) != sorted(_PLACEHOLDER.findall(target)) or len(set(found)) < len(found):
        return None
    names = generator.sample(NAMES, len(found)) if len(found) <= 3 else None
    if names is None or any(name in source or name in target for name in names):
        return None
    filled = {
        placeholder: str(generator.randint(11, 99)) if re.fullmatch(_COUNT, placeholder) else name
        for placeholder, name in zip(found, names, strict=True)
    }
    source, target = (_PLACEHOLDER.sub(lambda match: filled[match[0]], side) for side in (source, target))
    return source, target


def read_lines(path: Path) -> list[str]:
    """The lines of a file, without their ends."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def main(folder: Path, data: Path) -> None:
    """Writes interface.{en,de} beside val.{de,en}."""
    seen = {line for side in ("de", "en") for line in read_lines(data / f"val.{side}")}
    chosen: list[Pair] = []
    for name, most in SOURCES.items():
        generator = random.Random(name)
        sides = [read_lines(folder / name / f"en-de.{side}") for side in ("en", "de")]
        of_source: list[Pair] = []
        for pair in make_pairs(list(zip(*sides, strict=True)), generator):
            if seen.isdisjoint(pair):
                of_source.append(pair)
                # Of one string there are often several translations, by those who did not know of each other.
                seen.add(pair[0])
        chosen += generator.sample(of_source, min(most, len(of_source)))
    for side, lines in zip(("en", "de"), zip(*chosen, strict=True), strict=True):
        (data / f"interface.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(chosen):,} pairs in {data}/interface.en and interface.de")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""The corpora that `dragoman corpora` reads: where each lies, how it is read, and what it asks for."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman_training.corpora.cleaning import Pair
from dragoman_training.data.corpus import CorpusError
from dragoman_training.data.files import read_lines
from dragoman_training.data.files import read_pairs as read_pairs_of


@dataclass(frozen=True, kw_only=True)
class Source:
    """A corpus of pairs."""

    name: str
    """As the report calls it."""
    files: tuple[str, ...]
    """Below the data's folder, with `{other}` for the language that is not English: a tab-separated file with
    English first, or a file for each language that ends in `{side}`. Each that there is is read."""
    short_times: int = 1
    """How many times pairs of at most four words are written."""
    has_paragraphs: bool = False
    """Whether lines hold several sentences, which are parted."""
    is_tokenized: bool = False
    """Whether spaces stand around punctuation."""
    is_raw: bool = False
    """Whether pairs are taken as they are."""
    only_source: bool = False
    """Whether the other language's side was written by a machine and is never translated into."""
    is_optional_target: bool = False
    """Whether the other language's side is translated into where that is asked for alone (`--with`)."""
    is_interface: bool = False
    """Whether some short strings are held out, to measure with."""
    licence: str
    credit: str


SOURCES = (
    Source(
        name="tatoeba",
        files=("tatoeba-{other}-en/train.{side}", "tatoeba-en-{other}/train.{side}"),
        is_raw=True,
        licence="CC BY 2.0",
        credit="www.manythings.org/anki and tatoeba.org",
    ),
    *(
        Source(
            name=name,
            files=(f"more/{name}/en-{{other}}.{{side}}",),
            short_times=3,
            is_interface=True,
            licence=licence,
            credit=credit,
        )
        for name, licence, credit in (
            ("ui-android", "Apache-2.0", "Android Open Source Project and LineageOS"),
            ("ui-wikipedia", "Apache-2.0", "Wikimedia Foundation and translatewiki.net"),
            ("ui-wagtail", "BSD-3-Clause", "Torchbox and Wagtail translators"),
            ("ui-windows", "MIT", "Microsoft Corporation"),
            ("ui-id-editor", "ISC", "iD contributors and OpenStreetMap translators"),
            ("ui-lighthouse", "Apache-2.0", "The Lighthouse Authors"),
            ("ui-dotnet", "MIT", ".NET Foundation and contributors"),
            ("ui-godot", "MIT", "Godot Engine contributors and translators"),
        )
    ),
    Source(
        name="home-assistant",
        files=("general/home-assistant.en-{other}.tsv.xz",),
        short_times=2,
        licence="Apache-2.0",
        credit="Home Assistant contributors",
    ),
    Source(
        name="cldr",
        files=("general/cldr.en-{other}.tsv.xz",),
        short_times=2,
        licence="Unicode License",
        credit="Unicode CLDR",
    ),
    Source(
        name="docs-opensource-guide",
        files=("more/docs-opensource-guide/en-{other}.{side}",),
        has_paragraphs=True,
        licence="CC BY 4.0",
        credit="content based on github.com/github/opensource.guide used under the CC-BY-4.0 license",
    ),
    Source(
        name="docs-react",
        files=("more/docs-react/en-{other}.{side}",),
        has_paragraphs=True,
        licence="CC BY 4.0",
        credit="Meta Platforms and react.dev translators",
    ),
    Source(
        name="docs-tldr",
        files=("more/docs-tldr/en-{other}.{side}",),
        licence="CC BY 4.0",
        credit="tldr-pages team and contributors",
    ),
    Source(
        name="docs-gnome",
        files=("more/docs-gnome/en-{other}.{side}",),
        has_paragraphs=True,
        licence="CC BY-SA 3.0",
        credit="GNOME documentation and translation projects",
    ),
    Source(
        name="wiki-mlqe-pe",
        files=("more/wiki-mlqe-pe/train.en-{other}.{side}", "more/wiki-mlqe-pe/dev.en-{other}.{side}"),
        is_tokenized=True,
        licence="CC0 1.0; Wikipedia CC BY-SA 3.0",
        credit="MLQE-PE (Fomicheva et al. 2020), Wikipedia",
    ),
    Source(
        name="libreoffice-help",
        files=("general/libreoffice-help.en-{other}.tsv.xz",),
        has_paragraphs=True,
        licence="MPL-2.0",
        credit="LibreOffice contributors",
    ),
    Source(
        name="microsoft-docs",
        files=("general/microsoft-docs.en-{other}.human.tsv.xz",),
        licence="CC BY 4.0",
        credit="Microsoft and contributors",
    ),
    Source(
        name="mdn",
        files=("general/mdn.en-{other}.tsv.xz",),
        is_optional_target=True,
        licence="CC BY-SA 2.5",
        credit="MDN contributors",
    ),
    Source(
        name="microsoft-docs-machine",
        files=("general/microsoft-docs.en-{other}.machine.tsv.xz",),
        only_source=True,
        licence="CC BY 4.0",
        credit="Microsoft and contributors",
    ),
)
"""The cleanest first: of equal pairs the first is used."""
DICTIONARIES = ("general/wiktionary.en-{other}.txt.xz",)
TEST_SETS = (
    "tatoeba-{other}-en/val.*",
    "tatoeba-en-{other}/val.*",
    "multi30k/val.*",
    "multi30k/test2016.*",
    "tests/ud-pud/pud.*",
    "tests/tico19/en-*.*",
    "more/test-mlqe-pe/en-{other}.*",
    "hard-texts/*.jsonl",
    "alignment/*/*.en",
    "alignment/*/*.{other}",
)
"""Files that no training pair may have a line of."""


def read_pairs(source: Source, folder: Path, language: str) -> Iterator[Pair]:
    """The pairs of a corpus as they lie in its files; none where it has no file for the language."""
    for pattern in source.files:
        names = dict.fromkeys(pattern.format(other=language, side=side) for side in ("en", language))
        paths = [path for name in names if (path := _existing(folder / name))]
        if len(paths) < len(names):
            continue
        if len(paths) == 2:
            yield from read_pairs_of(*paths)
            continue
        for number, line in enumerate(read_lines(paths[0]), start=1):
            english, tab, other = line.partition("\t")
            if not tab:
                raise CorpusError(f"{paths[0]}, line {number}, has no tab between its sides: {line[:80]!r}")
            yield english, other


def _existing(path: Path) -> Path | None:
    return next((one for one in (path, path.with_name(f"{path.name}.gz")) if one.exists()), None)

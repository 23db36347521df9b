"""Glossaries of the server: files of terms that requests may name, in as many languages as each has.

A file is NAME.tsv. Its first line has language codes, one for each column; every other line an entry, with
the word of each language or nothing where there is none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_bundle.checked_files import read_regular

from dragoman_server.errors import ServerFileError
from dragoman_server.models.language_lookup import distance
from dragoman_server.text.find.terms import Term, TermIndex

FOLDER = "glossaries"
"""Where they are within the models folder."""
MAX_FILE_BYTES = 1 << 24
"""Most bytes of a file: some 300,000 entries."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_SUFFIX = ".tsv"


@dataclass(frozen=True, kw_only=True)
class Glossary:
    """The terms of one file."""

    name: str
    languages: tuple[str, ...]
    """One for each column."""
    entries: tuple[tuple[str, ...], ...]
    """The terms by column; "" where a language has none."""
    changed_at: float
    """When its file was last changed, in seconds since 1970."""
    _indexes: dict[tuple[int, int, bool, bool], TermIndex] = field(
        default_factory=dict, repr=False, compare=False
    )

    def index(
        self,
        source_language: str,
        target_language: str,
        is_inflected: bool = False,
        is_as_written: bool = False,
    ) -> TermIndex | None:
        """The index that finds its terms, as TermIndex says; None where it does not have both languages."""
        source, target = self._column(source_language), self._column(target_language)
        if source is None or target is None or source == target:
            return None
        key = source, target, is_inflected, is_as_written
        if key not in self._indexes:
            pairs = ((entry[source], entry[target]) for entry in self.entries)
            terms = [Term(source=word, target=other) for word, other in pairs if word and other]
            stemmed_in = source_language if is_inflected else ""
            self._indexes[key] = TermIndex(terms, stemmed_in=stemmed_in, is_as_written=is_as_written)
        return self._indexes[key]

    def _column(self, language: str) -> int | None:
        distances = (distance(language, has) for has in self.languages)
        found = [(how_far, rank) for rank, how_far in enumerate(distances) if how_far is not None]
        return min(found)[1] if found else None


def read_glossaries(folder: Path) -> dict[str, Glossary]:
    """All of a folder, by name; none where there is no such folder.

    Raises ServerFileError, naming the file and the line.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ServerFileError(f"{folder} can't be read: {error.strerror or error}") from error
    return {path.stem: read_glossary(path) for path in paths}


def read_glossary(path: Path) -> Glossary:
    if not _NAME.fullmatch(path.stem):
        raise ServerFileError(f"{path}: a glossary's name has letters, digits, dots, underscores and hyphens")
    try:
        changed_at = path.stat().st_mtime
        lines = read_regular(path, max_bytes=MAX_FILE_BYTES).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise ServerFileError(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ServerFileError(f"{path} can't be read: {error}") from error
    languages = tuple(cell.strip() for cell in (lines[0] if lines else "").split("\t"))
    if len(languages) < 2 or not all(languages) or len(set(languages)) < len(languages):
        rule = "must be two or more languages with tabs between them, such as de and en"
        raise ServerFileError(f"{path}, line 1: {rule}")
    entries: list[tuple[str, ...]] = []
    seen: dict[tuple[int, str], int] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = tuple(cell.strip() for cell in line.split("\t"))
        if len(cells) != len(languages):
            columns = f"{len(cells)} columns; the first line has {len(languages)}"
            raise ServerFileError(f"{path}, line {number}: {columns}")
        if sum(map(bool, cells)) < 2:
            raise ServerFileError(f"{path}, line {number}: has a term in fewer than two languages")
        for column, cell in enumerate(cells):
            first = seen.setdefault((column, cell.casefold()), number)
            # As a target a word may stand for several.
            if cell and first != number and column == 0:
                twice = f"{cell!r} stands in line {first} already; leave one"
                raise ServerFileError(f"{path}, line {number}: {twice}")
        entries.append(cells)
    return Glossary(name=path.stem, languages=languages, entries=tuple(entries), changed_at=changed_at)


class Glossaries:
    """Those that are in use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.by_name: Mapping[str, Glossary] = {}

    def read(self) -> dict[str, Glossary]:
        """Reads the folder again, and uses nothing of it yet. Raises ServerFileError."""
        return read_glossaries(self._folder)

    def use(self, found: Mapping[str, Glossary]) -> None:
        """Replaces them from now on."""
        self.by_name = found

"""Texts that no training pair may have: test sets, and the interface strings and pairs held out here."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from dragoman_training.corpora.cleaning import Pair, key_of, num_words, plain
from dragoman_training.corpora.sources import paths_of, read_pairs, sources
from dragoman_training.corpora.words import draw
from dragoman_training.data.files import read_lines

SHARE_OF_STRINGS = 0.1
"""Of the interface strings of at most `MAX_STRING_WORDS` words, by their English side."""
MAX_STRING_WORDS = 4


def test_set_keys(folder: Path, language: str, more: Iterable[Path]) -> set[str]:
    """The keys of all lines of the test sets there are, and of all fields of further files."""
    keys: set[str] = set()
    for path in paths_of("test_sets", folder, language):
        if path.suffix == ".jsonl":
            keys.update(key_of(json.loads(line)["text"]) for line in read_lines(path))
        else:
            keys.update(map(key_of, read_lines(path)))
    for path in more:
        keys.update(key_of(field) for line in read_lines(path) for field in re.split(r"[\t|]", line))
    keys.discard("")
    return keys


def held_out_strings(folder: Path, language: str) -> list[Pair]:
    """Short interface strings without markup or placeholders, chosen by their English side."""
    chosen: dict[Pair, None] = {}
    for source in sources():
        if not source.is_interface:
            continue
        for english, other in read_pairs(source, folder, language):
            if num_words(english) > MAX_STRING_WORDS or draw(key_of(english), "held out") >= SHARE_OF_STRINGS:
                continue
            sides = english, other
            has_letters = all(re.search(r"[^\W\d_]", side) for side in sides)
            has_marks = any(re.search(r"[%{}<>&_`\\$]", side) for side in sides)
            if has_letters and not has_marks and sides == (plain(english), plain(other)):
                chosen[sides] = None
    return list(chosen)


def references(strings: Iterable[Pair], *, into_english: bool) -> dict[str, list[str]]:
    """All translations of each string of at most `MAX_STRING_WORDS` words."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for english, other in strings:
        source, target = (other, english) if into_english else (english, other)
        if num_words(source) <= MAX_STRING_WORDS:
            found[source].append(target)
    return found

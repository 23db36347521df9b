"""The corpora of a pair of languages, read and cleaned once for both directions; and texts that are held out.

No training pair may have a text of a test set, nor the interface strings and pairs that are held out.
"""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_training.corpora import cleaning, dictionary, variants
from dragoman_training.corpora.cleaning import key_of, num_words, plain
from dragoman_training.corpora.tables import Pair, Source, draw, paths_of, read_pairs, sources
from dragoman_training.data.corpus import CorpusError
from dragoman_training.data.files import read_lines
from dragoman_training.time_left import Say

MAX_REPEATS = 3
"""Pairs with the same side, but for everyday sentences and words."""
MAX_MACHINE_PAIRS = 300_000
VALIDATED_SOURCE = "microsoft-docs"
SHARE_VALIDATION = 0.0012
"""The share of that source's pairs that are held out to validate on."""
IN_TEST_SET = "in a test set"
HELD_OUT = "held out"
NO_SENTENCE = "of a machine: no plain sentence"
TORN = "of a machine: torn apart"
SPARE = "of a machine: more than are used"
_MARKUP = re.compile(r"[`*_<>{}\[\]\\|=~]|\w\(|//|::")


@dataclass(kw_only=True)
class Kept:
    """The pairs of one kind, and what was left out of it."""

    pairs: list[Pair] = field(default_factory=list)
    num_read: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


class Prepared:
    """The pairs of each corpus, and what is held out of them."""

    def __init__(
        self, folder: Path, language: str, *, without: set[str], leave_out: Iterable[Path], report: Say
    ) -> None:
        """Reads the corpora of English and `language`. Raises CorpusError where `folder` has none."""
        self.language = language
        self.folder = folder
        self.credits: dict[str, str] = {}
        self.strings = held_out_strings(folder, language)
        """Interface strings to measure with."""
        self.validation: list[Pair] = []
        """Pairs of documentation to validate on."""
        self.kept: dict[str, Kept] = {}
        self._test_keys = test_set_keys(folder, language, leave_out)
        self._held_keys = {key_of(side) for pair in self.strings for side in pair}
        began = time.process_time()
        for source in sources():
            if source.name in without:
                continue
            kept = Kept()
            pairs = self._read(source, kept)
            if not source.is_raw:
                pairs = cleaning.without_repeats(pairs, MAX_REPEATS, kept.left_out)
            kept.pairs = _cleanest(pairs, kept.left_out) if source.only_source else list(pairs)
            if kept.num_read:
                self.kept[source.name] = kept
                self.credits[source.name] = f"{source.credit} ({source.licence})"
                used, seconds = f"{len(kept.pairs):,} of {kept.num_read:,} pairs", time.process_time() - began
                report(f"{source.name}: {used} ({seconds:.0f} s so far)")
        if not self.kept:
            where = "docs/guide/corpora.md says which are read"
            raise CorpusError(f"{folder} has no corpora of en and {language}: {where}")
        for kept in self.kept.values():
            kept.pairs = list(self.allowed(kept.pairs, kept.left_out))
        self.entries: list[dictionary.Entry] = []
        """Those of the dictionaries."""
        for path in paths_of("dictionaries", folder, language) if "wiktionary" not in without else ():
            self.entries += dictionary.read_entries(read_lines(path))
            self.credits["wiktionary"] = "Wiktionary, Matthias Buchmeier (CC BY-SA 3.0)"
        names = "tatoeba", VALIDATED_SOURCE
        texts = (pair for name in names for pair in self.kept.get(name, Kept()).pairs)
        self.counts = dictionary.count(self.entries, texts)
        known = {word for entry in self.entries for word in (entry.english, entry.other)}
        prose = (line for path in paths_of("prose", folder, language) for line in read_lines(path))
        self.names = variants.find_names(prose, known)
        """The names of people and places."""

    def allowed(self, pairs: Iterable[Pair], left_out: Counter[str]) -> Iterator[Pair]:
        """The pairs without a side that stands in a test set or is held out."""
        for pair in pairs:
            keys = key_of(pair[0]), key_of(pair[1])
            if not self._test_keys.isdisjoint(keys):
                left_out[IN_TEST_SET] += 1
            elif not self._held_keys.isdisjoint(keys):
                left_out[HELD_OUT] += 1
            elif all(keys):
                yield pair

    def _read(self, source: Source, kept: Kept) -> Iterator[Pair]:
        for pair in read_pairs(source, self.folder, self.language):
            kept.num_read += 1
            if source.is_raw:
                yield pair
                continue
            if (source.is_optional_target or source.only_source) and _MARKUP.search(pair[0]):
                kept.left_out[cleaning.CODE] += 1
                continue
            if source.only_source and not (pair[0].endswith(".") and 4 <= num_words(pair[0]) <= 40):
                kept.left_out[NO_SENTENCE] += 1
                continue
            if source.is_tokenized:
                pair = cleaning.detokenized(pair[0]), cleaning.detokenized(pair[1])
            parts = list(cleaning.sentences(pair)) if source.has_paragraphs else [pair]
            if not parts:
                kept.left_out["with another number of sentences"] += 1
            for part in parts:
                found = cleaning.clean(part, self.language)
                share = SHARE_VALIDATION if source.name == VALIDATED_SOURCE else 0.0
                if isinstance(found, str):
                    kept.left_out[found] += 1
                elif share and draw(key_of(found[0]), "validation") < share:
                    self.validation.append(found)
                    self._held_keys.update(map(key_of, found))
                    kept.left_out[HELD_OUT] += 1
                else:
                    yield found


def _cleanest(pairs: Iterable[Pair], left_out: Counter[str]) -> list[Pair]:
    """The machine's sentences without signs of what it does badly, each English side once, and not too many.

    Which of too many does not depend on their order.
    """
    chosen: dict[str, Pair] = {}
    for english, other in pairs:
        if re.search(r" [-.,;:]|- ", other) or cleaning.is_torn(other, english):
            left_out[TORN] += 1
        else:
            chosen.setdefault(key_of(english), (english, other))
    best = sorted(chosen.values(), key=lambda pair: draw(pair[0], "machine"))
    left_out[SPARE] += max(0, len(best) - MAX_MACHINE_PAIRS)
    return best[:MAX_MACHINE_PAIRS]


SHARE_OF_STRINGS = 0.1
"""The share of interface strings, by their English side, of at most `MAX_STRING_WORDS` words."""
MAX_STRING_WORDS = 4


def test_set_keys(folder: Path, language: str, more: Iterable[Path]) -> set[str]:
    """The keys of all lines of the test sets there are, and of all fields of further files."""
    keys: set[str] = set()
    for path in paths_of("test_sets", folder, language):
        is_json, lines = path.suffix == ".jsonl", read_lines(path)
        keys.update(key_of(json.loads(line)["text"] if is_json else line) for line in lines)
    for path in more:
        keys.update(key_of(field) for line in read_lines(path) for field in re.split(r"[\t|]", line))
    keys.discard("")
    return keys


def held_out_strings(folder: Path, language: str) -> list[Pair]:
    """Short interface strings without markup or placeholders, chosen by their English side."""
    chosen: dict[Pair, None] = {}
    for source in (one for one in sources() if one.is_interface):
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

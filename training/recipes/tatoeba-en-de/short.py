"""Headings, buttons, greetings, words: a model that has read sentences alone guesses at them.

    python training/recipes/tatoeba-en-de/short.py data/tatoeba-de-en runs/align-en-de

The first folder has train, val and interface.{en,de}; the second an aligner of train.{en,de}, as `dragoman
align train --tokenize --keep-case` leaves it. It writes short.en and short.de to the first folder:

- words and phrases of up to three words, which the aligner links to the same German ones nearly always;
- the headings, buttons and greetings of phrases.tsv, which were written for this model;
- those and short strings of interfaces as English writes titles: "Opening Hours";
- short sentences without their full stop;
- dates as English writes them, "May 5, 2024", alone and in the place of weekdays in sentences.

Nothing is written that has a side of a validation pair. The same files give the same pairs.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dragoman_training.alignment.aligner import Aligner
from dragoman_training.alignment.output.symmetrization import Matrix
from dragoman_training.alignment.saved import load_aligner

Pair = tuple[str, str]

MAX_WORDS = 3
LEAST_TIMES = 3
LEAST_SHARE = {1: 0.35, 2: 0.5, 3: 0.6}
"""By English words: how much of their occurrences the German ones must be, and half as much of theirs."""
PHRASE_TIMES = 6
TITLE_TIMES = 3
NUM_WITHOUT_STOP = 8_000
SMALL_WORDS = frozenset("a an and as at by for from in of on or the to with your our".split())  # noqa: SIM905
CHUNK = 10_000
NUM_DATES = 4_000
DATE_TIMES = 8
"""In how many ways a weekday of a sentence becomes a date."""
WEEKDAYS = {
    "Monday": "Montag",
    "Tuesday": "Dienstag",
    "Wednesday": "Mittwoch",
    "Thursday": "Donnerstag",
    "Friday": "Freitag",
    "Saturday": "Samstag",
    "Sunday": "Sonntag",
}
MONTHS = {
    "January": "Januar",
    "February": "Februar",
    "March": "März",
    "April": "April",
    "May": "Mai",
    "June": "Juni",
    "July": "Juli",
    "August": "August",
    "September": "September",
    "October": "Oktober",
    "November": "November",
    "December": "Dezember",
}


def make_short(
    pairs: list[Pair], interface: list[Pair], phrases: list[Pair], aligner: Aligner, generator: random.Random
) -> Iterator[Pair]:
    """The pairs, in no order worth keeping."""
    for source, target in common_phrases(pairs, aligner):
        yield source, target
        yield capitalized(source), capitalized(target)
    for _ in range(PHRASE_TIMES):
        yield from phrases
    for _ in range(TITLE_TIMES):
        yield from titles(phrases)
    yield from titles(interface)
    short = [pair for pair in pairs if len(pair[0].split()) <= 6 and pair[0][-1] == pair[1][-1] == "."]
    for source, target in generator.sample(short, min(NUM_WITHOUT_STOP, len(short))):
        yield source[:-1], target[:-1]
    yield from dates(pairs, generator)


def dates(pairs: list[Pair], generator: random.Random) -> Iterator[Pair]:
    """Dates alone, and sentences with "on Monday" and "am Montag" that get one in its place."""
    for number in range(NUM_DATES):
        source, target = date(generator)
        day = generator.choice(list(WEEKDAYS))
        yield (source, target) if number % 2 else (f"{day}, {source}", f"{WEEKDAYS[day]}, {target}")
    for source, target in pairs:
        for english, german in WEEKDAYS.items():
            ours, theirs = (
                re.compile(rf"\b(on|On) {english}\b"),
                re.compile(rf"\b([Aa]m) (?:{german}|Sonnabend)\b"),
            )
            if len(ours.findall(source)) == len(theirs.findall(target)) == 1:
                for _ in range(DATE_TIMES):
                    with_day, mit_tag = date(generator)
                    yield ours.sub(rf"\1 {with_day}", source), theirs.sub(rf"\1 {mit_tag}", target)


def date(generator: random.Random) -> Pair:
    """A day of a month, as America or Britain write it, with the year or without."""
    month, day = generator.choice(list(MONTHS)), generator.randint(1, 31)
    year = f"{generator.choice((generator.randint(1800, 2030), generator.randint(1990, 2030)))}"
    source = generator.choice((f"{month} {day}", f"{month} {day}", f"{day} {month}"))
    target = f"{day}. {MONTHS[month]}"
    if generator.random() < 0.5:
        return f"{source}, {year}" if source.startswith(month) else f"{source} {year}", f"{target} {year}"
    return source, target


def common_phrases(pairs: list[Pair], aligner: Aligner) -> list[Pair]:
    """English words with what they nearly always are in German."""
    together: Counter[Pair] = Counter()
    for first in range(0, len(pairs), CHUNK):
        split = aligner.rule.split
        chunk = [(split(source), split(target)) for source, target in pairs[first : first + CHUNK]]
        for (words, others), links in zip(chunk, aligner.align(chunk, "grow-diag-final-and"), strict=True):
            together.update(linked_phrases(words, others, links))
    of_source, of_target = Counter[str](), Counter[str]()
    for (source, target), times in together.items():
        of_source[source] += times
        of_target[target] += times
    chosen: dict[str, str] = {}
    for (source, target), times in together.most_common():
        share = LEAST_SHARE[len(source.split())]
        if times < LEAST_TIMES or source in chosen:
            continue
        if times >= share * of_source[source] and times >= share / 2 * of_target[target]:
            chosen[source] = target
    return [(source, target) for source, target in chosen.items() if source != target]


def linked_phrases(source: Sequence[str], target: Sequence[str], links: Matrix) -> Iterator[Pair]:
    """Runs of words linked to one another alone (Koehn et al. 2003), without a sentence's first word."""
    for first in range(1, len(source)):
        for end in range(first + 1, min(first + MAX_WORDS, len(source)) + 1):
            columns = np.flatnonzero(links[first:end].any(axis=0))
            if not all(map(str.isalpha, source[first:end])) or not len(columns) or columns[0] == 0:
                continue
            begin, stop = int(columns[0]), int(columns[-1]) + 1
            rows = np.flatnonzero(links[:, begin:stop].any(axis=1))
            if rows[0] < first or rows[-1] >= end or stop - begin > MAX_WORDS:
                continue
            if links[first].any() and links[end - 1].any() and all(map(str.isalpha, target[begin:stop])):
                yield " ".join(source[first:end]), " ".join(target[begin:stop])


def titles(pairs: list[Pair]) -> Iterator[Pair]:
    """Those of up to five words and without a sentence's end, with English capitals of titles."""
    for source, target in pairs:
        if len(source.split()) <= 5 and re.fullmatch(r"[\w' -]+", source):
            title = " ".join(
                word if number and word in SMALL_WORDS else capitalized(word)
                for number, word in enumerate(source.split())
            )
            if title != source:
                yield title, capitalized(target)


def capitalized(text: str) -> str:
    """With a capital at the beginning, and all else as it is."""
    return text[:1].upper() + text[1:]


def read_lines(path: Path) -> list[str]:
    """The lines of a file, without their ends."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def main(data: Path, aligner: Path) -> None:
    """Writes short.{en,de} beside train, val and interface."""
    train, validation, interface = (
        [read_lines(data / f"{name}.{side}") for side in ("en", "de")]
        for name in ("train", "val", "interface")
    )
    phrases = [tuple(line.split("\t")) for line in read_lines(Path(__file__).parent / "phrases.tsv")]
    kept_apart = {line for side in validation for line in side}
    pairs = [
        pair
        for pair in make_short(
            list(zip(*train, strict=True)),
            list(zip(*interface, strict=True)),
            [(source, target) for source, target in phrases],
            load_aligner(aligner),
            random.Random(1),
        )
        if kept_apart.isdisjoint(pair)
    ]
    for side, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (data / f"short.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(pairs):,} pairs in {data}/short.en and short.de")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

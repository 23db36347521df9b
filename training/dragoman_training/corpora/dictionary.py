"""Dictionary entries as pairs: words and short phrases, with their commonest translation first.

A dictionary lists senses in no order of use. How often a word and a translation meet in pairs of sentences
says which sense is the common one (the Dice coefficient); how often a word is met at all, how common it is.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from dragoman_training.corpora.tables import Pair, draw, pick, words

MAX_WORDS = 4
TIMES = ((300, 6), (50, 4), (8, 2), (0, 1))
"""How many times a word is written that is met at least so often in the corpora."""
SECOND_SHARE = 0.5
"""A second translation is written once where it scores at least this much of the first."""
_ENTRY = re.compile(r"^(?P<word>[^{}()]+?) \{(?P<kind>[^}]*)\}.*? :: (?P<translations>.+)$")
_OTHER_SPELLING = re.compile(r"^([^{}()]+) \{([^}]*)\} SEE: ([^,:]+?) ::\s*$")
_UNUSUAL = re.compile(
    r"[\[(](?:[^\])]*(?:archaic|obsolete|dated|dialect|Swiss|Austria|rare|regional|slang|vulgar|Bavarian|old))[^\])]*[\])]"
)
_ODD = re.compile(r"[\d/;:~♂♀|!?_*]|\.\.|^-|-$")
_REMARK = re.compile(r"\[[^\]]*\]|\([^)]*\)")
_GENDER = re.compile(r"\{([^}]*)\}")
_AN = re.compile(r"(?!eu|once|one|uni|use)[aeiou]|hour|hono|heir")
SEPARABLE = re.compile(
    r"^(?:ab|an|auf|aus|bei|dar|ein|fest|fort|frei|her|hin|los|mit|nach|teil|um|vor|weg|weiter|wieder|zu|zurück|zusammen|durch|über|unter)"
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A word and one translation."""

    english: str
    other: str
    kind: str
    """The part of speech, as the dictionary has it: "n", "v", "adj"."""
    gender: str
    """"m", "f", "n", or "" where there is none or it is a plural."""
    is_other_spelling: bool = False
    """Whether it is read and never written."""


@dataclass(kw_only=True)
class Counts:
    """How often words, and words with translations, are met in pairs of sentences."""

    english: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    together: Counter[Pair] = field(default_factory=Counter)
    phrases: Counter[str] = field(default_factory=Counter)
    """English words after "a" or "an"."""

    def score(self, entry: Entry) -> float:
        """The Dice coefficient of the two."""
        pair = stem(entry.english), stem(entry.other)
        both = self.english[pair[0]] + self.other[pair[1]]
        return 2 * self.together[pair] / both if both else 0.0


def read_entries(lines: Iterable[str]) -> list[Entry]:
    """The entries of a dictionary in Wiktionary's text format, in its order.

    A word that is another spelling, "neighbor" of "neighbour", has the other's translations.
    """
    lines = list(lines)
    entries = list(_read_entries(lines))
    by_word: defaultdict[Pair, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_word[entry.english, entry.kind].append(entry)
    for line in lines:
        if (found := _OTHER_SPELLING.match(line)) and not by_word.get((found[1], found[2])):
            spelt = by_word.get((found[3], found[2]), [])
            entries += [replace(entry, english=found[1], is_other_spelling=True) for entry in spelt]
    return entries


def _read_entries(lines: Iterable[str]) -> Iterator[Entry]:
    for line in lines:
        found = _ENTRY.match(line.strip())
        if not found or "SEE:" in line:
            continue
        translations = _REMARK.sub("", _UNUSUAL.sub("☒", found["translations"]))
        for translation in re.split("[,;]", translations):
            if "☒" in translation:
                continue
            gender = _GENDER.search(translation)
            other = " ".join(_GENDER.sub("", translation).split())
            longest = max(found["word"].count(" "), other.count(" ")) + 1
            if other and longest <= MAX_WORDS and not _ODD.search(found["word"] + other):
                yield Entry(
                    english=found["word"].strip(),
                    other=other,
                    kind=found["kind"],
                    gender=gender[1] if gender and gender[1] in words()["articles"] else "",
                )


def stem(word: str) -> str:
    """The word without its commonest inflections, English or German."""
    word = word.lower().replace("ß", "ss")
    for ending in ("ing", "ern", "est", "en", "er", "es", "em", "ed", "te", "e", "n", "s", "t"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def count(entries: Iterable[Entry], pairs: Iterable[Pair]) -> Counts:
    """How often the entries' words are met in the pairs."""
    counts = Counts()
    translations: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        translations[stem(entry.english)].add(stem(entry.other))
    stems: dict[str, str] = {}
    for english, other in pairs:
        said = [re.findall(r"\w+", side.lower()) for side in (english, other)]
        counts.phrases.update(noun for article, noun in pairwise(said[0]) if article in ("a", "an"))
        sides = [{stems.get(word) or stems.setdefault(word, stem(word)) for word in side} for side in said]
        counts.english.update(sides[0])
        counts.other.update(sides[1])
        for word in sides[0] & translations.keys():
            counts.together.update((word, met) for met in translations[word] & sides[1])
    return counts


def ranked_entries(
    entries: list[Entry], counts: Counts, *, into_english: bool
) -> Iterator[tuple[list[Entry], int]]:
    """The entries of each translated word, the commonest translation first, and how often the word is met."""
    choices: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if not (into_english and entry.is_other_spelling):
            choices[entry.other if into_english else entry.english].append(entry)
    frequency = counts.other if into_english else counts.english
    for word, found in choices.items():
        verbs = {entry.other for entry in found if entry.kind == "v"}
        # The infinitive as a noun, "das Finden", says nothing that the verb does not.
        found = [entry for entry in found if entry.other.islower() or entry.other.lower() not in verbs]
        yield sorted(dict.fromkeys(found), key=counts.score, reverse=True), frequency[stem(word)]


def make_pairs(entries: list[Entry], counts: Counts, language: str, *, into_english: bool) -> Iterator[Pair]:
    """Pairs of the entries, English first; nearly every word that is translated has one translation."""
    for ranked, frequency in ranked_entries(entries, counts, into_english=into_english):
        times = next(times for least, times in TIMES if frequency >= least)
        yield from _forms(ranked[0], times, counts, language, into_english=into_english)
        first = counts.score(ranked[0])
        if first and ranked[1:] and counts.score(ranked[1]) >= SECOND_SHARE * first:
            yield ranked[1].english, ranked[1].other
        if not into_english and ranked[0].kind != "v":
            verb = next((entry for entry in ranked if entry.kind == "v"), None)
            if verb and counts.score(verb):
                yield f"to {verb.english}", verb.other


def _forms(entry: Entry, times: int, counts: Counts, language: str, *, into_english: bool) -> Iterator[Pair]:
    """A word and its translation by themselves, as a heading, and in short phrases that are sure."""
    english, other = entry.english, entry.other
    for _ in range(times):
        yield english, other
    # A German noun has its capital in any case: whether it heads something cannot be seen.
    if entry.kind not in ("n", "prop") or not into_english or language != "de":
        for _ in range((times + 1) // 2):
            yield capitalized(english), capitalized(other)
    if draw(english, "full stop") < 0.1:
        yield f"{capitalized(english)}.", f"{capitalized(other)}."
    if entry.kind == "v" and not into_english:
        for _ in range((times + 1) // 2):
            yield f"to {english}", other
    if language == "de":
        yield from _german_phrases(entry, times, counts, into_english=into_english)


def _german_phrases(entry: Entry, times: int, counts: Counts, *, into_english: bool) -> Iterator[Pair]:
    english, other = entry.english, entry.other
    if " " in english or " " in other:
        return
    num_frames = times // 2 + (draw(english + other, "frame") < 0.3)
    if entry.kind == "n" and entry.gender and english.islower():
        der, ein, mein, kein = words()["articles"][entry.gender]
        yield f"the {english}", f"{der} {other}"
        if counts.phrases[english] < 2 or english.endswith("s"):
            return
        for _ in range(1 + times // 3):
            yield f"{article(english)} {english}", f"{ein} {other}"
        frames = words()["frames"]["noun"]
        inserted = {"der": der, "Der": der.capitalize(), "mein": mein, "kein": kein}
        if into_english and draw(other, "lower case") < 0.3:
            yield english, other.lower()
    elif entry.kind == "v" and other.endswith("n"):
        if not SEPARABLE.match(other):
            yield f"to {english}", f"zu {other}"
        frames, inserted = words()["frames"]["verb"], {}
    elif entry.kind == "adj" and other.islower():
        frames, inserted = words()["frames"]["adjective"], {}
        if into_english and not re.search(r"(?:e[lrn]?|s|hoch|rosa|lila)$", other):
            for ending in ("e", "er", "es", "en")[: 1 + times // 2]:
                yield english, other + ending
    else:
        return
    for number in range(num_frames):
        first, second = pick(frames, english + other, f"frame {number}")
        if first != "That is not a {0}." or not _AN.match(english):
            yield first.format(english), second.format(english, other, **inserted)


def article(noun: str, a: str = "a") -> str:
    """The article "a" or "an" before an English word."""
    return f"{a}n" if _AN.match(noun) else a


def capitalized(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]

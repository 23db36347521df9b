"""Dictionary words within sentences: a word that both sides of a pair have gives way to another of its kind.

A word that is trained on by itself alone is read wrongly in a sentence. Fadaee et al. (2017), "Data
Augmentation for Low-Resource Neural Machine Translation", put rare words in the place of others; here the
dictionary says which words of a pair are translations, and the other word is of the same kind (`Form.kind`).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from dragoman_training.corpora.dictionary import SEPARABLE, Counts, Entry, article, ranked_entries
from dragoman_training.corpora.tables import Pair, draw, stop_words

WEIGHTS = ((300, 4), (50, 8), (8, 10), (1, 6), (0, 1))
"""How often a word is put into sentences beside others, one that is met at least so often in the corpora."""
MAX_WORDS = 14
"""The limit of the sentence's words."""
MIN_LETTERS = 4
"""The limit of the letters of a word that gives way: shorter ones have many senses."""
_ADJECTIVE_ENDINGS = ("e", "en", "er", "es", "em", "")
_WEAK = re.compile(r"(?:e|ent|ant|ist|oge|at|herr|mensch|bär)$")
"""Masculine nouns that end otherwise in the accusative."""
_ODD_ADJECTIVE = re.compile(r"(?:e[lrn]|e|hoch|rosa|lila|s)$")
_OTHER_PLURAL = re.compile(
    r"(?:man|fe?|ouse|foot|tooth|goose|child|person|fish|sheep|sis|us|um|ix|ex|ox|o)$|(?i:mutter|tochter|vater|bruder"
    r"|schwager|kloster|acker|hammer|mantel)$"
)
"""English and German nouns whose plural has, or may have, another form than the regular one."""
_UNCOUNTED = re.compile(r"(?:ness|ity|ism|ing|ship|hood|s)$")
_MODAL = re.compile(r"(?:to|can|will|could|would|must|should|may|might|not|n't|'ll|let's|let us|cannot)$")


@dataclass(frozen=True, kw_only=True)
class Form:
    """A word and its translation, as both stand in a sentence."""

    english: str
    german: str
    kind: str
    """What gives way to it: its part of speech, gender, number and ending."""


def forms(entry: Entry) -> Iterator[Form]:
    """The forms of a German entry whose spelling is sure."""
    english, german = entry.english, entry.other
    if " " in german or english.count(" ") > (entry.kind == "n") or not english.islower():
        return
    if entry.kind == "n" and entry.gender and german[0].isupper():
        if not (entry.gender == "m" and _WEAK.search(german.lower())):
            yield Form(english=english, german=german, kind=entry.gender)
        is_regular = not any(map(_OTHER_PLURAL.search, (english, german))) and not _UNCOUNTED.search(english)
        if is_regular and (plural := german_plural(german, entry.gender)):
            kind = "same plural" if plural == german else "other plural"
            yield Form(english=english_plural(english), german=plural, kind=kind)
    elif entry.kind == "adj" and german.islower() and not _ODD_ADJECTIVE.search(german):
        for ending in _ADJECTIVE_ENDINGS:
            yield Form(english=english, german=german + ending, kind=f"adjective -{ending}")
    elif entry.kind == "v" and re.fullmatch("[a-zäöüß]+n", german) and not SEPARABLE.match(german):
        yield Form(english=english, german=german, kind="verb")


def german_plural(noun: str, gender: str) -> str | None:
    """The plural where the noun's ending and gender settle it."""
    if gender == "f":
        if re.search(r"(?:ung|heit|keit|schaft|ion|tät|ik|ur|ei|enz|anz)$", noun):
            return f"{noun}en"
        if noun.endswith("in") and len(noun) > 5:
            return f"{noun}nen"
        return f"{noun}n" if re.search(r"(?:e|el|er)$", noun) else None
    return noun if re.search(r"(?:[^ie]er|chen|lein)$", noun) else None


def english_plural(noun: str) -> str:
    """The regular plural."""
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(?:s|x|z|ch|sh)$", noun) else f"{noun}s"


Forms = defaultdict[str, list[Form]]
Vocabulary = tuple[Forms, Forms]
"""The forms of a dictionary by their German spelling, and by kind, as often as one is to be drawn."""


def vocabulary(entries: list[Entry], counts: Counts, *, into_english: bool) -> Vocabulary:
    """All forms of the entries; those of the commonest translations are inserted."""
    by_german, inserted = Forms(list), Forms(list)
    for form in chain.from_iterable(map(forms, entries)):
        by_german[form.german].append(form)
    for ranked, frequency in ranked_entries(entries, counts, into_english=into_english):
        times = next(times for least, times in WEIGHTS if frequency >= least)
        for form in forms(ranked[0]):
            inserted[form.kind] += [form] * times
    return by_german, inserted


def insert(pairs: Iterable[Pair], found: Vocabulary) -> Iterator[Pair]:
    """Plurals, and pairs with another word in the place of one of each kind that both sides have."""
    by_german, inserted = found
    for kind in ("same plural", "other plural"):
        for form in dict.fromkeys(inserted[kind]):
            yield form.english, form.german
    for english, german in pairs:
        words = re.findall(r"\w+", german)
        if not 3 <= len(words) <= MAX_WORDS:
            continue
        slots: dict[str, Form] = {}
        for word in words[1:]:
            known = by_german.get(word, ())
            # The gender of a noun that a dictionary gives two, as "Haus", is not sure.
            has_one_gender = len({form.kind for form in known if len(form.kind) == 1}) < 2
            for form in known:
                is_sure = has_one_gender and len(word) >= MIN_LETTERS and form.english not in stop_words("en")
                if is_sure and words.count(word) == 1 and len(_places(form.english, english)) == 1:
                    slots.setdefault(form.kind, form)
        for kind, form in slots.items():
            choices = inserted[kind]
            if choices and (pair := _replaced(english, german, form, choices)):
                yield pair


def _places(word: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"\b{re.escape(word)}\b", text))


def _replaced(english: str, german: str, form: Form, choices: list[Form]) -> Pair | None:
    (place,) = _places(form.english, english)
    before = english[: place.start()]
    new = choices[int(draw(english + german, form.kind) * len(choices))]
    if form.kind == "verb" and not _MODAL.search(before.rstrip().lower()):
        return None
    if found := re.search(r"\b([Aa])n? $", before):
        if len(form.kind) == 1 and _UNCOUNTED.search(new.english):
            return None
        before = before[: found.start()] + article(new.english, found[1]) + " "
    german_place = _places(form.german, german)[0]
    new_german = german[: german_place.start()] + new.german + german[german_place.end() :]
    return before + new.english + english[place.end() :], new_german

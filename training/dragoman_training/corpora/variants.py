"""What everyday sentences lack, made of what they have.

Many of Tatoeba's pairs have a name, nearly always Tom or Mary; prices, dates and capitals are rare, and every
sentence ends in a full stop. What a pair becomes depends on its text alone.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dragoman_training.corpora.tables import Pair, draw, words

SHARE_RENAMED = 0.8
"""The share of the pairs with a name that get another."""
SHARE_FOUND = 0.7
"""The share of the names that replace others which were found in novels: a model learns to copy names."""
SHARE_IN_CAPITALS = 0.02
SHARE_IN_LOWER_CASE = 0.03
SHARE_WITHOUT_STOP = 0.06
CITY_TIMES = 4
NUM_INVENTED = 2_500
"""Prices, dates and times of day of each kind."""


def vary(
    pairs: Iterable[Pair], language: str, names: Sequence[str] = (), *, into_english: bool
) -> Iterator[Pair]:
    """Other names and numbers, capitals, small letters and no full stops for some of the pairs."""
    for english, other in pairs:
        pair, text = (english, other), english + other
        if draw(text, "rename") < SHARE_RENAMED and (variant := rename(pair, language, names)) != pair:
            yield variant
        if re.search(r"\d", other) and (variant := renumber(pair)) != pair:
            yield variant
        length = english.count(" ") + 1
        if length <= 8 and draw(text, "capitals") < SHARE_IN_CAPITALS:
            yield english.upper(), other.replace("ß", "SS").upper()
        if length <= 12 and draw(text, "lower case") < SHARE_IN_LOWER_CASE:
            yield (english, other.lower()) if into_english else (english.lower(), other)
        if length <= 6 and english[-1:] == other[-1:] == "." and draw(text, "stop") < SHARE_WITHOUT_STOP:
            yield english[:-1], other[:-1]


def rename(pair: Pair, language: str, names: Sequence[str] = ()) -> Pair:
    """The pair with another man's, woman's and city's name, where both sides have the one there is.

    Most are of `names`, some of those behind a first name.
    """
    english, other = pair
    generator = random.Random(english + other)
    first = [generator.choice(words()[kind].split()) for kind in ("men", "women")]
    german_city, english_city = generator.choice(words()["cities"])
    replaced = [
        ("Tom", "Tom", first[0], first[0]),
        ("Mary", "Maria|Mary|Marie|María", first[1], first[1]),
        ("Boston", "Boston", english_city, german_city if language == "de" else ""),
    ]
    for name, other_name, new, other_new in replaced:
        if names and generator.random() < SHARE_FOUND:
            found = generator.choice(names)
            new = other_new = f"{new} {found}" if name != "Boston" and generator.random() < 0.3 else found
        pattern, other_pattern = rf"\b{name}\b", rf"\b(?:{other_name})(s?)\b"
        if other_new and len(re.findall(pattern, english)) == len(re.findall(other_pattern, other)):
            english = re.sub(pattern, new, english)
            other = re.sub(other_pattern, rf"{other_new}\1", other)
    return english, other


def find_names(prose: Iterable[str], known: set[str]) -> list[str]:
    """Names of people and places in English and German text.

    In English text a capital within a sentence says so, in German text a title. Words that are met with a
    small letter, or once or twice, and those of `known` are none.
    """
    met: Counter[str] = Counter()
    small: set[str] = set()
    for line in prose:
        if " the " in line:
            small.update(re.findall(r"\b[a-z]{3,}\b", line))
            met.update(re.findall(r"(?<=[a-z,;] )[A-Z][a-z]{2,13}\b", line))
        else:
            met.update(re.findall(r"\b(?:Herrn?|Frau|Fräulein) ([A-ZÄÖÜ][a-zäöüß]{2,13})\b", line))
    return sorted(one for one, n in met.items() if n > 2 and one.lower() not in small and one not in known)


def renumber(pair: Pair) -> Pair:
    """The pair with other numbers of as many digits, where both sides have the same ones."""
    numbers = re.findall(r"\d+", pair[0])
    if sorted(numbers) != sorted(re.findall(r"\d+", pair[1])):
        return pair
    generator = random.Random(pair[0] + pair[1])
    others = {n: str(generator.randint(10 ** (len(n) - 1), 10 ** len(n) - 1)) for n in numbers}
    english, other = (re.sub(r"\d+", lambda found: others[found[0]], side) for side in pair)
    return english, other


def invent(names: Sequence[str] = ()) -> Iterator[Pair]:
    """Prices, dates, times of day, introductions, letters and cities, in English and German."""
    generator = random.Random(1)
    frames = words()["frames"]
    for _ in range(NUM_INVENTED):
        for kind, make in (("price", _price), ("date", _date), ("time_of_day", _time_of_day)):
            inserted = make(generator)
            english, german = generator.choice(frames[kind])
            yield english.format_map(inserted), german.format_map(inserted)
    for name in f"{words()['men']} {words()['women']}".split():
        for english, german in frames["introductions"]:
            yield english.format(name=name), german.format(name=name)
    for german_city, english_city in words()["cities"]:
        for english, german in frames["city"] * CITY_TIMES:
            yield english.format(english=english_city), german.format(german=german_city)
    for name in names:
        english, german = generator.choice(frames["introductions"] + frames["names"])
        yield english.format(name=name), german.format(name=name)


def _price(generator: random.Random) -> dict[str, str]:
    """What something costs."""
    whole = generator.randint(*generator.choice([(1, 20), (20, 900), (1_000, 99_999)]))
    cents = generator.choice([0, 0, 50, 99, generator.randint(1, 99)])
    english_whole, german_whole = f"{whole:,}", f"{whole:,}".replace(",", ".")
    sign, one, many, german_many = generator.choice(words()["currencies"])
    if cents:
        english, german = f"{sign}{english_whole}.{cents:02}", f"{german_whole},{cents:02} {sign}"
    elif generator.random() < 0.5:
        english, german = f"{english_whole} {many if whole > 1 else one}", f"{german_whole} {german_many}"
    else:
        english, german = f"{sign}{english_whole}", f"{german_whole} {sign}"
    return {"english": english, "german": german}


def _date(generator: random.Random) -> dict[str, str]:
    """When something is."""
    day, year = generator.randint(1, 28), str(generator.randint(1900, 2035))
    german_month, month = generator.choice(words()["months"])
    german_weekday, weekday = generator.choice(words()["weekdays"])
    english = generator.choice([f"{month} {day}", f"{day} {month}"])
    german = f"{day}. {german_month}"
    if generator.random() < 0.5:
        english += f", {year}" if english.startswith(month) else f" {year}"
        german += f" {year}"
    names = {"month": month, "german_month": german_month, "weekday": weekday}
    return {"english": english, "german": german, "year": year, **names, "german_weekday": german_weekday}


def _time_of_day(generator: random.Random) -> dict[str, str]:
    """The time at which something is, by twelve hours in English and by twenty-four in German."""
    hour, minute = generator.randint(0, 23), generator.choice([0, 15, 30, 45, generator.randint(1, 59)])
    half = generator.choice([("a.m.", "p.m."), ("am", "pm"), (" AM", " PM")])[hour >= 12].strip()
    english_hour = (hour - 1) % 12 + 1
    english = f"{english_hour}:{minute:02} {half}" if minute else f"{english_hour} {half}"
    german = f"{hour}:{minute:02} Uhr" if minute else f"{hour} Uhr"
    if generator.random() < 0.2:
        english, german = f"{hour}:{minute:02}", f"{hour}:{minute:02} Uhr"
    return {"english": english, "german": german, "stop": "" if english.endswith(".") else "."}

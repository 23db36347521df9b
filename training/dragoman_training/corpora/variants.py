"""What everyday sentences lack, made of what they have.

Many of Tatoeba's pairs have a name, nearly always Tom or Mary; prices, dates and capitals are rare, and every
sentence ends in a full stop. What a pair becomes depends on its text alone.
"""

import random
import re
from collections.abc import Iterable, Iterator

from dragoman_training.corpora.cleaning import Pair
from dragoman_training.corpora.words import draw, words

SHARE_RENAMED = 0.35
"""Of the pairs with a name."""
SHARE_IN_CAPITALS = 0.02
SHARE_IN_LOWER_CASE = 0.03
SHARE_WITHOUT_STOP = 0.06
NUM_INVENTED = 2_500
"""Prices, dates and times of day of each kind."""


def vary(pairs: Iterable[Pair], language: str, *, into_english: bool) -> Iterator[Pair]:
    """Other names and numbers, capitals, small letters and no full stops for some of the pairs."""
    for english, other in pairs:
        pair = english, other
        if draw(english + other, "rename") < SHARE_RENAMED and (variant := rename(pair, language)) != pair:
            yield variant
        if re.search(r"\d", other) and (variant := renumber(pair)) != pair:
            yield variant
        length = english.count(" ") + 1
        if length <= 8 and draw(english + other, "capitals") < SHARE_IN_CAPITALS:
            yield english.upper(), other.replace("ß", "SS").upper()
        if length <= 12 and draw(english + other, "lower case") < SHARE_IN_LOWER_CASE:
            yield (english, other.lower()) if into_english else (english.lower(), other)
        if (
            length <= 6
            and english[-1:] == other[-1:] == "."
            and draw(english + other, "stop") < SHARE_WITHOUT_STOP
        ):
            yield english[:-1], other[:-1]


def rename(pair: Pair, language: str) -> Pair:
    """The pair with another man's, woman's and city's name, where both sides have the one there is."""
    english, other = pair
    generator = random.Random(english + other)
    man, woman = (generator.choice(words()[names].split()) for names in ("men", "women"))
    german_city, english_city = generator.choice(words()["cities"])
    replaced = [("Tom", "Tom", man, man), ("Mary", "Maria|Mary|Marie|María", woman, woman)]
    if language == "de":
        replaced.append(("Boston", "Boston", english_city, german_city))
    for name, other_name, new, other_new in replaced:
        pattern, other_pattern = rf"\b{name}\b", rf"\b(?:{other_name})(s?)\b"
        if len(re.findall(pattern, english)) == len(re.findall(other_pattern, other)):
            english = re.sub(pattern, new, english)
            other = re.sub(other_pattern, rf"{other_new}\1", other)
    return english, other


def renumber(pair: Pair) -> Pair:
    """The pair with other numbers of as many digits, where both sides have the same ones."""
    numbers = re.findall(r"\d+", pair[0])
    if sorted(numbers) != sorted(re.findall(r"\d+", pair[1])):
        return pair
    generator = random.Random(pair[0] + pair[1])
    others = {
        number: str(generator.randint(10 ** (len(number) - 1), 10 ** len(number) - 1)) for number in numbers
    }
    english, other = (re.sub(r"\d+", lambda found: others[found[0]], side) for side in pair)
    return english, other


def invent() -> Iterator[Pair]:
    """Prices, dates, times of day and introductions, in English and German."""
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


def _price(generator: random.Random) -> dict[str, str]:
    """What something costs."""
    whole = generator.randint(*generator.choice([(1, 20), (20, 900), (1_000, 99_999)]))
    cents = generator.choice([0, 0, 50, 99, generator.randint(1, 99)])
    english_whole = f"{whole:,}"
    german_whole = english_whole.replace(",", ".")
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
    names = {
        "month": month,
        "german_month": german_month,
        "weekday": weekday,
        "german_weekday": german_weekday,
    }
    return {"english": english, "german": german, "year": year, **names}


def _time_of_day(generator: random.Random) -> dict[str, str]:
    """The time at which something is, by twelve hours in English and by twenty-four in German."""
    hour, minute = generator.randint(0, 23), generator.choice([0, 15, 30, 45, generator.randint(1, 59)])
    half = generator.choice([("a.m.", "p.m."), ("am", "pm"), (" AM", " PM")])[hour >= 12].strip()
    english_hour = (hour - 1) % 12 + 1
    english = f"{english_hour}:{minute:02} {half}" if minute else f"{english_hour} {half}"
    german = f"{hour}:{minute:02} Uhr" if minute else f"{hour} Uhr"
    if generator.random() < 0.2:
        english = f"{hour}:{minute:02}"
        german = f"{hour}:{minute:02} Uhr"
    return {"english": english, "german": german, "stop": "" if english.endswith(".") else "."}

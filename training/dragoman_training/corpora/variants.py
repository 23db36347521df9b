"""What everyday sentences lack, made of what they have.

Many of Tatoeba's pairs have a name, nearly always Tom or Mary; prices, dates and capitals are rare, and every
sentence ends in a full stop. What a pair becomes depends on its text alone.
"""

import random
import re
from collections.abc import Iterable, Iterator

from dragoman_training.corpora.cleaning import Pair
from dragoman_training.corpora.draws import draw

# fmt: off
MEN = """
Peter Paul Anton Martin Stefan Michael Daniel Simon Christian Florian Sebastian Jan Jonathan
Benjamin Leon Emil Karl Otto Walter Werner Robert Richard Frank Dieter Günter Jürgen Rolf Ralf
Oliver Philipp Julian David Kevin Ahmed Ali Mehmet Mustafa Ivan Igor Pedro Diego Luca Marco Giovanni
Jean Pierre John Henry William Jack Steve Brian Andrew Adam Bernd Gerhard Helmut Heinrich Friedrich
Wolfgang Uwe Jörg Björn Torsten Bruno
""".split()  # noqa: SIM905
WOMEN = """
Anna Julia Sarah Laura Lisa Lena Hannah Emma Mia Sophie Marie Katharina Christina Claudia Sabine
Petra Monika Ursula Helga Ingrid Brigitte Renate Karin Susanne Andrea Martina Nicole Stefanie Sandra
Nina Eva Clara Paula Johanna Charlotte Greta Frieda Elena Olga Natascha Fatima Aisha Leyla Carmen
Lucia Isabella Giulia Chiara Jane Emily Kate Linda Susan Barbara Elizabeth Jennifer Amanda Heidi
Gisela Birgit Silke Anja Katja Ute Erika Marta
""".split()  # noqa: SIM905
CITIES = (
    ("Berlin", "Berlin"), ("Hamburg", "Hamburg"), ("München", "Munich"), ("Köln", "Cologne"),
    ("Wien", "Vienna"), ("Frankfurt", "Frankfurt"), ("Stuttgart", "Stuttgart"), ("Leipzig", "Leipzig"),
    ("Dresden", "Dresden"), ("Nürnberg", "Nuremberg"), ("Hannover", "Hanover"), ("Zürich", "Zurich"),
    ("Genf", "Geneva"), ("Rom", "Rome"), ("Mailand", "Milan"), ("Venedig", "Venice"), ("Madrid", "Madrid"),
    ("Barcelona", "Barcelona"), ("Prag", "Prague"),
    ("Lissabon", "Lisbon"), ("Warschau", "Warsaw"), ("Moskau", "Moscow"), ("Kopenhagen", "Copenhagen"),
    ("Amsterdam", "Amsterdam"), ("Dublin", "Dublin"), ("London", "London"), ("Chicago", "Chicago"),
)
# fmt: on

SHARE_RENAMED = 0.35
"""Of the pairs with a name."""
SHARE_IN_CAPITALS = 0.02
SHARE_IN_LOWER_CASE = 0.03
SHARE_WITHOUT_STOP = 0.06
NUM_INVENTED = 2_500
"""Prices, dates and times of day of each kind."""
CURRENCIES = (
    ("€", "euro", "euros", "Euro"),
    ("€", "euro", "euros", "Euro"),
    ("$", "dollar", "dollars", "Dollar"),
    ("£", "pound", "pounds", "Pfund"),
)
MONTHS = tuple(
    zip(
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),  # noqa: SIM905
        "January February March April May June July August September October November December".split(),  # noqa: SIM905
        strict=True,
    )
)
WEEKDAYS = tuple(
    zip(
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split(),  # noqa: SIM905
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),  # noqa: SIM905
        strict=True,
    )
)


def vary(pairs: Iterable[Pair], language: str, *, into_english: bool) -> Iterator[Pair]:
    """Other names and numbers, capitals, small letters and no full stops for some of the pairs."""
    for english, other in pairs:
        pair = english, other
        if draw(english + other, "rename") < SHARE_RENAMED and (variant := rename(pair, language)) != pair:
            yield variant
        if re.search(r"\d", other) and (variant := renumber(pair)) != pair:
            yield variant
        words = english.count(" ") + 1
        if words <= 8 and draw(english + other, "capitals") < SHARE_IN_CAPITALS:
            yield english.upper(), other.replace("ß", "SS").upper()
        if words <= 12 and draw(english + other, "lower case") < SHARE_IN_LOWER_CASE:
            yield (english, other.lower()) if into_english else (english.lower(), other)
        if (
            words <= 6
            and english[-1:] == other[-1:] == "."
            and draw(english + other, "stop") < SHARE_WITHOUT_STOP
        ):
            yield english[:-1], other[:-1]


def rename(pair: Pair, language: str) -> Pair:
    """The pair with another man's, woman's and city's name, where both sides have the one there is."""
    english, other = pair
    generator = random.Random(english + other)
    man, woman = generator.choice(MEN), generator.choice(WOMEN)
    german_city, english_city = generator.choice(CITIES)
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
    for _ in range(NUM_INVENTED):
        yield price(generator)
        yield date(generator)
        yield time_of_day(generator)
    for name in (*MEN, *WOMEN):
        yield from introductions(name)


def price(generator: random.Random) -> Pair:
    """What something costs."""
    whole = generator.randint(*generator.choice([(1, 20), (20, 900), (1_000, 99_999)]))
    cents = generator.choice([0, 0, 50, 99, generator.randint(1, 99)])
    english_whole = f"{whole:,}"
    german_whole = english_whole.replace(",", ".")
    sign, one, many, german_many = generator.choice(CURRENCIES)
    english, german = f"{sign}{english_whole}", f"{german_whole} {sign}"
    if cents:
        english, german = f"{sign}{english_whole}.{cents:02}", f"{german_whole},{cents:02} {sign}"
    elif generator.random() < 0.5:
        english, german = f"{english_whole} {many if whole > 1 else one}", f"{german_whole} {german_many}"
    frames = (
        ("That costs {}.", "Das kostet {}."),
        ("It costs {}.", "Es kostet {}."),
        ("That's {}.", "Das macht {}."),
        ("The book costs {}.", "Das Buch kostet {}."),
        ("The tickets cost {}.", "Die Karten kosten {}."),
        ("I paid {}.", "Ich habe {} bezahlt."),
        ("I spent {} on it.", "Ich habe dafür {} ausgegeben."),
        ("He owes me {}.", "Er schuldet mir {}."),
        ("The rent is {} a month.", "Die Miete beträgt {} im Monat."),
        ("The price is {}.", "Der Preis beträgt {}."),
        ("Please transfer {} to our account.", "Bitte überweisen Sie {} auf unser Konto."),
        ("Total: {}", "Gesamt: {}"),
        ("{}", "{}"),
    )
    frame = generator.choice(frames)
    return frame[0].format(english), frame[1].format(german)


def date(generator: random.Random) -> Pair:
    """When something is."""
    day, year = generator.randint(1, 28), generator.randint(1900, 2035)
    german_month, month = generator.choice(MONTHS)
    german_weekday, weekday = generator.choice(WEEKDAYS)
    english = generator.choice([f"{month} {day}", f"{day} {month}"])
    german = f"{day}. {german_month}"
    if generator.random() < 0.5:
        english += f", {year}" if english.startswith(month) else f" {year}"
        german += f" {year}"
    frames = (
        (f"on {english}", f"am {german}"),
        (f"on {weekday}, {english}", f"am {german_weekday}, dem {german}"),
        (f"{weekday}, {english}", f"{german_weekday}, {german}"),
        (f"He was born on {english}.", f"Er wurde am {german} geboren."),
        (f"The meeting is on {english}.", f"Die Besprechung ist am {german}."),
        (f"Thank you for your letter of {english}.", f"Vielen Dank für Ihr Schreiben vom {german}."),
        (f"We are closed until {english}.", f"Wir haben bis zum {german} geschlossen."),
        (f"The offer is valid until {english}.", f"Das Angebot gilt bis zum {german}."),
        (f"See you on {weekday}.", f"Bis {german_weekday}."),
        (f"{month} {year}", f"{german_month} {year}"),
        (english, german),
    )
    return generator.choice(frames)


def time_of_day(generator: random.Random) -> Pair:
    """At which time something is, by twelve hours in English and by twenty-four in German."""
    hour, minute = generator.randint(0, 23), generator.choice([0, 15, 30, 45, generator.randint(1, 59)])
    half = generator.choice([("a.m.", "p.m."), ("am", "pm"), (" AM", " PM")])[hour >= 12].strip()
    english_hour = (hour - 1) % 12 + 1
    english = f"{english_hour}:{minute:02} {half}" if minute else f"{english_hour} {half}"
    german = f"{hour}:{minute:02} Uhr" if minute else f"{hour} Uhr"
    if generator.random() < 0.2:
        english = f"{hour}:{minute:02}"
        german = f"{hour}:{minute:02} Uhr"
    stop = "" if english.endswith(".") else "."
    frames = (
        (f"at {english}", f"um {german}"),
        (f"The train leaves at {english}{stop}", f"Der Zug fährt um {german} ab."),
        (f"We meet at {english}{stop}", f"Wir treffen uns um {german}."),
        (f"The shop closes at {english}{stop}", f"Das Geschäft schließt um {german}."),
        (f"The meeting begins at {english}{stop}", f"Die Besprechung beginnt um {german}."),
        (f"Can you be here at {english}?", f"Kannst du um {german} hier sein?"),
        (f"The appointment is at {english}{stop}", f"Der Termin ist um {german}."),
        (f"I got up at {english}{stop}", f"Ich bin um {german} aufgestanden."),
    )
    return generator.choice(frames)


def introductions(name: str) -> Iterator[Pair]:
    """How somebody of that name is met."""
    yield f"My name is {name}.", f"Ich heiße {name}."
    yield f"My name is {name}.", f"Mein Name ist {name}."
    yield f"Hi, I'm {name}.", f"Hallo, ich bin {name}."
    yield f"This is {name}.", f"Das ist {name}."
    yield f"Hello {name}, how are you?", f"Hallo {name}, wie geht es dir?"
    yield f"Best wishes, {name}", f"Liebe Grüße, {name}"

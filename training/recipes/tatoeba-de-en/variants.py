"""What Tatoeba lacks, made of what it has.

    python training/recipes/tatoeba-de-en/variants.py data/tatoeba-de-en

Many pairs have a name, nearly always Tom or Mary; prices are rare, and so are capitals. So this writes
variants of the training pairs to variants.de and variants.en in the same folder:

- other names in place of Tom, Mary and Boston, the same on both sides;
- other numbers, and prices in euros as either language writes them;
- short pairs in capitals;
- the shortest pairs again, and the everyday phrases of phrases.tsv, which were written for this model.

Nothing is written that has a side of a validation pair. The same pairs give the same files.
"""

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

Pair = tuple[str, str]

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
NUM_NAMED = 24_000
NUM_IN_CAPITALS = 1_500
NUM_PRICES = 800
PHRASE_TIMES = 4
SHORTEST_WORDS = 3


def make_variants(pairs: list[Pair], phrases: list[Pair], generator: random.Random) -> Iterator[Pair]:
    """The variants, in no order worth keeping."""
    named = [pair for pair in pairs if re.search(r"\b(Tom|Mary|Boston)\b", pair[1])]
    for pair in generator.sample(named, min(NUM_NAMED, len(named))):
        variant = rename(pair, generator)
        if variant != pair:
            yield variant
    for pair in pairs:
        if re.search(r"\d", pair[0]) and (variant := renumber(pair, generator)) != pair:
            yield variant
    short = [pair for pair in pairs if len(pair[0].split()) <= 8]
    for source, target in generator.sample(short, min(NUM_IN_CAPITALS, len(short))):
        yield source.replace("ß", "SS").upper(), target.upper()
    for _ in range(NUM_PRICES):
        yield price(generator)
    for _ in range(PHRASE_TIMES):
        yield from phrases
    for name in (*MEN, *WOMEN):
        yield from introductions(name)
    yield from (pair for pair in pairs if len(pair[0].split()) <= SHORTEST_WORDS)


def rename(pair: Pair, generator: random.Random) -> Pair:
    """The pair with another man's, woman's and city's name, where both sides have the one there is."""
    source, target = pair
    man, woman, (source_city, target_city) = map(generator.choice, (MEN, WOMEN, CITIES))
    for old, new_source, new_target in (
        (("Tom", "Tom"), man, man),
        (("Maria|Mary", "Mary"), woman, woman),
        (("Boston", "Boston"), source_city, target_city),
    ):
        pattern_source, pattern_target = rf"\b(?:{old[0]})(s?)\b", rf"\b{old[1]}\b"
        if len(re.findall(pattern_source, source)) == len(re.findall(pattern_target, target)):
            source = re.sub(pattern_source, rf"{new_source}\1", source)
            target = re.sub(pattern_target, new_target, target)
    return source, target


def renumber(pair: Pair, generator: random.Random) -> Pair:
    """The pair with other numbers of as many digits, where both sides have the same ones."""
    numbers = re.findall(r"\d+", pair[0])
    if sorted(numbers) != sorted(re.findall(r"\d+", pair[1])):
        return pair
    others = {
        number: str(generator.randint(10 ** (len(number) - 1), 10 ** len(number) - 1)) for number in numbers
    }
    source, target = (re.sub(r"\d+", lambda found: others[found[0]], side) for side in pair)
    return source, target


def price(generator: random.Random) -> Pair:
    """What something costs, in euros."""
    euros, cents = (
        generator.choice([generator.randint(1, 20), generator.randint(20, 900)]),
        generator.choice([0, 0, 50, 99, generator.randint(1, 99)]),
    )
    source = f"{euros},{cents:02} €" if cents else generator.choice([f"{euros} €", f"{euros} Euro"])
    target = f"€{euros}.{cents:02}" if cents else f"€{euros}"
    if source.endswith("Euro"):
        target = f"{euros} euro{'s' * (euros > 1)}"
    return generator.choice(
        [
            (f"Das kostet {source}.", f"That costs {target}."),
            (f"Es kostet {source}.", f"It costs {target}."),
            (f"Das macht {source}.", f"That's {target}."),
            (f"Das Buch kostet {source}.", f"The book costs {target}."),
            (f"Die Karten kosten {source}.", f"The tickets cost {target}."),
            (f"Ich habe {source} bezahlt.", f"I paid {target}."),
            (f"Ich habe dafür {source} ausgegeben.", f"I spent {target} on it."),
            (f"Er schuldet mir {source}.", f"He owes me {target}."),
        ]
    )


def introductions(name: str) -> Iterator[Pair]:
    """How somebody of that name is met."""
    yield f"Ich heiße {name}.", f"My name is {name}."
    yield f"Mein Name ist {name}.", f"My name is {name}."
    yield f"Hallo, ich bin {name}.", f"Hi, I'm {name}."
    yield f"Das ist {name}.", f"This is {name}."
    yield f"Hallo {name}, wie geht es dir?", f"Hello {name}, how are you?"
    yield f"Liebe Grüße, {name}", f"Best wishes, {name}"


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file with a tab between source and target."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(source, target) for source, target in (line.split("\t") for line in lines)]


def main(folder: Path) -> None:
    """Writes variants.{de,en} beside train.{de,en} and val.{de,en}."""
    train, validation = (
        [(folder / f"{split}.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en")]
        for split in ("train", "val")
    )
    phrases = read_pairs(Path(__file__).parent / "phrases.tsv")
    kept_apart = {line for side in validation for line in side}
    variants = [
        pair
        for pair in make_variants(list(zip(*train, strict=True)), phrases, random.Random(1))
        if kept_apart.isdisjoint(pair)
    ]
    for side, lines in zip(("de", "en"), zip(*variants, strict=True), strict=True):
        (folder / f"variants.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(variants):,} variants of {len(train[0]):,} pairs in {folder}/variants.de and variants.en")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

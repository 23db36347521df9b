"""`dragoman corpora`: what of corpora becomes training text, seen in the files that it writes."""

import json
import lzma
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.training.toy_pairs import invoke

from dragoman_training.corpora.cli import corpora
from dragoman_training.corpora.contexts import forms, insert, vocabulary
from dragoman_training.corpora.dictionary import Counts, Entry

Pair = tuple[str, str]
EVERYDAY = [
    ("Go home now.", "Geh jetzt nach Hause."),
    ("I have a dog.", "Ich habe einen Hund."),
    ("That is my dog.", "Das ist mein Hund."),
    ("I saw a dog.", "Ich sah einen Hund."),
    ("The dog is asleep.", "Der Hund schläft."),
    ("You can come in, sir.", "Sie können hereinkommen, mein Herr."),
    ("Tom is 42 years old.", "Tom ist 42 Jahre alt."),
]
MANUAL = [
    (
        "Select **Save** and [close](/close.md) the page.",
        "Wählen Sie **Speichern**, und [schließen](x) Sie die Seite.",
    ),
    ("Enter the name of the customer.", "Geben Sie den Namen des Debitors ein."),
    ("and then the report is printed.", "und dann wird der Bericht gedruckt."),
    ("Select the row.", "Wählen Sie die Zeile"),
    ("The limit is 1,500 rows.", "Die Grenze liegt bei 1.500 Zeilen."),
    ("The limit is 15 rows.", "Die Grenze liegt bei 16 Zeilen."),
    ("The <xref:System.String> type is new here.", "Der <xref:System.String>-Typ ist hier neu."),
    ("The report is not available in this version.", "The report is not available in dieser Version."),
    ("Open it.", "Öffnen Sie das Fenster, in dem alle Berichte dieses Zeitraums aufgelistet sind."),
    ("The value `Count` is set.", "Der Wert `Count` ist festgelegt."),
    ("The value {0} of {1} is wrong.", "Der Wert {0} ist falsch."),
    ("Files {a}, {b}, {c} and {d} are new.", "Dateien {a}, {b}, {c} und {d} sind neu."),
    (f"The sign &#{4301 * '9'}; is new.", f"Das Zeichen &#{4301 * '9'}; ist neu."),
    ("Reports.", "Berichte."),
    ("Reports!", "Meldungen!"),
    ("Reports:", "Auswertungen:"),
    ("Reports;", "Verzeichnisse;"),
    ("This line is in a test set.", "Diese Zeile steht in einer Prüfung."),
    ("This line is another one.", "Auch diese Zeile steht in einer Prüfung!"),
]
MACHINE = [
    ("The window procedure was not called again.", "Die Fensterprozedur wurde nicht erneut aufgerufen."),
    ("The host process was not called again.", "Der Host Prozess wurde hier nicht erneut aufgerufen."),
    (
        "The Microsoft Excel file was not called again.",
        "Die Microsoft Excel Datei wurde nicht erneut aufgerufen.",
    ),
]
WORDS = """
# English :: German dictionary
dog {n} (animal) :: [♂♀] Hund {m}, [♂] Hündin {f}
dog {n} (a hinged catch) SEE: pawl ::
dog {n} (fellow) :: Kerl {m} [archaic]
hound {n} (animal) :: Hund {m}
hour {n} (unit of time) :: Stunde {f}
quick {adj} (fast) :: schnell
go {v} (to move) :: gehen, sich begeben
neighbour {n} (person) :: Nachbar {m}; Pennsylvania German: Nochber
neighbor {n} SEE: neighbour ::
"""


NOVEL = """he met Ashleigh, the vicar of Cocksmoor, and Kate Ashleigh Tuesday.
on the tuesday of Cocksmoor
"""


def write_tsv(path: Path, pairs: list[Pair]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress("".join(f"{one}\t{other}\n" for one, other in pairs).encode()))


def write_sides(folder: Path, name: str, pairs: list[Pair]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, language in enumerate(("en", "de")):
        (folder / f"{name}{language}").write_text("".join(f"{pair[number]}\n" for pair in pairs))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_sides(folder / "tatoeba-de-en", "train.", EVERYDAY)
    valid = [("Be quiet!", "Sei still!"), ("Go home, now!", "Geh heim!")]
    write_sides(folder / "tatoeba-de-en", "val.", valid)
    tested = [("This line is in a TEST set", "Anders."), ("Other.", MANUAL[-1][1])]
    write_sides(folder / "tests" / "ud-pud", "pud.", tested)
    write_tsv(folder / "general" / "microsoft-docs.en-de.human.tsv.xz", MANUAL)
    write_tsv(folder / "general" / "microsoft-docs.en-de.machine.tsv.xz", MACHINE)
    write_tsv(folder / "general" / "mdn.en-de.tsv.xz", [("The element is new.", "Das Element ist neu.")])
    (folder / "general" / "wiktionary.en-de.txt.xz").write_bytes(lzma.compress(WORDS.encode()))
    (folder / "general" / "prose.en.txt.xz").write_bytes(lzma.compress(NOVEL.encode() * 3))
    names = list(map(spelt, range(200)))
    strings = [(f"{verb} {name}", f"{name} öffnen") for verb in ("Open", "Close") for name in names]
    write_sides(folder / "more" / "ui-windows", "en-de.", [*strings, ("%d files", "%d Dateien")])
    return folder


def held_out_strings(folder: Path) -> list[list[str]]:
    """The strings to measure with, each before its translations."""
    return [line.split("\t") for line in (folder / "ui-heldout.tsv").read_text().splitlines()]


def spelt(number: int) -> str:
    return "".join("Abcdefghij"[int(digit)] for digit in f"0{number:03}")


run = partial(invoke, corpora)


@pytest.fixture(scope="module")
def out(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    result = run("--data", data, "--both", "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


def pairs_of(folder: Path, *groups: str) -> list[Pair]:
    """Source and target of the pairs of some groups, or of all."""
    source, target = folder.name.split("-")
    pairs: list[Pair] = []
    for group in groups or ("everyday", "short", "general", "machine"):
        sides = [(folder / f"{group}.{side}").read_text().splitlines() for side in (source, target)]
        pairs += zip(*sides, strict=True)
    return pairs


def test_pairs_of_documentation_are_plain_whole_and_alike(out: Path) -> None:
    pairs = pairs_of(out / "de-en", "general", "short")
    assert ("Wählen Sie Speichern, und schließen Sie die Seite.", "Select Save and close the page.") in pairs
    assert ("Die Grenze liegt bei 1.500 Zeilen.", "The limit is 1,500 rows.") in pairs
    sources = {source for source, _ in pairs}
    for number in (2, 3, 5, 6, 7, 8, 10, 11, 12):
        assert MANUAL[number][1] not in sources, MANUAL[number]
    # What stands in the place of code is the same on both sides, as the service puts it there.
    (source, target), *others = [pair for pair in pairs if pair[0].startswith("Der Wert ")]
    assert not others
    name = source.removeprefix("Der Wert ").removesuffix(" ist festgelegt.")
    assert target == f"The value {name} is set."
    assert name.isalpha()
    assert sum(target.startswith("Reports") for _, target in pairs) == 3
    left_out = json.loads((out / "de-en" / "report.json").read_text())["kinds"]["microsoft-docs"]["left_out"]
    assert left_out["with a piece of a sentence"] == 2
    assert left_out["with numbers that do not match"] == 1
    assert left_out["with many placeholders, or such that do not match"] == 2
    assert left_out["with a side that came 3 times"] == 1


def test_nothing_is_trained_on_that_stands_in_a_test_set_or_is_held_out(out: Path, data: Path) -> None:
    for folder in (out / "de-en", out / "en-de"):
        report = json.loads((folder / "report.json").read_text())
        assert report["kinds"]["microsoft-docs"]["left_out"]["in a test set"] == 2
        assert report["kinds"]["tatoeba"]["left_out"] == {"in a test set": 1}
        strings = held_out_strings(folder)
        assert len(strings) == report["held_out_strings"] > 5
        held_out = {text.casefold() for line in strings for text in line}
        assert held_out.isdisjoint(text.casefold() for pair in pairs_of(folder) for text in pair)
        valid = (folder / f"valid.{folder.name[:2]}").read_text().splitlines()
        assert held_out & {line.casefold() for line in valid}
    # "Aaab öffnen" has two translations here, of which both may be held out.
    assert max(map(len, held_out_strings(out / "de-en"))) == 3


def test_a_file_of_one_s_own_is_left_out_by_its_fields(data: Path, tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("rasch\tquick|fast\n")
    result = run("--data", data, "--out", tmp_path, "--leave-out", tmp_path / "words.tsv")
    assert result.exit_code == 0, result.output
    targets = {target.casefold() for _, target in pairs_of(tmp_path / "de-en")}
    assert "quick" not in targets
    assert "hour" in targets


def test_a_machine_s_german_is_read_with_a_mark_and_never_written(out: Path) -> None:
    whole, _, with_name = MACHINE
    expected = [(f"\ue002 {german}", english) for english, german in (whole, with_name)]
    assert sorted(pairs_of(out / "de-en", "machine")) == sorted(expected)
    assert not pairs_of(out / "en-de", "machine")
    written = {target for _, target in pairs_of(out / "en-de")}
    assert written.isdisjoint(german for _, german in MACHINE)


def test_fluent_text_of_a_machine_is_written_where_that_is_asked_for(
    data: Path, out: Path, tmp_path: Path
) -> None:
    pair = ("The element is new.", "Das Element ist neu.")
    assert pair[::-1] in pairs_of(out / "de-en")
    assert pair not in pairs_of(out / "en-de")
    made = run("--data", data, "--from", "en", "--to", "de", "--with", "mdn", "--out", tmp_path)
    assert made.exit_code == 0, made.output
    assert pair in pairs_of(tmp_path / "en-de")
    assert not (tmp_path / "de-en").exists()


def test_words_come_with_their_commonest_translation_alone_and_in_phrases(out: Path) -> None:
    into_english, into_german = (set(pairs_of(out / direction)) for direction in ("de-en", "en-de"))
    # In the sentences "Hund" is with "dog", never with "hound".
    assert {("Hund", "dog"), ("der Hund", "the dog"), ("ein Hund", "a dog")} <= into_english
    assert ("Hund", "hound") not in into_english
    assert {("schnell", "quick"), ("Schnell", "Quick"), ("Nachbar", "neighbour")} <= into_english
    for german, english in into_english:
        assert "a hour" not in english
        assert not re.search("Kerl|Pennsylvania", german)
    # Another spelling is read, and not written.
    assert {("to go", "gehen"), ("neighbor", "Nachbar")} <= into_german
    assert ("Nachbar", "neighbor") not in into_english


def test_words_of_the_dictionary_stand_in_sentences_and_in_the_plural(out: Path) -> None:
    pairs = pairs_of(out / "de-en", "short", "general")
    assert ("Stunden", "hours") in pairs
    inserted = [pair for pair in pairs if "Nachbar" in pair[0] and "Nachbar" not in map(str.strip, pair)]
    expected = {
        ("Ich habe einen Nachbar.", "I have a neighbour."),
        ("Ich sah einen Nachbar.", "I saw a neighbour."),
        ("Das ist mein Nachbar.", "That is my neighbour."),
        ("Der Nachbar schläft.", "The neighbour is asleep."),
    }
    assert expected.intersection(inserted)
    assert not [pair for pair in pairs if pair[0].startswith("Ich habe einen Stunde")]


@pytest.mark.parametrize(
    ("english", "german", "gender", "plural"),
    [
        ("onion", "Zwiebel", "f", ("onions", "Zwiebeln")),
        ("apartment", "Wohnung", "f", ("apartments", "Wohnungen")),
        ("berry", "Beere", "f", ("berries", "Beeren")),
        ("knife", "Messer", "n", None),
        ("mother", "Mutter", "f", None),
        ("pet", "Haustier", "n", None),
        ("policewoman", "Polizistin", "f", None),
    ],
)
def test_a_plural_is_made_where_it_is_regular(
    english: str, german: str, gender: str, plural: Pair | None
) -> None:
    made = forms(Entry(english=english, other=german, kind="n", gender=gender))
    assert [(form.english, form.german) for form in made if "plural" in form.kind] == [plural] * bool(plural)


def test_a_noun_that_a_dictionary_gives_two_genders_stays_where_it_is() -> None:
    nouns = (("house", "Haus", "m"), ("house", "Haus", "n"), ("chip", "Prozessor", "m"))
    entries = [Entry(english=word, other=other, kind="n", gender=gender) for word, other, gender in nouns]
    known = vocabulary(entries, Counts(), into_english=False)
    inserted = insert([("I see a house.", "Ich sehe ein Haus.")], known)
    assert not [german for _, german in inserted if "sehe" in german]


def test_names_are_those_of_novels(out: Path) -> None:
    words = {word.strip(",.!?") for source, _ in pairs_of(out / "de-en") for word in source.split()}
    assert {"Ashleigh", "Cocksmoor"} <= words
    assert "Tuesday" not in words


def test_short_texts_come_more_often_than_long_ones(out: Path) -> None:
    pairs = Counter(pairs_of(out / "de-en", "short"))
    strings = [pair for pair in pairs if re.fullmatch("[A-Ja-j]{4} öffnen", pair[0])]
    assert {pairs[pair] for pair in strings} == {3}
    assert set(Counter(pairs_of(out / "de-en", "everyday")).values()) == {1}


def test_names_numbers_and_prices_are_the_same_on_both_sides(out: Path) -> None:
    pairs = pairs_of(out / "de-en", "general", "short")
    assert any(",99 €" in source and "€" in target and ".99" in target for source, target in pairs)
    (age,) = {target for _, target in pairs if re.fullmatch(r"Tom is \d\d years old\.", target)}
    assert "42" not in age
    for source, target in pairs:
        if "€" in source:
            assert [c for c in source if c.isdigit()] == [c for c in target if c.isdigit()]


def test_the_form_of_address_is_marked_where_it_is_sure() -> None:
    from dragoman_training.corpora.writing import FORMAL, INFORMAL, formality

    assert formality("Select the row.", "Wählen Sie die Zeile aus.") == FORMAL
    assert formality("Do you know?", "Weißt du es?") == INFORMAL
    assert formality("You can go.", "Sie können gehen.") == FORMAL
    # She, or they.
    assert formality("She can go.", "Sie kann gehen.") is None
    assert formality("I know that they sleep. You do?", "Ich weiß das. Sie schlafen.") is None
    assert formality("This is her house.", "Das ist ihr Haus.") is None
    assert formality("Is that yours? And yours?", "Ist das deins? Geben Sie es mir, und dein Buch.") is None


def test_tags_are_for_german_alone(tmp_path: Path) -> None:
    names = map(spelt, range(50))
    pairs = [(f"You open the {name} door.", f"Tu ouvres la porte du {name}.") for name in names]
    write_tsv(tmp_path / "general" / "microsoft-docs.en-fr.human.tsv.xz", pairs)
    result = run("--data", tmp_path, "--from", "en", "--to", "fr", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert sorted(pairs_of(tmp_path / "en-fr")) == sorted(pairs)


def test_the_same_corpora_give_the_same_files_in_any_order_of_lines(
    data: Path, out: Path, tmp_path: Path
) -> None:
    assert run("--data", data, "--both", "--out", tmp_path).exit_code == 0
    for path in sorted(out.rglob("*.*")):
        assert path.read_bytes() == (tmp_path / path.relative_to(out)).read_bytes(), path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "de", "--to", "fr"], "one of both languages, and not the other, is en"),
        (["--from", "ja"], "ja is none of de, en, es, fr"),
        (["--without", "mdm"], "mdm is none of cldr"),
        (["--from", "es"], "has no corpora of en and es"),
    ],
)
def test_what_can_not_be_made_is_said(data: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    result = run("--data", data, "--out", tmp_path, *arguments)
    assert result.exit_code != 0
    assert said in " ".join(f"{result.output} {result.exception}".split())

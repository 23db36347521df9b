"""The shipped German-English model and the demo that shows it: what a newcomer sees first."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman_bundle import open_bundle
from tests.server.calls import linked
from tests.server.server_process import ServerProcess
from tests.shipped import shipped_bundle

from dragoman import Client
from dragoman_server.text.read.clean import clean, for_tokenizer

HOUSE = Path(__file__).parents[2]
BUNDLE = shipped_bundle("de-en")
EVERYDAY = {
    "Guten Morgen.": {"Good morning."},
    "Wie geht es dir?": {"How are you?"},
    "Wo ist der Bahnhof?": {"Where is the station?", "Where's the station?"},
    "Ich habe Hunger.": {"I'm hungry."},
    "Das Wetter ist heute schön.": {"The weather is beautiful today.", "The weather is nice today."},
    "Kannst du mir helfen?": {"Can you help me?"},
    "Wir haben keine Zeit.": {"We don't have time."},
    "Er liest ein Buch.": {"He is reading a book.", "He reads a book."},
    "Sie wohnt in Berlin.": {"She lives in Berlin."},
    "Ich weiß es nicht.": {"I don't know."},
    "Was kostet das?": {f"How much {rest}?" for rest in ("does this cost", "is this", "is it", "is that")},
    "Der Hund schläft unter dem Tisch.": {"The dog is sleeping under the table."},
    # Names, greetings and prices, which need more than Tatoeba.
    "Ich heiße Anna.": {"My name is Anna."},
    "Frohe Weihnachten!": {"Merry Christmas!"},
    "Tschüss!": {"Bye!", "Goodbye!"},
    "Hallo Welt.": {"Hello, world."},
    "Alles Gute zum Geburtstag!": {"Happy birthday!"},
    "Haben Sie ein Zimmer frei?": {"Do you have a room available?"},
    "Das kostet 3,50 €.": {"That costs €3.50.", "It costs €3.50."},
    "Der Kaffee kostet 2,90 €.": {"The coffee costs €2.90."},
    "Er arbeitet als Arzt in Köln.": {"He works as a doctor in Cologne."},
    "Peter ist größer als sein Bruder.": {"Peter is taller than his brother."},
}
"""Right translations; there are others."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with ServerProcess(HOUSE / "models") as server:
        with Client(server.address) as client:
            yield client
        assert server.stop()[0] == 0


@pytest.mark.parametrize(
    ("direction", "everyday", "news"), [("de-en", 49, 19), ("en-de", 39, 14)], ids=["de-en", "en-de"]
)
def test_it_is_small_int8_and_as_good_as_its_card_says(direction: str, everyday: float, news: float) -> None:
    folder = shipped_bundle(direction)
    manifest = open_bundle(folder).manifest
    assert manifest.precisions == ("int8",)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 20e6
    assert "tatoeba.org" in manifest.credit
    assert manifest.licence.startswith("CC BY")
    assert {entry.shortlist for entry in manifest.quality} == {True}
    scores = {entry.test_set: entry.score for entry in manifest.quality if entry.metric == "BLEU"}
    assert scores["tatoeba-de-en/val"] >= everyday
    assert scores["ud-pud"] >= news
    card = (folder / "README.md").read_text()
    assert all(f"| {bleu:.2f} |" in card for bleu in scores.values())


def test_everyday_sentences_come_out_right(client: Client) -> None:
    translations = client.translate(list(EVERYDAY), source="de", target="en")
    wrong = {
        text: translation.text
        for (text, right), translation in zip(EVERYDAY.items(), translations, strict=True)
        if translation.text not in right
    }
    # Processors round sums in their own ways.
    assert len(wrong) <= 2, wrong


@pytest.mark.parametrize(
    "text",
    [
        *("😀 👩\u200d👩\u200d👧 Hallo!", "你好，世界", "שלום", "Ёлка"),
        *("\u202eabc\u0301 zero\u200bwidth", "a" * 300),
    ],
)
def test_what_it_never_saw_has_an_answer(client: Client, text: str) -> None:
    (translation,) = client.translate([text], source="de", target="en", alignments=True, num_hypotheses=3)
    # What the model can't read at all passes through.
    assert 1 <= len(translation.hypotheses) <= 3 or translation.text == text
    for hypothesis in translation.hypotheses:
        assert all(link.source_end <= len(text) for link in hypothesis.alignments)
        assert all(link.target_end <= len(hypothesis.text) for link in hypothesis.alignments)


@pytest.mark.parametrize(
    ("plain", "written"),
    [
        ("Guten Morgen.", "Gu\u00adten Mor\u00adgen."),
        ("Guten Morgen.", "\ufeff\u202aGu\u200bten\u2060 \0Mor\u200d\u034fgen\ufe0f\u202c."),
        ("Hallo Anna, wie geht es dir?", "Hallo \u2068Anna\u2069, wie\u200e geht es\u200f dir?\u180e"),
        ("Schöne Grüße. Er geht früh.", "Scho\u0308ne Gru\u0308ße. Er geht fru\u0308h."),
        ("Ich habe keine E-Mail von ihm.", "Ich habe keine E\u2011Mail von ihm."),
        ("Es sind -5 Grad.", "Es sind \u22125 Grad."),
    ],
)
def test_what_shows_nothing_changes_nothing(client: Client, plain: str, written: str) -> None:
    expected, translation = client.translate(
        [plain, written], source="de", target="en", alignments=True, num_hypotheses=3
    )
    for right, hypothesis in zip(expected.hypotheses, translation.hypotheses, strict=True):
        assert (hypothesis.text, hypothesis.score) == (right.text, pytest.approx(right.score, abs=1e-3))
        assert [(link.target_start, link.target_end) for link in hypothesis.alignments] == [
            (link.target_start, link.target_end) for link in right.alignments
        ]
        # The same words of the source, each where the caller wrote it.
        for link, right_link in zip(hypothesis.alignments, right.alignments, strict=True):
            word = plain[right_link.source_start : right_link.source_end]
            assert for_tokenizer(clean(written[link.source_start : link.source_end]).text) == word


@pytest.mark.parametrize(
    "text", ["! ? … — „“ " * 9, "😀 👩\u200d👩\u200d👧", "12345", "+49 30 123456", "---"]
)
def test_what_holds_no_letter_stays_as_it_is(client: Client, text: str) -> None:
    (translation,) = client.translate([text], source="de", target="en", alignments=True, num_hypotheses=3)
    assert (translation.text, translation.hypotheses) == (text, ())


def test_the_demo_shows_it() -> None:
    done = subprocess.run(
        [sys.executable, str(HOUSE / "clients" / "demo.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\$ dragoman models\n(.*\n)+.*de-en", done.stdout)
    # Several sentences and a line break between them.
    assert re.search(r"\nGood morning\. .+\n", done.stdout)
    # The picture of the alignment, with a row for a word and its shades.
    assert re.search(r"\n +sister +█", done.stdout)
    # The command as it can be typed, on a path that is not searched.
    command = os.path.relpath(Path(sys.executable).with_name("dragoman"))
    assert f"Start one of your own: {command} serve --models models" in done.stdout
    # Its server has ended.
    (port,) = re.findall(r"--port (\d+)", done.stdout)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=10)


def test_the_demo_ends_at_ctrl_c_and_takes_its_server_along() -> None:
    with subprocess.Popen(
        [sys.executable, str(HOUSE / "clients" / "demo.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as demo:
        assert demo.stdout is not None
        first = demo.stdout.readline()
        # Its server is there by now, and does not listen yet.
        time.sleep(0.3)
        demo.send_signal(signal.SIGINT)
        rest = demo.stdout.read()
    assert demo.returncode == 130, first + rest
    assert "Interrupted." in rest
    assert "Traceback" not in rest
    port = re.search(r"--port (\d+)", first)
    assert port is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port[1])), timeout=5)


KEPT = {
    "Hallo {name}!": ["{name}"],
    "Mehr unter https://www.example.com/pfad?a=1&b=2.": ["https://www.example.com/pfad?a=1&b=2"],
    "Das ist Łukasz aus Łódź.": ["Łukasz", "Łódź"],
    "Ich habe 2.500 Euro.": ["2,500|2500"],
    "Die Rechnung Nr. 4711 ist offen.": ["4711"],
    "Ich liebe dich 😀": ["love", "😀"],
    "GUTEN MORGEN!": ["GOOD MORNING"],
    "駅はどこですか。": ["駅はどこですか。"],
    "Wir treffen {a}, {b}, {c} und {d} in %s bei :item.": ["{a}", "{b}", "{c}", "{d}", "%s", ":item"],
}


def test_what_must_be_kept_is_kept_and_the_same_among_others(client: Client) -> None:
    texts = list(KEPT)
    together = client.translate(texts * 3, source="de", target="en")
    for text, translation in zip(texts * 3, together, strict=True):
        for span in KEPT[text]:
            # Numbers have two notations.
            assert sum(map(translation.text.count, span.split("|"))) == 1, translation.text
    for text, translation in zip(texts, together, strict=False):
        (alone,) = client.translate([text], source="de", target="en")
        assert (alone.text, alone.warnings) == (translation.text, translation.warnings)


def test_tags_stand_around_what_comes_from_the_words_within(client: Client) -> None:
    text = '<p>Das ist <b>ein <i>guter</i> Tag</b>.</p><p>Klicken Sie <a href="?a=1&amp;b=2">hier</a>!</p>'
    (translation,) = client.translate([text], source="de", target="en", text_format="html", alignments=True)
    assert "<b>a <i>good</i> day</b>" in translation.text
    assert '<a href="?a=1&amp;b=2">here</a>' in translation.text
    assert ("guter", "good") in linked(text, translation)


def test_terms_and_words_are_kept(client: Client) -> None:
    (translation,) = client.translate(
        ["Der Hund von Frau Meier ist groß."],
        source="de",
        target="en",
        terms={"Hund": "hound"},
        do_not_translate=["Frau Meier"],
    )
    assert "hound" in translation.text
    assert "Frau Meier" in translation.text

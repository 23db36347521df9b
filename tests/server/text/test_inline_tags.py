"""Tags within sentences, and the texts within tags, as lxml reads them: whatever the model answers."""

import io
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman_bundle import Bundle
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from lxml.html.defs import empty_tags, font_style_tags, link_attrs, phrase_tags, tags
from tests.growth import assert_linear
from tests.server.text.answering import (
    ANSWERING,
    ANSWERS,
    HTML,
    Answer,
    copies,
    forgets,
    noting,
    shipped,
    translated,
)
from tests.shipped import shipped_bundle

from dragoman_files.format import FormatOptions, Input
from dragoman_files.opening import open_format
from dragoman_server.offline.system import open_bundle_system
from dragoman_server.text.ask.fit import UnitTooLongError
from dragoman_server.text.options import (
    LengthPolicy,
    Protection,
    Segmentation,
    TextFormat,
    TranslationOptions,
)
from dragoman_server.text.stages import prepare
from dragoman_server.text.translated import WarningKind

HOUSE = Path(__file__).parents[3]
GNOME = HOUSE.parent / "shared" / "data" / "more" / "docs-gnome"
INLINE = sorted((phrase_tags | font_style_tags) - {"code", "kbd", "samp", "var", "tt", "sub", "sup"})
WORDS = ["Ich", "habe", "heute", "einen", "Hund", "im", "Garten", "gesehen", "und", "er", "war", "alt"]


Element = tuple[str, tuple[tuple[str, str], ...]]


def elements(text: str) -> tuple[Counter[Element], Counter[Element]]:
    """The elements of a text of XML, as lxml reads it, and those that hold a word."""
    root = etree.fromstring(f"<root>{text}</root>")
    found = {element: (element.tag, tuple(sorted(element.items()))) for element in root.iter(etree.Element)}
    words = (name for element, name in found.items() if re.search(r"[^\W_]", "".join(element.itertext())))
    return Counter(found.values()), Counter(words)


def assert_hold_words(text: str, found: str) -> None:
    """That the elements are the same, and that as many hold words at least."""
    (before, with_words), (after, still) = elements(text), elements(found)
    assert after == before, (text, found)
    assert with_words <= still, (text, found)


def taking(max_tokens: int) -> Bundle:
    """A bundle whose model takes so many tokens."""
    manifest = shipped().manifest
    decoding = replace(manifest.decoding, max_source_tokens=max_tokens)
    return replace(shipped(), manifest=replace(manifest, decoding=decoding))


def tagged(chance: random.Random, depth: int = 0) -> str:
    """A sentence's words, some of them in elements of HTML and of nobody's, and some with signs."""
    parts = []
    for _ in range(chance.randint(1, 4)):
        kind = chance.random()
        if kind < 0.45 and depth < 3:
            name = chance.choice([*INLINE, "gui", "x-y"])
            parts.append(f'<{name} id="{chance.randint(1, 99)}">{tagged(chance, depth + 1)}</{name}>')
        elif kind < 0.55:
            parts.append(chance.choice(["<img src='a'/>", "{name}", "2.500", "<x id='7'/>", "&amp;", "5 km"]))
        else:
            parts.append(" ".join(chance.sample(WORDS, chance.randint(1, 3))))
        parts.append(chance.choice([" ", " ", " ", ", ", ""]))
    return "".join(parts)


@ANSWERING
@given(chance=st.randoms(use_true_random=False))
def test_what_held_a_word_holds_one(answer: Answer, chance: random.Random) -> None:
    text = f"Das {tagged(chance)} ist {tagged(chance)}."
    found = translated(text, shipped(), HTML, answer).text
    assert_hold_words(text, found)


@ANSWERING
@given(chance=st.randoms(use_true_random=False), max_tokens=st.integers(3, 20))
def test_a_truncated_sentence_keeps_every_tag(answer: Answer, chance: random.Random, max_tokens: int) -> None:
    text = f"Das {tagged(chance)} ist {tagged(chance)} und {tagged(chance)}."
    options = replace(HTML, length_policy=LengthPolicy.TRUNCATE)
    found = translated(text, taking(max_tokens), options, answer).text
    assert elements(found)[0] == elements(text)[0], (text, found)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # A number's figure is left of it, and its unit is not.
        ("Am 3. {a} sind 12.000 km weit.", "12,000"),
        ("Das ist {a} 北京 und wieder gut und wieder gut", "北京"),
    ],
)
def test_what_is_left_of_a_truncated_sentence_is_kept(text: str, kept: str) -> None:
    options = replace(HTML, length_policy=LengthPolicy.TRUNCATE)
    assert kept in translated(text, taking(9), options, forgets).text


def test_what_is_behind_the_end_of_a_truncated_sentence_is_not_put_back() -> None:
    options = replace(HTML, length_policy=LengthPolicy.TRUNCATE)
    found = translated(f"Das ist gut und {'sehr gut ' * 30}北京 da", taking(9), options, forgets)
    assert found.text == "it is good"


@pytest.mark.parametrize(
    ("tag", "is_translated"),
    [
        ('<span translate="yes" class="notranslate">', False),
        ('<span class="a notranslate">', False),
        ('<code translate="yes">', True),
        ("<code>", False),
    ],
)
def test_a_text_and_a_page_translate_the_same_elements(bundle: Bundle, tag: str, is_translated: bool) -> None:
    text = f"Hund {tag}Haus</{tag[1:].split()[0].rstrip('>')}> heute."
    shown, notes = noting(copies)
    translated(text, bundle, HTML, notes)
    assert ("Haus" in " ".join(shown)) == is_translated
    stream = io.BytesIO(text.encode())
    page = Input(name="page.html", stream=stream, position=stream.tell)
    [unit] = open_format("html", FormatOptions()).units(page)
    assert ("Haus" in unit.text) == is_translated


@pytest.mark.parametrize(
    "text", ["<p>Ja.</p> <i title='Der {}'>Ja.</i>", "Ja. Es {{n, plural, one {{ist {}}} other {{sind #}}}}"]
)
def test_a_part_that_is_too_long_is_told_by_its_place_in_the_whole_text(text: str) -> None:
    long = "Hund " * 12 + "Hund"
    options = replace(HTML, length_policy=LengthPolicy.REJECT)
    with pytest.raises(UnitTooLongError) as raised:
        prepare(text.format(long), taking(9), options, None)
    start, end = raised.value.span
    assert text.format(long)[start:end].endswith(long), raised.value


def test_a_part_that_is_around_nothing_is_asked_for_by_itself(bundle: Bundle) -> None:
    """Of a model whose attention says nothing."""
    asked: list[str] = []

    def says(answers: dict[str, str]) -> tuple[str, list[WarningKind]]:
        asked.clear()

        def answer(shown: str) -> str:
            asked.append(shown)
            return answers.get(shown, shown)

        found = translated("Das Haus ist <b>rot</b>.", bundle, HTML, answer, is_blind=True)
        return found.text, [warning.kind for warning in found.warnings]

    whole = "Das Haus ist rot."
    # It is found in the sentence.
    assert says({"rot": "Red", whole: "A red house."}) == ("A <b>red</b> house.", [])
    assert whole in asked
    assert "rot" in asked
    # Its mask comes out.
    masked = [shown for shown in asked if shown not in (whole, "rot")]
    answers = {shown: f"Yes, {shown.split()[-1][:-1]} it is." for shown in masked}
    assert says({"rot": "red", whole: "Nothing.", **answers}) == ("Yes, <b>red</b> it is.", [])
    # Neither: the sentence is asked for around it.
    nothing = {"rot": "red", whole: "Nothing."}
    nothing |= {shown: "Nothing." for shown in asked if shown not in nothing}
    found, kinds = says({**nothing, "Das Haus ist": "The house is"})
    assert (found, kinds) == ("The house is <b>red</b>.", [WarningKind.SPAN_PUT_BACK])
    # The model says nothing at all: what stood there stays.
    assert says({**nothing, "Das Haus ist": "", "rot": "..."})[0] == "Das Haus ist <b>rot</b>."


def test_the_inner_one_of_two_elements_is_masked(bundle: Bundle) -> None:
    shown, notes = noting(forgets)
    translated("Das <b>sehr alte <i>Haus</i></b> steht.", bundle, HTML, notes, is_blind=True)
    masked = {text for text in shown if "steht" in text and "Haus" not in text}
    assert any(text.startswith("Das sehr alte ") for text in masked), shown


@pytest.mark.skipif(not GNOME.is_dir(), reason="no ../shared/data/more/docs-gnome here")
def test_none_of_gnomes_elements_is_emptied_by_the_shipped_model() -> None:
    """Mallard's tags around names of buttons, keys and files; 114 of 494 were in 300 such texts."""
    lines = (GNOME / "en-de.en").read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines[::20] if re.search("<(gui|app|em|key|link)", line) and "&" not in line][
        :40
    ]
    with open_bundle_system(
        str(shipped_bundle("en-de")),
        source_language=None,
        target_language=None,
        beam_size=4,
        device="cpu",
        precision="auto",
    ) as system:
        options = TranslationOptions(
            beam_size=4, length_penalty=1.0, text_format=TextFormat.HTML, segmentation=Segmentation.SENTENCE
        )
        found = system.translate_texts(texts, options)
    assert len(texts) == 40
    for text, translation in zip(texts, found, strict=True):
        assert_hold_words(text, translation.text)


@ANSWERING
@given(
    places=st.lists(
        st.sampled_from(["<x id='{}'/>", '<x id="{}"></x>', "<ph id='{}'/>"]), min_size=1, max_size=4
    ),
    chance=st.randoms(use_true_random=False),
)
def test_placeholders_of_xml_are_words(answer: Answer, places: list[str], chance: random.Random) -> None:
    """They come as `{name}` would in their place, with the spaces that it would have."""
    placeholders = [place.format(number) for number, place in enumerate(places)]
    words = chance.choices(WORDS, k=len(places) + 1)
    rows = [
        " ".join(part for pair in zip(words, [*names, ""], strict=True) for part in pair)
        for names in (placeholders, [f"{{name{number}}}" for number in range(len(places))])
    ]
    found, expected = (translated(f"{row.strip()}.", shipped(), HTML, answer).text for row in rows)
    for number, placeholder in enumerate(placeholders):
        expected = expected.replace(f"{{name{number}}}", placeholder)
    assert found == expected


def test_a_tag_keeps_its_spaces_and_its_side(bundle: Bundle) -> None:
    for text in (
        "Der <img/> Hund <wbr/>ist da<br2/> und <b>alt</b> <i/> genug.",
        "<img/> <b>Der</b> Hund <!-- a --> <i>ist</i> da.",
        "Der Hund<img/>.",
    ):
        assert translated(text, bundle, HTML, copies).text == text


@ANSWERING
@pytest.mark.parametrize(
    "formula",
    [
        *("H<sub>2</sub>O", "CO<sub>2</sub>", "C<sub>6</sub>H<sub>12</sub>O<sub>6</sub>", "x<sup>2</sup>"),
        *("m<sup>3</sup>", "10<sup>-27</sup>", "H<g1>2</g1>SO<g2>4</g2>", "10<sup>2</sup>"),
    ],
)
@pytest.mark.parametrize("is_automatic", [True, False])
def test_formulas_keep_what_is_raised_or_lowered(answer: Answer, formula: str, is_automatic: bool) -> None:
    options = replace(HTML, protection=Protection(is_automatic=is_automatic))
    found = translated(f"Ich habe {formula} gesehen.", shipped(), options, answer).text
    assert_hold_words(formula, found)
    if is_automatic:
        assert found.count(formula) == 1


@ANSWERING
@pytest.mark.parametrize("note", ["<sup>1</sup>", '<sup><a href="#n1">[12]</a></sup>', "<g7>3</g7>"])
def test_footnotes_stand_behind_a_word_and_are_none(answer: Answer, note: str) -> None:
    for text in (f"Das Haus{note} ist alt.", f"Das Haus ist alt{note}."):
        found = translated(text, shipped(), HTML, answer).text
        assert found.count(note) == 1, found
        assert answer is not copies or found == text
    if note.startswith("<sup"):
        assert translated(f"Das Haus ist alt.{note}", shipped(), HTML, answer).text.count(note) == 1


READ = {"alt", "title", "placeholder", "aria-label"}
"""The attributes that HTML's standard calls translatable, of those that any element may have."""


def capitals(shown: str) -> str:
    return shown.upper()


@given(chance=st.randoms(use_true_random=False))
def test_what_attributes_say_is_translated_and_nothing_else_of_them(chance: random.Random) -> None:
    """Among attributes that lxml knows as links, and others."""
    others = [*sorted(link_attrs - {"xlink:href"}), "class", "id", "style", "data-title", "name", "type"]
    parts = []
    for _ in range(chance.randint(1, 4)):
        name = chance.choice([*INLINE, *sorted(empty_tags - {"frame", "basefont", "param"}), "p", "button"])
        chosen = chance.sample([*others, *sorted(READ)], chance.randint(1, 4))
        attributes = "".join(f" {each}={chance.choice(['#hund#', '~ein alt~'])}" for each in chosen)
        attributes = attributes.replace("#", '"').replace("~", "'")
        parts.append(
            f"<{name}{attributes}/>"
            if name in empty_tags
            else f"<{name}{attributes}>{chance.choice(WORDS)}</{name}>"
        )
    text = " ".join(parts)
    found = translated(text, shipped(), HTML, capitals).text

    def said(page: str, change: bool) -> Counter[tuple[str, str, str]]:
        root = etree.fromstring(f"<root>{page}</root>")
        return Counter(
            (element.tag, name, value.upper() if change and name in READ else value)
            for element in root.iter(etree.Element)
            for name, value in element.items()
        )

    assert said(found, False) == said(text, True)


def test_a_page_says_its_new_language_and_what_is_for_people(bundle: Bundle) -> None:
    page = (
        '<html lang="de-AT" xml:lang=\'de\'><head><meta name="description" content="der hund">'
        '<meta name="viewport" content="der hund"></head><body lang="fr"><!-- <img alt="hund"> -->'
        '<img alt="hund"><input type=submit value=hund><input value="hund"><option label="hund">'
        '<p translate="no" title="hund">hund <b title="hund">x</b></p><code title="hund">hund</code></html>'
    )
    expected = page.replace("lang=\"de-AT\" xml:lang='de'", "lang=\"en\" xml:lang='en'")
    for before, after in (
        ('"description" content="der hund"', '"description" content="DER HUND"'),
        ('-><img alt="hund"', '-><img alt="HUND"'),
        ("submit value=hund", 'submit value="HUND"'),
        ('option label="hund"', 'option label="HUND"'),
    ):
        expected = expected.replace(before, after)
    found = translated(page, bundle, HTML, capitals).text
    assert found == expected


def test_a_quote_in_a_translation_does_not_end_its_attribute(bundle: Bundle) -> None:
    def quotes(shown: str) -> str:
        return "a \"b\" 'c' e"

    found = translated("<i title=\"hund\">hund</i> <i title='hund'>hund</i>", bundle, HTML, quotes).text
    titles = [element.get("title") for element in etree.fromstring(f"<root>{found}</root>").iter("i")]
    assert titles == ["a \"b\" 'c' e"] * 2


def test_places_are_those_of_the_callers_text(bundle: Bundle) -> None:
    text = 'Der <i title="hund 北京 ja">Hund ist da.</i> Er heißt 东京 heute.'
    found = translated(text, bundle, HTML, copies)
    assert {text[slice(*warning.span)] for warning in found.warnings} >= {"hund 北京 ja", "东京"}
    assert found.text == text
    links = found.hypotheses[0].alignments
    assert links
    assert all(text[slice(*link.source)] == found.text[slice(*link.target)] for link in links)
    # So are the ranges that the caller protects.
    place = text.index("Hund")
    found = translated(text, bundle, HTML, forgets, ranges=[(place, place + 4)])
    assert found.text.count("Hund") == 1


def test_fields_and_drawings_have_texts(bundle: Bundle) -> None:
    page = "<p>hund</p><textarea>hund\nund katze</textarea>"
    page += "<svg><title>hund</title><g><text x='1'>maus</text></g></svg>"
    found = translated(page, bundle, HTML, capitals).text
    assert found == re.sub(">[^<]+<", lambda text: text[0].upper(), page)


def test_entities_and_declarations_of_xml_stay(bundle: Bundle) -> None:
    page = (
        "<?xml version='1.0'?>\n<!DOCTYPE dm [\n <!ENTITY marke \"Firma\">\n <!ENTITY b 'x'>\n]>\n"
        "<dm><p>Kaufen Sie &marke; jetzt.</p><p>&b;</p></dm>"
    )
    for answer in ANSWERS:
        found = translated(page, bundle, HTML, answer).text
        assert found[: found.index("<dm>")] == page[: page.index("<dm>")]
        assert Counter(re.findall(r"&\w+;", found)) == Counter(re.findall(r"&\w+;", page))
        assert "Firma" in "".join(etree.fromstring(found).itertext())


@pytest.mark.parametrize(
    "part",
    ['<i title="hund">', '<i title="hund {}">ja</i> ', "H<sub>2</sub>O ", "<x id='{}'/> ", "<textarea>\n"],
)
def test_they_take_time_in_proportion_to_the_text(bundle: Bundle, part: str) -> None:
    def translates(size: int) -> None:
        text = "".join(part.format(number) for number in range(size))
        assert translated(text, bundle, HTML, copies).text.count("<") == text.count("<")

    assert_linear(translates, 100)


def test_a_sign_that_begins_no_reference_is_a_part_of_its_word():
    shown, notes = noting(copies)
    assert translated("Das <b>ist</b> unser R&D", shipped(), HTML, notes).text.endswith("R&amp;D")
    assert shown == ["Das ist unser R&D"]


@pytest.mark.parametrize("name", sorted(tags - {"command", "isindex", "keygen"}))
def test_a_text_and_a_page_end_sentences_at_the_same_tags(bundle: Bundle, name: str) -> None:
    end = "" if name in {*empty_tags, "embed", "source", "track", "wbr"} else f"</{name}>"
    text = f"Der Hund <{name}>hat{end} heute gebellt."
    units = prepare(text, bundle, HTML, None).units
    stream = io.BytesIO(text.encode())
    page = Input(name="page.html", stream=stream, position=stream.tell)
    of_page = open_format("html", FormatOptions()).units(page)
    assert (len(units) > 1) == (len(list(of_page)) > 1)

"""What is kept whatever the model answers."""

import html
import random
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from mimetypes import types_map

import pytest
from dragoman_bundle import Bundle
from dragoman_bundle.decoding import Confidence
from hypothesis import example, given
from hypothesis import strategies as st
from pygments.lexers import get_all_lexers
from tests.growth import assert_linear
from tests.server.text.answering import (
    ALIGNED,
    ANSWERING,
    ANSWERS,
    HTML,
    PLAIN,
    Answer,
    copies,
    forgets,
    noting,
    shipped,
    shuffles,
    translated,
)

from benchmarks.scenarios.text import quantities
from dragoman_server.text.find.numbers import missing_numbers, numbers_in
from dragoman_server.text.find.terms import Term, TermIndex
from dragoman_server.text.mapped import Span
from dragoman_server.text.options import LengthPolicy, Protection, TranslationOptions

DATA = files("dragoman_server.text.find")

WORDS = st.sampled_from([
    "Ich", "habe", "heute", "einen", "Hund,", "gesehen.", "Er", "ist", "GROSS", "und", "sehr", "alt!",
    "Wirklich?", "Ja",
])  # fmt: skip
SPANS = st.sampled_from([
    "{name}", "{0}", "%s", "%1$s", "%(x)s", "${x}", "{{x}}", ":item", "www.beispiel.de", "https://a.de/b?c=1",
    "info@beispiel.de", "#Berg", "@anna", "👩\u200d👩\u200d👧", "👍🏽", "Łódź", "北京", "/etc/hosts",
    "AB-4711/X", "DE89 3704 0044 0532 0130 00", "m²", "`x = 1`", "{d, date, long}",
])  # fmt: skip
HOSTS = [
    word
    for line in DATA.joinpath("hosts.txt").read_text().splitlines()
    if line[0] != "#"
    for word in line.split()
]
"""IANA's top-level domains."""
FILES = sorted(
    ending[1:] for ending, kind in types_map.items() if kind.startswith("image/") and ending != ".ras"
)
"""Endings of pictures, as Python knows them; one is a word."""


@ANSWERING
@given(parts=st.lists(WORDS | SPANS, min_size=1, max_size=12))
def test_protected_spans_come_out_once_each(answer: Answer, parts: list[str]) -> None:
    text = " ".join(parts)
    shown, notes = noting(answer)
    found = translated(text, shipped(), ALIGNED, notes)
    for span in {part for part in parts if not re.fullmatch(r"[A-Za-z]+[.,!?]?", part)}:
        assert found.text.count(span) == text.count(span), (span, text, found.text)
    # What stood for them is not in what goes out.
    masks = {word for word in re.findall(r"\w+", " ".join(shown)) if word.casefold() not in text.casefold()}
    assert not masks.intersection(re.findall(r"\w+", found.text)), (shown, found.text)
    for hypothesis in found.hypotheses:
        for link in hypothesis.alignments:
            assert 0 <= link.source[0] < link.source[1] <= len(text)
            assert 0 <= link.target[0] < link.target[1] <= len(hypothesis.text)


@ANSWERING
@pytest.mark.parametrize("languages", [("zh", "en"), ("en", "zh"), ("de", "ja")], ids="-".join)
@given(parts=st.lists(WORDS | SPANS.filter(str.isascii), min_size=1, max_size=8))
def test_so_they_do_without_spaces(answer: Answer, languages: tuple[str, str], parts: list[str]) -> None:
    manifest = replace(shipped().manifest, source_language=languages[0], target_language=languages[1])
    text = " ".join(parts)
    found = translated(text, replace(shipped(), manifest=manifest), ALIGNED, answer)
    for span in {part for part in parts if not re.fullmatch(r"[A-Za-z]+[.,!?]?", part)}:
        assert found.text.count(span) == text.count(span), (span, text, found.text)


@pytest.mark.parametrize("direction", ["de-en", "en-de"])
@given(
    host=st.sampled_from(HOSTS),
    file=st.sampled_from(FILES),
    placeholder=st.tuples(
        st.sampled_from(["", "1$", "2$"]), st.sampled_from(["", "-", "+", "0"]), st.sampled_from("sdiufgx")
    ),
)
def test_hosts_and_files_stay(direction: str, host: str, file: str, placeholder: tuple[str, ...]) -> None:
    spans = [f"beispiel.{host}", f"bild.{file}", "%" + "".join(placeholder)]
    found = translated(f"Hallo {', '.join(spans)} heute.", shipped(direction), ALIGNED, forgets)
    for span in spans:
        assert found.text.count(span) == 1, found.text


KEYS = st.from_regex(
    r"(Ctrl|Strg|Alt|Shift|Cmd|AltGr|Win)(\+(Shift|Alt|Umschalt)){0,2}"
    r"\+([A-Z0-9]|F(1[0-2]|[1-9])|Tab|Esc|Space|Leertaste|Pos1|PageUp|Entf|Einfg)",
    fullmatch=True,
)
FORMULAS = st.from_regex(r"([A-Z][a-z]?[₂-₉]|\([A-Z][a-z]?[₂-₉]\)[₂-₉]){1,4}([²³]?[⁺⁻])?", fullmatch=True)
FLAGS = st.from_regex(
    r"-[a-zA-Z][0-9]{0,3}|--[a-z]{1,9}([-_][a-z0-9]{1,9}){0,3}(=[a-z0-9]{1,9})?", fullmatch=True
)
FUNCTIONS = st.from_regex(
    r"[a-z]{2,9}(_[a-zA-Z0-9]{1,9}){1,3}|([A-Za-z]{2,9}(::|\.|->)){0,2}[a-z]{2,9}[(][)]|[a-z]{2,9}::[a-z]{2,9}",
    fullmatch=True,
)
LATEX = st.from_regex(
    r"\$\$[a-z]\^[0-9]\$\$|\$[a-z]_[0-9] \+ [a-z]\$|\\(alpha|frac\{[a-z]\}\{[0-9]\})", fullmatch=True
)
SUFFIXES = sorted(
    {name[2:] for _, _, names, _ in get_all_lexers() for name in names if re.fullmatch(r"\*\.[a-z]\w+", name)}
)
"""Endings of sources, as Pygments knows them."""
NOT_ENDINGS = frozenset(
    suffix for suffix in SUFFIXES if re.search("[aeiouy]", suffix) and suffix not in types_map
)
CODES = st.one_of(
    KEYS,
    FORMULAS,
    FLAGS,
    FUNCTIONS,
    LATEX,
    st.ip_addresses(v=6).map(str).filter("::".__ne__),
    st.binary(min_size=6, max_size=6).map(lambda mac: mac.hex(":")),
    st.datetimes().map(lambda time: f"{time.isoformat()}Z"),
    st.sampled_from(sorted({*SUFFIXES} - NOT_ENDINGS)).map("quelle.{}".format),
)


@ANSWERING
@pytest.mark.parametrize("options", [ALIGNED, HTML], ids=["plain", "html"])
@given(code=CODES, direction=st.sampled_from(["de-en", "en-de"]))
def test_codes_stay_whole(answer: Answer, options: TranslationOptions, code: str, direction: str) -> None:
    text = f"Hallo {code} heute"
    if options is HTML:
        text = html.escape(text, quote=False)
    found = translated(text, shipped(direction), options, answer).text
    found = html.unescape(found) if options is HTML else found
    assert len(re.findall(rf"(?<!\w){re.escape(code)}(?!\w)", found)) == 1, found


@ANSWERING
@given(
    parts=st.lists(
        WORDS
        | st.sampled_from(
            [
                *("2.500", "-5", "3,5", "17:30", "3.5.2023", "1848", "0301", "1234567", "20.", "1.000.000"),
                *("0071", "1½", "½", "10²", "2023-05-03", "8-10", "+49 (0)30 / 12 45-89", "1.2.3", "25:13"),
            ]
        ),
        min_size=1,
        max_size=10,
    )
)
def test_numbers_keep_their_values(answer: Answer, parts: list[str]) -> None:
    # What has no letter is no text.
    text = " ".join(f"{part} ja" if part[-1].isdigit() else part for part in parts)
    found = translated(text, shipped(), ALIGNED, answer)
    numbers = numbers_in(text, "de")
    assert missing_numbers(numbers, found.text, source_language="de", target_language="en") == []


@ANSWERING
@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de")], ids="-".join)
@given(chance=st.randoms(use_true_random=False))
def test_a_number_keeps_its_unit(answer: Answer, languages: tuple[str, str], chance: random.Random) -> None:
    """Quantities, sums, dates and times as Babel writes them, and as it says that the target may."""
    written, expected = quantities.draw(chance, *languages)
    found = translated(f"Hallo {written} ja", shipped("-".join(languages)), ALIGNED, answer).text
    assert re.search(expected, found), (written, found)


def test_numbers_that_are_lost_are_put_back_as_one_with_their_signs(bundle: Bundle) -> None:
    def loses(shown: str) -> str:
        return re.sub(r"[-–%()+]", "", re.sub(r"\b0,5|8|10|030|45\b", "7", shown))

    for text in (
        "Das sind 0,5 % von uns.",
        "Von 8-10 Uhr da.",
        "Ruf +49 (0)30-45 an.",
        "Es sind 8 % bis 10‰.",
    ):
        found = translated(text, bundle, ALIGNED, loses).text
        assert found == text.replace("0,5 %", "0.5%").replace("10 Uhr", "10 AM").replace("8 %", "8%")
    # What follows may be something else.
    assert "8 %s" in translated("Von 8 %s da.", bundle, ALIGNED, loses).text


@ANSWERING
@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("en", "es"), ("en", "nl"), ("es", "en")])
def test_numbers_stay_in_other_languages(bundle: Bundle, answer: Answer, languages: tuple[str, str]) -> None:
    source, target = languages
    manifest = replace(bundle.manifest, source_language=source, target_language=target)
    for number in (
        *("12,500.75", "12.500,75", "12 500", "0.5", "1.5", "-3", "5:30", "12/31/2024", "2024-12-31", "3/4"),
    ):
        found = translated(f"Das sind {number} da.", replace(bundle, manifest=manifest), ALIGNED, answer).text
        lost = missing_numbers(numbers_in(number), found, source_language=source, target_language=target)
        assert not lost, found


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Leute warten.", "Leute warten."),
        ("Die Leute warten.", "die Leute warten."),
        ("Es geht.", "es geht."),
    ],
)
def test_a_part_of_a_sentence_begins_small_but_for_a_german_noun(answer: str, expected: str) -> None:
    names = ", ".join(f"{{{letter}}}" for letter in "abcdefghijklm")
    found = translated(f"Hello {names}: people are waiting.", shipped("en-de"), ALIGNED, lambda _: answer)
    assert found.text.endswith(f"{names}: {expected}")


PIECES = st.sampled_from([
    "<br>", "<img src='a>b'>", "&amp;", "&lt;", "&uuml;ber", "10&nbsp;km", "<!-- c -->",
    "<code>a <b>x</b></code>", "{name}", "😀", "<x id='1'/>", "2.500", "8-<b>10</b>", "www.beispiel.de",
])  # fmt: skip
MARKUP = st.recursive(
    st.lists(WORDS | PIECES, min_size=0, max_size=4).map(" ".join),
    lambda inner: st.tuples(
        st.sampled_from(["b", "i", "p", "a", "span", "g", "li"]),
        st.lists(inner, max_size=3),
        st.sampled_from(["", " "]),
    ).map(lambda made: f'<{made[0]} title="&amp;">{made[2].join(made[1])}</{made[0]}>'),
    max_leaves=8,
)


class Tags(HTMLParser):
    """The tags of a text, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.raw: Counter[str] = Counter()
        self.open: list[str] = []
        self.nests = True
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.raw[self.get_starttag_text() or ""] += 1
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.raw[self.get_starttag_text() or ""] += 1

    def handle_endtag(self, tag: str) -> None:
        self.raw[f"/{tag}"] += 1
        self.nests = self.nests and bool(self.open) and self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.raw[data] += 1

    def handle_entityref(self, name: str) -> None:
        if name != "uuml":
            self.raw[f"&{name}"] += 1


@ANSWERING
@example(text="Es sind 1<b>,5</b> da. Das д<b>ом</b> Haus.")
@given(text=MARKUP)
def test_every_tag_is_there_once_and_they_nest(answer: Answer, text: str) -> None:
    before = Tags(text)
    after = Tags(translated(text, shipped(), HTML, answer).text)
    assert before.nests
    assert (after.raw, after.nests, after.open) == (before.raw, True, [])


@pytest.mark.parametrize(
    "opener", ["<b>", "<p>", "<i><p>", "</b>", "<", "&", "<!--", "<![CDATA[", "<a href='"]
)
def test_what_is_not_well_formed_is_unharmed(bundle: Bundle, opener: str) -> None:
    text = f"Ein {opener} Hund ist {opener} da."
    # A sign that the model knows is translated, and written as markup wants it.
    copied = html.unescape(translated(text, bundle, HTML, copies).text)
    assert copied.replace(" ", "") == text.replace(" ", "")
    is_text = opener.startswith(("<!", "<a")) or opener in "<&"
    assert is_text or translated(text, bundle, HTML, forgets).text.count(opener) == 2


@ANSWERING
@pytest.mark.parametrize("tag", ["<a href=x", "<a title='Ein Hund", "<b", "</b", "</p"])
def test_a_tag_that_the_end_of_the_text_cuts_off_is_no_text(bundle: Bundle, answer: Answer, tag: str) -> None:
    found = translated(f"<p>Der Hund ist <b>da. {tag}", bundle, HTML, answer)
    assert found.text.endswith(tag)
    assert found.text.count("<") == 3


def test_a_tag_of_html_without_an_end_may_have_one_in_other_markup(bundle: Bundle) -> None:
    text = "Tippen Sie <input>Wort</input> ein <input> und mehr."
    for answer in ANSWERS:
        found = translated(text, bundle, HTML, answer).text
        assert found.index("<input>") < found.index("</input>"), found
        assert (found.count("<input>"), found.count("</input>")) == (2, 1)


@pytest.mark.parametrize("reference", ["&nbsp;", "&#160;", "&#xA0;", "&thinsp;"])
def test_a_no_break_space_parts_words_and_comes_back(bundle: Bundle, reference: str) -> None:
    shown, notes = noting(copies)
    text = f"Das{reference}ist 10{reference}km <b>weit{reference}weg</b>."
    assert translated(text, bundle, HTML, notes).text == text
    assert shown == ["Das ist 10 km weit weg."]
    # It stands beside the words that it stood beside, and not beside a space.
    found = translated(text, bundle, HTML, shuffles).text
    assert found.count(reference) == 3
    assert f"{reference} " not in found


def test_ten_thousand_nested_tags_come_back(bundle: Bundle) -> None:
    decoding = replace(bundle.manifest.decoding, max_source_tokens=10_000)
    large = replace(bundle, manifest=replace(bundle.manifest, decoding=decoding))
    # Around one sentence, too, of a model that takes it.
    for of, word, count in ((bundle, "Hund", 10_000), (large, "a", 1_000)):
        text = "Ein " + f"<b>{word} " * count + "ist " + "</b>" * count + "da."
        found = translated(text, of, HTML, copies)
        assert (found.text.count("<b>"), found.text.count("</b>")) == (count, count)
        tags = Tags(found.text)
        assert (tags.nests, tags.open) == (True, [])
        assert of is bundle or found.num_units == 1


@pytest.mark.parametrize(
    ("text", "is_html"),
    [("<div><br><i></i><!-- Ja. --></div> ", True), ("{name} www.beispiel.de\n\n  %s `Ja.` 😀", False)],
)
def test_nothing_but_tags_or_protected_spans_comes_back(bundle: Bundle, text: str, is_html: bool) -> None:
    found = translated(text, bundle, HTML if is_html else ALIGNED, forgets)
    assert (found.text, found.num_units, found.hypotheses) == (text, 0, ())


def test_ranges_and_more_spans_than_there_are_masks_are_kept_and_never_cut(bundle: Bundle) -> None:
    text = "Der gro\u00adße Hund ist da."
    start = text.index("gro")
    assert "gro\u00adße" in translated(text, bundle, ALIGNED, forgets, [(start, start + 6)]).text
    spans = [f"{{name{place}}}" for place in range(40)]
    found = translated("Das ist " + " und ".join(spans) + ".", bundle, ALIGNED, forgets)
    assert [found.text.count(span) for span in spans] == [1] * 40
    span = "{n, number, :: Satz. Ja, gut. compact-short und so weiter}"
    text = f"Das ist gut und schön {span} und wieder gut, " * 30
    found = translated(text, bundle, ALIGNED, copies)
    assert found.split
    assert found.text.count(span) == 30


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("der HundTOMist da", (8, 11), "it is good TOM it is good"),
        ("der Hund，TOM", (9, 12), "it is good, TOM"),
        ("TOM、der Hund", (0, 3), "TOM, it is good"),
        ("der Hund TOM ist da", (9, 12), "it is good TOM it is good"),
        ("der Hund， TOM ", (9, 14), "it is good， TOM "),
    ],
)
def test_kept_spans_have_spaces_as_languages_do(bundle: Bundle, text: str, span: Span, expected: str) -> None:
    manifest = replace(bundle.manifest, source_language="zh", target_language="en")
    found = translated(text, replace(bundle, manifest=manifest), ALIGNED, forgets, [span])
    assert found.text == expected


@pytest.mark.parametrize("before", ["{a}", "alt"])
def test_what_is_truncated_is_missing_and_told(bundle: Bundle, before: str) -> None:
    text = f"Das ist {before} und {'wieder gut ' * 200}{{b}} da."
    found = translated(text, bundle, replace(PLAIN, length_policy=LengthPolicy.TRUNCATE), forgets)
    assert found.truncated
    assert (found.text.count("{a}"), found.text.count("{b}")) == (before.count("{a}"), 0)
    assert "span_missing" in [warning.kind.value for warning in found.warnings]


def test_protection_can_be_off(bundle: Bundle) -> None:
    options = replace(PLAIN, protection=Protection(is_automatic=False))
    found = translated("Hallo {name}, 27!", bundle, options, forgets)
    assert found.text == "it is good"
    assert ("number_missing", (14, 16)) in [(each.kind.value, each.span) for each in found.warnings]


@pytest.mark.parametrize(("answer", "rounds"), [(copies, 1), (forgets, 3)])
def test_the_seconds_of_a_text_are_those_of_all_rounds(bundle: Bundle, answer: Answer, rounds: int) -> None:
    timings = translated("Das ist {name} von mir.", bundle, ALIGNED, answer).timings
    assert (timings.queue, timings.encode, timings.decode) == (rounds, 2 * rounds, 4 * rounds)


@pytest.mark.parametrize(
    ("length_ratio", "answer", "kinds"),
    [
        (None, "gut gut gut gut", ["repetition"]),
        # Three times as many characters and twenty more.
        (None, "it was good and it will never be as bad as before.", []),
        (None, "it was good and it will never be so bad as ever before.", ["length"]),
        # Twice as many as are usual, and ten more.
        (1.5, "it was good and will never be as bad as.", []),
        (1.5, "it was good and will never be as bad now.", ["length"]),
        # 65% of them, and three less: 3.5 characters.
        (1.0, "its.", []),
        (1.0, "it.", ["omission"]),
    ],
)
def test_what_a_search_does_wrong_is_told(
    bundle: Bundle, length_ratio: float | None, answer: str, kinds: list[str]
) -> None:
    confidence = None
    if length_ratio is not None:
        numbers = dict.fromkeys(("intercept", "log_probability", "shortness", "repetition"), 0.0)
        confidence = Confidence(**numbers, length_ratio=length_ratio, sentences=500)
    bundle = replace(bundle, manifest=replace(bundle.manifest, confidence=confidence))
    found = translated("Es ist da.", bundle, ALIGNED, lambda _: answer)
    assert [(each.kind.value, each.span) for each in found.warnings] == [(kind, (0, 10)) for kind in kinds]


def with_terms(*terms: Term, options: TranslationOptions = PLAIN) -> TranslationOptions:
    return replace(options, protection=Protection(finders=(TermIndex(list(terms)),)))


@pytest.mark.parametrize(
    ("text", "answer"),
    # In the second one a term's translation is a part of another's.
    [("Der Hund ist da", "The dog is there"), ("Der Hund und der große Hund", "The big dog and the dog")],
)
def test_a_glossary_changes_nothing_where_its_terms_are_there(bundle: Bundle, text: str, answer: str) -> None:
    shown, notes = noting(lambda _: answer)
    options = with_terms(Term(source="Hund", target="dog"), Term(source="große Hund", target="big dog"))
    assert translated(text, bundle, options, notes).text == answer
    assert shown == [text]
    # The longest counts, and is put where the model lacks it.
    assert "big dog" in translated("Der große Hund ist da", bundle, options, lambda _: "The dog").text


@ANSWERING
def test_a_term_is_there_whatever_the_model_says(bundle: Bundle, answer: Answer) -> None:
    options = with_terms(Term(source="hund", target="hound"), Term(source="NATO", target=None))
    text = translated("Der Hund, die NATO und hund. HUND. Hundert.", bundle, options, answer).text
    words = Counter(re.findall(r"\w+", text))
    assert min(words["Hound"], words["hound"]) >= 1, text
    assert (words["HOUND"], words["NATO"]) == (1, 1)
    # One of two sentences is one.
    options = with_terms(Term(source="Ja. Nein", target="perhaps"))
    assert translated("Er sagt: Ja. Nein.", bundle, options, answer).text.count("perhaps") == 1


def test_a_term_in_markup_is_escaped(bundle: Bundle) -> None:
    options = with_terms(Term(source="Hund", target="a < b"), options=HTML)
    assert translated("<p>Hund</p>", bundle, options, forgets).text == "<p>a &lt; b</p>"


@ANSWERING
@pytest.mark.parametrize(
    "source", ["Ein Hund, der viel länger ist als der Satz", "Hund ist da. Ja", "Hund" * 999]
)
def test_a_term_longer_than_the_sentence_changes_nothing(bundle: Bundle, answer: Answer, source: str) -> None:
    options = with_terms(Term(source=source, target="cat"), Term(source=source + " nicht", target=None))
    for text in ("Hund ist da.", "Hund"):
        assert translated(text, bundle, options, answer) == translated(text, bundle, PLAIN, answer)


@pytest.mark.parametrize("text", ["駅はどこですか。", "Как дела?", "北京 上海"])
def test_what_cannot_be_read_passes_through_and_is_told(bundle: Bundle, text: str) -> None:
    found = translated(text, bundle, ALIGNED, forgets)
    assert (found.text, found.hypotheses) == (text, ())
    kinds = {warning.kind.value for warning in found.warnings}
    assert kinds == {"foreign_script", "unknown_tokens", "untranslated"}


def test_capitals_are_shown_as_small_letters_and_come_back(bundle: Bundle) -> None:
    shown, notes = noting(copies)
    text = "GUTEN MORGEN {name}, HIER IST DIE NATO!"
    assert translated(text, bundle, ALIGNED, notes).text == text
    assert shown == [
        # The vocabulary has "morgen" and "Morgen".
        "Guten morgen London, hier ist die Nato!",
        "Guten morgen London, hier ist die nato!",
        "Guten Morgen London, Hier Ist Die Nato!",
    ]
    assert translated("NATO", bundle, ALIGNED, copies).text == "NATO"


@pytest.mark.parametrize(
    ("direction", "text", "expected"),
    [
        ("en-de", "How to Find Your {name} Teacher", ["How to find your London teacher"]),
        ("en-de", "I Don't Like Tom McDonald", ["I don't like Tom McDonald"]),
        # Names, and what is none; a language without title case.
        ("en-de", "Mary Jackson", []),
        ("en-de", "The teacher Likes Tom Jackson", []),
        ("de-en", "Der Hund Mag Den Roten Ball", []),
    ],
)
def test_a_heading_in_title_case_is_a_sentence_too(direction: str, text: str, expected: list[str]) -> None:
    shown, notes = noting(copies)
    translated(text, shipped(direction), ALIGNED, notes)
    assert shown == [*expected, text.replace("{name}", "London")]


@pytest.mark.parametrize("part", ["<a ", "<a href='", "<!--", "<!", "<?", "</", "&", "<b>x "])
def test_markup_takes_time_in_proportion_to_the_text(bundle: Bundle, part: str) -> None:
    def translates(size: int) -> None:
        text = part * size
        assert translated(text, bundle, HTML, copies).text.count("<") == text.count("<")

    assert_linear(translates, 2_000 // len(part))


@pytest.mark.parametrize("answer", [copies, forgets])
@pytest.mark.parametrize("options", [ALIGNED, HTML])
@pytest.mark.parametrize(
    "around", ["{}", "{}½", "-{},5", "&#{}", "&#{};", "&#x{};", "{}:00", "#{}", "{{{}}}"]
)
@pytest.mark.parametrize("num_digits", [400, 5_000])
def test_a_number_may_have_any_number_of_digits(
    bundle: Bundle, num_digits: int, around: str, options: TranslationOptions, answer: Answer
) -> None:
    """Python's floats end at 308 digits, and it reads no integers of more than 4,300."""
    number = around.format("1" * num_digits)
    assert number in translated(f"Das sind {number} Euro.", bundle, options, answer).text or answer is forgets

"""What a text costs grows with its length and no faster, whatever it consists of and is looked for in it."""

import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from time import process_time

import pytest
from dragoman_bundle import Bundle
from tests.growth import assert_linear
from tests.server.text.answering import PLAIN, Answer, copies, forgets, translated

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits
from dragoman_server.errors import UnwantedError, Violation
from dragoman_server.service.protection import read_protection
from dragoman_server.service.responses import write_translation
from dragoman_server.text.options import TextFormat, TranslationOptions
from dragoman_server.text.stages import prepare
from dragoman_server.wanted import Wanted

LIMITS = RequestLimits()
NUM_PAIRS = 250
"""Of the 1,711 pairs of characters, those that are tried."""

SETTINGS = [
    (
        f"{text_format.value}, {answer.__name__}",
        answer,
        replace(PLAIN, text_format=text_format, return_alignments=aligned),
    )
    for text_format, (answer, aligned) in product(TextFormat, ((copies, False), (forgets, True)))
]

Make = Callable[[int], tuple[str, pb.Protection]]
"""A text of about so many characters, and what is to be kept of it."""

SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \n\t\x85\u2028„“»«…。€\u00a0\u200d\u0301\ufffc"
LETTERS = ("a", "A", "1", "é", "ﬁ", "½", "²", "看", "입", "😀", "ب")
UNITS = (
    # Abbreviations and sentences of a word.
    "I. ", "A. ", "Dr. ", "z.B. ", "z. B. ", "d.h.", "a. ", "a! ", "Hallo. ", ". . ", "a…a", "3. Mai ",
    "Wo? ",
    # What is kept: code, placeholders, addresses, paths, references, numbers.
    "`a", "``a", "```", "{{", "{%", "{a,", "{a, plural,", "{a, plural, one {", "{a} ", "%(a", "%s ", "${",
    "$a ", "a@a.", "a@a.a@", "a.a.", "http://", "http://a ", "www.", "www.a.", "/a", "/a/", "./", "~/",
    "C:\\", "\\\\", "#a", "@a", "@a@", "a-", "a_1", "AB-1", "0x", "1e", "1e1", "DE12 3456 ", "0000000a", "m²",
    "CO₂", "A₂", "1½", "1.1.", "1,", "1.000.", "1/1/", "12:34 ", "2020-01-01 ", "1 ", "1 000 ", "+1 ", "５",
    # Format strings of many kinds, open and closed, with what comes of those that touch.
    "%%", "1%%", "1.", "%s%s", "%(a)s", "%<a", "%dx", "[[", "[[a]]", "[%", "<%", "<% ", "<?", "*|", "*|a|*",
    "$t(", "$t(a)", "@:", "@:a.", "@:a", "__", "__a", "__a__", "_a", ":a:`", ":a:", ":a-", ":a:`x`", "\\n",
    "a\\n", "{ ", "{ -a } ", "{a}", "{a(", '{"', "<0>", "</0>", "&a", "a&auml;", "&#1;",
    # Times, addresses, formulas, keys, options, functions.
    "2023-05-03T10:00:00", "00:00:00.00 --> ", "00:", "::", "a:", "a::", "$$", "$$a", "\\[", "\\[ a \\(",
    "\\(", "5'", "5'1", "Ctrl+", "Alt + ", "--a", "--a-", "--", "a@a:a/", "a@a.",
    # Messages with choices, those within others, and what is quoted.
    "{a, plural, other {a}}", "{a, plural, one {#} other {# a}} ", "{a, select, a {b} other {c}} a. ", "'{",
    "'{a}'", "''", "{a, plural, other {'", "{ $a ->\n", "{ $a ->\n [a] b\n *[other] a\n}", "\n [a] ",
    "\n *[a] ", '{"{"}', "\U000f0000", "\U000f8000", "\U00100000", "#", "{b}",
    "a()", "a.b(", "a.b", "a_b", "Ａ", "Ａ－",
    "XIV ", "MI", "\\a",
    "Herr ", "Herr A ", "Herr Dr. ", "Aa-", "BBC ", "a BBC ", "O'Aa ", "B&", "21st ", "3. a ", "2,500 ",
    ". » ", "?看", "; Α",
    # Numbers with what they count.
    "1 km ", "1km", "$1", "$", "1 €", "EUR 1 ", "EUR", "3. Mai ", "3. Mai 2024 ", "Mai ", "3 Uhr ",
    "3:15 p.m. ",
    "1 m²", "5 ", "1-Tage-", "½ a ",
    # Signs that the model can't read, marks, emoji, other scripts, capitals.
    "\ufffb", "\u202e", "a\u0301", "\u0301a", "👨\u200d👩\u200d", "🇩🇪", "😀a ", "입a", "看a.", "а ", "ÄÖ ",
    "Łódź ",
    # Lists, tables, headings, quotations.
    "* a\n", "1. a\n", "a) ", "- ", "(1) ", "> ", "# a\n", "| a ", "a\t", "[14:05] ", "a\n", "/* a\n",
    "a */\n",
    # Markup: empty elements, attributes, blocks, references, and what nobody closed.
    "<a", "<a ", '<a href="', "<!--", "<!-- ", "-->", "<![CDATA[", "<?", "</", "</a>", "<a>", "<b>a", "<br>a",
    "<a><b>", "<b></b>", "<b></b>a", "a<img>", "<img/>", "x<", "< a", "<a/", "=<", 'a="', "<style>", "<pre>a",
    "<p translate=no>", "<ruby><rt>", "<li>a", "<td>a</td>", "<h1>a</h1>", "<tr>", "&#", "&#x", "&lt;",
    "&amp;a", "<a b=c d=\"e\" f='g'>x</a>", '<span class="notranslate">a</span> ', "<b>a</b> ", "a&nbsp;",
    "<!-- a -->a",
)  # fmt: skip
NESTS = (
    ("(", ")"), ("((", "a) "), ("„", "“ "), ("{", "}"), ("{a, plural, one {", "}}"),
    ("{a, plural, other {", "}}"), ("{a, select, a {b} other {c ", "}} d"), ("{ $a ->\n *[b] ", "\n}"),
    ("[", "]"),
    ("<!--", "-->"), ("<b>", "</b>"), ("<b>a ", "</b> a"), ("<div>", "</div>"), ("<b><i>", "</b></i>"),
    ("<span translate=no>", "</span>"), ("<ul><li>a", "</ul>"), ("<b>a ", ""), ("a ", "</b>"),
    ("<code>", "</code>"), ("", ">"),
)  # fmt: skip
HEADS = (
    '<a href="', "<a ", "<!--", "{a, plural, one {", "{a, plural, other {b}} ", "{ $a ->\n *[b] ", "http://",
    "`", "``", "“", "#", "@", "1", "a.", "<b>",
    "$", "&#",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A kind of text, and how it is asked for."""

    name: str
    make: Make
    answer: Answer
    options: TranslationOptions

    def __str__(self) -> str:
        return self.name

    def check(self, bundle: Bundle) -> None:
        assert_linear(
            lambda size: self.answered(size, bundle),
            LIMITS.max_text_characters // 64,
            LIMITS.max_text_characters // 2,
        )

    def answered(self, size: int, bundle: Bundle) -> None:
        """A message goes through to its answer."""
        text, message = self.make(size)
        violations: list[Violation] = []
        protection = read_protection(message, ("de", "en"), {}, LIMITS, violations)
        options = replace(self.options, protection=protection)
        write_translation(translated(text, bundle, options, self.answer))
        assert not violations


def run(unit: str, head: str = "") -> Make:
    return lambda size: (head + unit * (size // len(unit)) + " Hallo Welt.", pb.Protection())


def nest(opening: str, closing: str) -> Make:
    def make(size: int) -> tuple[str, pb.Protection]:
        depth = size // len(opening + closing)
        return f"Ja {opening * depth} gut {closing * depth} Hallo Welt.", pb.Protection()

    return make


def structures() -> Iterator[tuple[str, Make]]:
    for unit in dict.fromkeys((*SIGNS, *LETTERS, *UNITS)):
        yield f"run of {unit!a}", run(unit)
    for opening, closing in NESTS:
        yield f"nest of {opening!a} and {closing!a}", nest(opening, closing)
    for head, unit in product(HEADS, ("a", "a ", "1", ".", "\n")):
        yield f"{head!a} before {unit!a}", run(unit, head)


def pairs() -> Iterator[tuple[str, Make]]:
    for one, other in random.Random(3).sample([*combinations((*SIGNS, *LETTERS), 2)], NUM_PAIRS):
        yield f"run of {one + other!a}", run(one + other)


def protections() -> Iterator[tuple[str, Make]]:
    def terms(*sources: str, text: str) -> Make:
        protection = pb.Protection(terms=[pb.Term(source=source, target="x") for source in sources])
        return lambda size: (text * (size // len(text)) + " Hallo.", protection)

    def growing(source: Callable[[int], str], text: str) -> Make:
        """As many terms as take up so many characters all together."""

        def make(size: int) -> tuple[str, pb.Protection]:
            sources = [source(rank) for rank in range(int(size**0.5))]
            return text * (size // len(text)), pb.Protection(
                terms=[pb.Term(source=source, target="x") for source in sources]
            )

        return make

    def many(size: int) -> tuple[str, pb.Protection]:
        words = [f"wort{rank}" for rank in range(size // 10)]
        return " ".join(words) + " ja.", pb.Protection(do_not_translate=words)

    yield (
        "terms in other forms",
        lambda size: (
            "Kunden " * (size // 7) + " Hallo.",
            pb.Protection(
                terms=[pb.Term(source="Kunde", target="x")], inflected_terms=True, forbidden=["Kunde", "x y"]
            ),
        ),
    )
    yield "a term everywhere", terms("a", text="a b ")
    yield "terms of two lengths", terms("a", "b c", "c d e", text="a b c d e ja ")
    yield "terms that hold each other", growing(lambda rank: "a " * rank + "a", "a ")
    yield "terms that end in a word", growing(lambda rank: "ab " * rank + "a", "ab ")
    yield "terms of a script without spaces", growing(lambda rank: "看" * (rank + 1), "看")
    yield "many terms", many
    patterns = pb.Protection(patterns=["a" * length for length in range(1, 17)])
    yield "patterns that hold each other", lambda size: ("a" * size + " ja.", patterns)
    anything = pb.Protection(patterns=[".", "(?s).."])
    yield "patterns that match anything", lambda size: ("ab " * (size // 3), anything)


def cases(kinds: Iterator[tuple[str, Make]], num_settings: int = len(SETTINGS)) -> list[Case]:
    """Each in all settings, or in as many of them as are drawn."""
    drawn = random.Random(1)
    return [
        Case(f"{name}, {setting}", make, answer, options)
        for name, make in kinds
        for setting, answer, options in drawn.sample(SETTINGS, num_settings)
    ]


ALL = [*cases(structures()), *cases(pairs(), 1), *cases(protections())]
# They took the square of the time once.
FAULTS = {
    f"{name}, plain, copies"
    for name in (
        *(f"run of {unit!a}" for unit in ("I. ", "<b>a", "``a")),
        "nest of '{a, plural, one {' and '}}'",
        "nest of '{' and '}'",
        "terms that hold each other",
    )
}
SOME = [*(case for case in ALL if case.name in FAULTS), *random.Random(2).sample(ALL, 8)]


@pytest.mark.parametrize("case", SOME, ids=str)
def test_twice_the_text_takes_twice_the_time(case: Case, bundle: Bundle) -> None:
    case.check(bundle)


@pytest.mark.long
@pytest.mark.parametrize("case", ALL, ids=str)
def test_twice_any_text_takes_twice_the_time(case: Case, bundle: Bundle) -> None:
    case.check(bundle)


class _Watched(Wanted):
    """Notes the longest time of the processor between two checks."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0.0
        self._last = process_time()

    def check(self) -> None:
        self.longest = max(self.longest, process_time() - self._last)
        super().check()
        self._last = process_time()


@pytest.mark.parametrize(
    "unit",
    ["Wort. ", *(pytest.param(unit, marks=pytest.mark.long) for unit in ("<b>a", "½a", "。a", "😀a "))],
)
def test_a_long_text_is_asked_whether_it_is_wanted_all_the_time(unit: str, bundle: Bundle) -> None:
    wanted = _Watched()
    text = unit * (LIMITS.max_text_characters // len(unit))
    # A collection looks at all objects of all tests.
    gc.disable()
    try:
        prepare(text, bundle, PLAIN, None, (), wanted)
        wanted.check()
    finally:
        gc.enable()
    assert wanted.longest < 1
    wanted.drop()
    with pytest.raises(UnwantedError):
        prepare(text, bundle, PLAIN, None, (), wanted)

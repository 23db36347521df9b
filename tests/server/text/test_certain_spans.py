"""What is kept without being asked for, and what is not: the examples of the table itself, and others."""

import re

import pytest
from tests.growth import assert_linear

from dragoman_server.text.find.table import TABLE

UNITS = (
    "{", "%", "a@", "`", "{a,plural,", "/a", "www.", "a.", ":", "#", "1\ufe0f", "\\", "http://", "$",
    "@a.", "A1", "A-", "1a", "a1", "A1-", "1 ", "AB12 ", "A₂", "A1.1", "看", "/看", "#看", "@看", "看.",
    "http://看", "~/看", "看@看.", "한글", "한글-", "한1", "한a", "a한.1", "x@看a", "%%", "1%%", "1.", "%s%s",
    "%(a)s", "%<a", "%dx", "[[", "[[a]]", "[%", "<%", "<?", "*|", "*|a|*", "$t(", "@:", "@:a.", "@:a",
    "a->", "a_A", "a/", "$a_", "-f", "⌘", "Ctrl+", "A₂(", "m/", "·A", "a::", "%lx", "v1.", "1x", "-a=", "a.b",
    "__", "__a", "_a", "__a__", ":a:`", ":a:", ":a-", "\\n", "a\\n", "{ ", "{a(", '{"', "<0>", "&a",
    "a&auml;", "aa&", "a&aa;a", "&#1", "{ a", "\\a", "a\\", "::", "a:", "a()", "a_b", "aB", "aBa", "--a_",
    "--a", "Alt + ", "\\[", "00:", "a@a:a/", "%1", "%-", "{看",
)  # fmt: skip
EXAMPLES = [example for rule in TABLE.rules for example in rule.examples]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_table_are_found(example: str) -> None:
    text = re.sub("[⟦⟧]", "", example)
    found = [text[slice(*mark.span)] for mark in TABLE.find(text)]
    assert found == re.findall("⟦(.*?)⟧", example, re.DOTALL)


def test_every_rule_has_examples_in_which_something_is_found() -> None:
    assert all(any("⟦" in example for example in rule.examples) for rule in TABLE.rules)


@pytest.mark.parametrize(
    "unit",
    [
        *UNITS[::4],
        *(pytest.param(unit, marks=pytest.mark.long) for place, unit in enumerate(UNITS) if place % 4),
    ],
)
def test_it_takes_time_in_proportion_to_the_text(unit: str) -> None:
    assert_linear(lambda size: list(TABLE.find(unit * size)), 10_000 // len(unit))


def test_an_argument_of_any_length_is_one_span_if_it_is_closed() -> None:
    opening = "{a, plural, one {"
    nest = opening * 300 + "ja" + "}}" * 300
    assert [span.span for span in TABLE.find(f"Ein {nest} da.")] == [(4, 4 + len(nest))]
    assert list(TABLE.find(opening * 300)) == []

"""What is kept without being asked for: the examples of the table, and what programs put values into."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_linear
from tests.server.text.answering import ANSWERING, HTML, PLAIN, Answer, noting, shipped, translated

from dragoman_server.text.find.finding import TABLE
from dragoman_server.text.options import TranslationOptions

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


WORDS = st.lists(st.sampled_from(["Noch", "viele", "Hunde", "schlafen", "im", "Garten", "und"]), max_size=3)
NAME = st.from_regex(r"[a-z]{1,6}(_[a-z]{1,6})?", fullmatch=True)
CONVERSION = st.from_regex(r"[-+0#]?([1-9][0-9]?)?(\.[0-9])?[sdiuxXfge]", fullmatch=True)
PRINTF = st.just("%%") | CONVERSION.map("%{}".format)
PYTHON = st.just("%%") | st.builds("%({}){}".format, NAME, CONVERSION)
OTHERS = (
    PRINTF,
    st.integers(0, 99).map("{}%%".format),
    *(
        NAME.map(form.format)
        for form in (
            "%{{{}}}", "${{{}}}", "{{{}}}", "{{{{{}}}}}", "{{{{ {} }}}}", "{{ -{} }}", "{{ ${} }}", "[[{}]]",
            "<%= {} %>", "*|{}|*", "__{}__", ":ref:`{}`", "$t({})", "@:a.{}", "%<{}>s",
        )
    ),
    st.integers(0, 20).map("<{}/>".format),
    st.integers(1, 9).map("%{}$s".format),
    st.integers(0, 9).map('$t(a:b, {{"n": {}}})'.format),
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn, *kinds: st.SearchStrategy[str]) -> tuple[str, list[str]]:
    """A text of words and runs of directives, of which some touch; and the runs."""
    parts, runs = draw(WORDS), []
    for _ in range(draw(st.integers(1, 3))):
        run = "".join(draw(st.lists(st.one_of(kinds), min_size=1, max_size=3)))
        runs.append(run)
        parts += [run, *draw(WORDS)]
    return " ".join(parts), runs


@ANSWERING
@given(drawn=texts(PRINTF))
def test_directives_of_printf_come_out_once_together(answer: Answer, drawn: tuple[str, list[str]]) -> None:
    text, runs = drawn
    found = translated(text, shipped(), PLAIN, answer).text
    for run in runs:
        assert found.count(run) == text.count(run), (text, found)
    directive = "%[-+0#]?[0-9]*(?:[.][0-9])?[a-zA-Z%]"
    assert Counter(re.findall(directive, found)) == Counter(re.findall(directive, text))


@ANSWERING
@given(drawn=texts(PYTHON))
def test_a_translation_takes_the_values_of_its_text(answer: Answer, drawn: tuple[str, list[str]]) -> None:
    text, _ = drawn
    values = dict.fromkeys(re.findall(r"%\((.*?)\)", text), 7)
    found = translated(text, shipped(), PLAIN, answer).text
    assert sorted(re.findall("7+", found % values)) == sorted(re.findall("7+", text % values)), found


@ANSWERING
@pytest.mark.parametrize("options", [PLAIN, HTML], ids=["plain", "html"])
@given(drawn=texts(*OTHERS))
def test_so_do_others(answer: Answer, options: TranslationOptions, drawn: tuple[str, list[str]]) -> None:
    text, runs = drawn
    if options is HTML:
        text, *runs = (each.replace("<", "&lt;").replace(">", "&gt;") for each in (text, *runs))
    found = translated(text, shipped(), options, answer).text
    for run in runs:
        assert found.count(run) == text.count(run), (text, found)


@ANSWERING
def test_what_touches_does_so_across_a_tag(answer: Answer) -> None:
    found = translated("Es sind <b>{n}</b>{name} da.", shipped(), HTML, answer).text
    assert "} {" not in re.sub("</?b>", "", found)


@ANSWERING
@pytest.mark.parametrize("end", ["\\n", "\\n\\n", "\\r\\n"])
def test_a_line_end_of_programs_bounds_sentences(answer: Answer, end: str) -> None:
    shown, notes = noting(answer)
    found = translated(f"Guten Tag{end}Wie geht es{end}heute {{n}}{end}", shipped(), PLAIN, notes).text
    assert found.count(end) == 3
    assert found.count("\\") == 3 * end.count("\\")
    assert found.endswith(end)
    assert shown[:2] == ["Guten Tag", "Wie geht es"]


@ANSWERING
def test_gettext_accepts_what_comes_of_its_messages(answer: Answer, tmp_path: Path) -> None:
    messages = ["100%% der %d Dateien", "%s%% fertig", "50%% von %s", "%-5s%s und %lu%%", "%.2f%% von %i"]
    entries = [
        f'#, c-format\nmsgid "{text}"\nmsgstr "{translated(text, shipped(), PLAIN, answer).text}"\n'
        for text in messages
    ]
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
    (tmp_path / "de.po").write_text("\n".join([header, *entries]))
    ran = subprocess.run(
        ["msgfmt", "-c", "-o", "-", tmp_path / "de.po"], capture_output=True, check=False, env={"LC_ALL": "C"}
    )
    assert b"format" not in ran.stderr, ran.stderr

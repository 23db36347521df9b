"""Catalogues of gettext and XLIFF: segments, plurals, languages, accelerators, and what is broken."""

import re
import shutil
import subprocess
from dataclasses import replace

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clients.jobs.running import DE_EN
from tests.files.documents import units_of, xliff

from dragoman_files.format import FormatName

LONGEST_ERROR = 700
MESSAGES = '\nmsgid "ja"\nmsgstr ""\n\nmsgid "ein"\nmsgid_plural "viele"\nmsgstr[0] ""\nmsgstr[1] ""\n'


def catalogue(header: str) -> str:
    return f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"{header}\\n"\n{MESSAGES}'


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("Plural-Forms: nplurals=2", "it has no nplurals and plural"),
        ("Plural-Forms: nplurals=2; plural=n != ;", "unexpected"),
        ("Plural-Forms: nplurals=2; plural=1/0;", "division"),
        ("Plural-Forms: nplurals=2; plural=7;", "it gives one thing form 7, and has none above 1"),
        (f"Plural-Forms: nplurals={'9' * 10_000}; plural=n;", "10000 digits"),
        (f"Plural-Forms: {'x' * 1_000_000}", "it has no nplurals and plural"),
        (f"Plural-Forms: nplurals=2; plural={'n!=1||' * 100_000}n;", "too long"),
        (f"Plural-Forms: nplurals=2; plural={'(' * 10_000}n{')' * 10_000};", "too long"),
        (f"Plural-Forms: nplurals=2; plural={'x' * 900};", "x" * 150),
    ],
    ids=["half", "rest", "zero", "seven", "digits", "words", "long", "nested", "token"],
)
def test_a_broken_header_is_told_in_a_few_words(refuse, header, told):
    said = refuse("in.po", catalogue(header), r"in\.po: the header's Plural-Forms is broken")
    assert told in said
    assert '"nplurals=2; plural=(n != 1);"' in said
    assert len(said) < LONGEST_ERROR


@pytest.mark.parametrize(
    "header", ["", "Unsinn", f"Language: {'d' * 100_000}"], ids=["none", "words", "long"]
)
def test_other_headers_are_no_matter(translate, header):
    expected = given = catalogue(header)
    for place, text in (('"ja"\nmsgstr', "JA"), ("msgstr[0]", "EIN"), ("msgstr[1]", "VIELE")):
        expected = expected.replace(f'{place} ""', f'{place} "{text}"')
    assert translate("po", given) == expected


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("hallo\n", r"Syntax error in po file \(line 1\)"),
        ("x" * 1_000_000 + "\n", r"no catalogue of gettext"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[x] ""\n', r"line 3"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[9] ""\nmsgstr[8] ""\n', r"line 1 has no msgstr\[8\] where"),
        (catalogue("").replace("UTF-8", "q" * 100_000), "q" * 10),
    ],
    ids=["text", "long", "form", "order", "charset"],
)
def test_what_is_no_catalogue_is_told_in_a_few_words(refuse, content, told):
    assert len(refuse("in.po", content, told)) < LONGEST_ERROR


TEMPLATE = (
    '# A title.\n#\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Project-Id-Version: PACKAGE\\n"\n"Language: \\n"\n'
    '"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=CHARSET\\n"\n'
    '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    'msgid "über"\nmsgstr ""\n\nmsgid "%d hund"\nmsgid_plural "%d hunde"\nmsgstr[0] ""\nmsgstr[1] ""\n'
)


@pytest.mark.parametrize(
    ("language", "num_forms"),
    [("de", 2), ("fr", 2), ("pl", 3), ("ja", 1), ("ar", 6), ("pt-BR", 2), ("xx", 2)],
)
def test_a_template_gets_the_plurals_and_the_charset_of_its_language(run, tmp_path, language, num_forms):
    source, output = tmp_path / "in.pot", tmp_path / "out.po"
    source.write_text(TEMPLATE)
    run(source, output, settings=replace(DE_EN, target=language))
    translated = output.read_text()
    assert f'"Language: {language.replace("-", "_")}\\n"' in translated
    assert "charset=UTF-8" in translated
    assert f"nplurals={num_forms};" in translated
    assert "fuzzy" not in translated
    assert translated.count("msgstr[") == num_forms
    assert 'msgstr[0] ""' not in translated
    if shutil.which("msgfmt"):
        command = ["msgfmt", "--check-format", "--check-domain", "-o", "-", output]
        checked = subprocess.run(command, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr


SEGMENTED = (
    '<trans-unit id="1"><source>Ja. Nein.</source><seg-source><mrk mtype="seg" mid="1">Ja.</mrk> '
    '<mrk mtype="seg" mid="2">Nein.</mrk></seg-source>{}</trans-unit>'
)


def target(first: str, second: str) -> str:
    return f'<target><mrk mtype="seg" mid="1">{first}</mrk> <mrk mtype="seg" mid="2">{second}</mrk></target>'


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"/></target>', target("JA.", "NEIN.")),
        ("", target("JA.", "NEIN.")),
        ("<target/>", target("JA.", "NEIN.")),
        (target("", "No way."), target("JA.", "No way.")),
        (target("Yes.", ""), target("Yes.", "NEIN.")),
        (target("Yes.", "No."), target("Yes.", "No.")),
        ("<target>Yes. No.</target>", "<target>Yes. No.</target>"),
    ],
    ids=["empty", "none", "bare", "first", "second", "done", "whole"],
)
def test_a_segmented_unit_is_translated_by_segment(translate, given, expected):
    assert translate("xlf", xliff(SEGMENTED.format(given))) == xliff(SEGMENTED.format(expected))


@pytest.mark.parametrize("state", ["new", "needs-translation"])
def test_a_target_that_is_filled_is_translated(translate, state):
    unit = '<trans-unit id="1"><source>ja</source><target xml:lang="en" state="{}">{}</target></trans-unit>'
    for content in ("", "ja"):
        assert translate("xlf", xliff(unit.format(state, content))) == xliff(unit.format("translated", "JA"))
    final = xliff(unit.format("final", "yes"))
    assert translate("xlf", final) == final


def test_the_target_language_is_the_jobs(translate):
    unit = '<trans-unit id="1"><source>ja</source></trans-unit>'
    given = xliff(unit).replace(' target-language="en"', "")
    written = translate("xlf", given, settings=replace(DE_EN, target="pt-BR"))
    assert '<file source-language="de" datatype="plaintext" original="a" target-language="pt-BR">' in written


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (replace(DE_EN, source="fr"), "its source-language is 'de', and --from says 'fr': say --from de"),
        (replace(DE_EN, target="es"), "its target-language is 'en', and --to says 'es': say --to en"),
    ],
    ids=["source", "target"],
)
def test_a_file_in_other_languages_is_refused(refuse, settings, told):
    content = xliff('<trans-unit id="1"><source>ja</source></trans-unit>')
    refuse("in.xlf", content, told, settings=settings)


WORDS = ["Datei", "öffnen", "Speichern", "unter", "Beenden", "Ansicht", "Größe", "neu"]


def through(name: FormatName, content: str, translation: str) -> tuple[list[str], str]:
    """The texts of a file, and the file with this translation of each."""
    units = list(units_of(name, content.encode()))
    written = b"".join(unit.write(translation if unit.text else None, {}) for unit in units)
    return [unit.text for unit in units], written.decode()


def of_catalogue(text: str, translation: str) -> tuple[list[str], str]:
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    texts, written = through("po", f"{header}{polib.POEntry(msgid=text)}", translation)
    return texts, polib.pofile(written)[0].msgstr


@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    place=st.integers(0, 30),
    mark=st.sampled_from("&_"),
    translation=st.lists(
        st.sampled_from(["Save", "as", "file", "%s", "{name}", "open", "Äh", "..."]), min_size=1
    ),
)
def test_the_mark_is_before_a_letter(words: list[str], place: int, mark: str, translation: list[str]) -> None:
    letters = [found.start() for found in re.finditer(r"\b\w" if mark == "_" else r"\w", " ".join(words))]
    start = letters[place % len(letters)]
    text = " ".join(words)
    texts, written = of_catalogue(f"{text[:start]}{mark}{text[start:]}", " ".join(translation))
    assert texts == [text]
    assert written.replace(mark, "") == " ".join(translation)
    if {*translation} <= {"%s", "{name}", "..."}:
        assert mark not in written
    else:
        assert re.findall(f"{mark}.", written)[0][1].isalpha()
        assert not re.search(rf"[%{{]\w*{mark}", written), written


@pytest.mark.parametrize(
    ("text", "translation", "written"),
    [
        ("&Speichern", "Save", "&Save"),
        ("B&eenden", "Quit", "&Quit"),
        ("Speichern &unter …", "Save as guest user", "Save as guest &user"),
        ("_Öffnen", "Open", "_Open"),
        ("&Datei", "文件", "文件(&D)"),
    ],
)
def test_it_stands_at_the_same_letter_where_there_is_one(text: str, translation: str, written: str) -> None:
    assert of_catalogue(text, translation) == ([text.replace("&", "").replace("_", "")], written)


@pytest.mark.parametrize(
    "text",
    [
        *("AT&T", "Tom & Anna", "Fragen Q&A", "&copy; Firma", "user_id fehlt", "__name__ fehlt"),
        *("Ja && nein", "Siehe a.de/?b=1&c=2", "&a &b"),
    ],
)
def test_other_signs_are_none(text: str) -> None:
    assert of_catalogue(text, "x y") == ([text], "x y")


def test_xliff_has_them_as_references() -> None:
    unit = '<trans-unit id="1"><source>&amp;Datei <g id="1">neu</g></source></trans-unit>'
    texts, written = through("xliff", xliff(unit), "File <g3>new</g3>")
    assert "&" not in texts[0]
    assert '<target>&amp;File <g id="1">new</g></target>' in written

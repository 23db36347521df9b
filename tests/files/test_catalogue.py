"""Catalogues of gettext whose headers or messages are broken."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from tests.clients.jobs.running import DE_EN
from tests.clients.jobs.running import run as run_job

from dragoman import Client
from dragoman.jobs import JobError

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
    ids="half rest zero seven digits words long nested token".split(),  # noqa: SIM905
)
def test_a_broken_header_is_told_in_a_few_words_before_anything_is_written(run, tmp_path, header, told):
    (tmp_path / "in.po").write_text(catalogue(header))
    with pytest.raises(JobError, match=r"in\.po: the header's Plural-Forms is broken") as raised:
        run(tmp_path / "in.po", tmp_path / "out.po")
    assert told in str(raised.value)
    assert '"nplurals=2; plural=(n != 1);"' in str(raised.value)
    assert len(str(raised.value)) < LONGEST_ERROR
    assert [path.name for path in tmp_path.iterdir()] == ["in.po"]


@pytest.mark.parametrize(
    "header",
    ["", "Unsinn", f"Language: {'d' * 100_000}"],
    ids=["none", "words", "long"],
)
def test_other_headers_are_no_matter(translate, header):
    given = catalogue(header)
    expected = given.replace('"ja"\nmsgstr ""', '"ja"\nmsgstr "JA"')
    expected = expected.replace('msgstr[0] ""', 'msgstr[0] "EIN"').replace(
        'msgstr[1] ""', 'msgstr[1] "VIELE"'
    )
    assert translate("po", given) == expected


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("hallo\n", r"Syntax error in po file \(line 1\)"),
        ("x" * 1_000_000 + "\n", r"no catalogue of gettext"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[x] ""\n', r"line 3"),
        (
            'msgid "a"\nmsgid_plural "b"\nmsgstr[9] ""\nmsgstr[8] ""\n',
            r"line 1 has no msgstr\[8\] where it should",
        ),
        (catalogue("").replace("UTF-8", "q" * 100_000), "q" * 10),
    ],
    ids=["text", "long", "form", "order", "charset"],
)
def test_what_is_no_catalogue_is_told_in_a_few_words_before_anything_is_written(run, tmp_path, content, told):
    (tmp_path / "in.po").write_text(content)
    with pytest.raises(JobError, match=told) as raised:
        run(tmp_path / "in.po", tmp_path / "out.po")
    assert len(str(raised.value)) < LONGEST_ERROR
    assert [path.name for path in tmp_path.iterdir()] == ["in.po"]


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
def test_a_template_gets_the_plurals_and_the_charset_of_its_language(server, tmp_path, language, num_forms):
    source, output = tmp_path / "in.pot", tmp_path / "out.po"
    source.write_text(TEMPLATE)
    with Client(server.address) as client:
        run_job(client, source, output, replace(DE_EN, source="de", target=language))
    translated = output.read_text()
    assert f'"Language: {language.replace("-", "_")}\\n"' in translated
    assert "charset=UTF-8" in translated
    assert f"nplurals={num_forms};" in translated
    assert "fuzzy" not in translated
    assert translated.count("msgstr[") == num_forms
    assert 'msgstr[0] ""' not in translated
    if shutil.which("msgfmt"):
        checked = subprocess.run(
            ["msgfmt", "--check-format", "--check-domain", "-o", "-", output],
            capture_output=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stderr

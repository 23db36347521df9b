"""The texts among the words of `dragoman translate`: what is one, what is an option, and what is a file."""

import pytest
from click.testing import CliRunner

from dragoman.cli import main

DE_EN = ("--from", "de", "--to", "en")


@pytest.fixture
def translate(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments, stdin=None):
        environment = {"DRAGOMAN_SERVER": server.address}
        return CliRunner().invoke(main, ("translate", *arguments), input=stdin, env=environment)

    return call


@pytest.mark.parametrize(
    "text",
    [
        "- Hallo",
        "-5 Grad",
        "-5",
        "-hallo du",
        "-h ist ein Buchstabe",
        "--ja, sagte er",
        "-\nja",
        "---",
        "--5",
    ],
)
@pytest.mark.parametrize("is_last", [True, False])
def test_a_text_may_begin_with_a_dash(translate, text, is_last):
    told = translate(*DE_EN, "eins", text, "zwei") if is_last else translate("eins", text, "zwei", *DE_EN)
    assert (told.exit_code, told.stdout, told.stderr) == (0, f"EINS\n{text.upper()}\nZWEI\n", "")


def test_the_value_of_an_option_is_no_text(translate, server):
    told = translate(*DE_EN, "--prefix", "- Yes", "--length-penalty=0.5", "- ja", "--", "--beam")
    assert (told.exit_code, told.stdout) == (0, "- JA\n--BEAM\n")
    assert server.servicer.requests[0].options.target_prefix == "- Yes"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--tpo", "No such option '--tpo'. (Did you mean one of: '--pivot', '--to'?)"),
        ("--tpo=en", "No such option '--tpo'."),
        ("-Hallo", "No such option '-Hallo'. A text that begins with a dash stands after `--`."),
        ("-hallo", "No such option '-hallo'. A text that begins with a dash stands after `--`."),
        ("--qqqqqq", "No such option '--qqqqqq'. A text that begins with a dash stands after `--`."),
    ],
)
def test_an_option_that_there_is_not_is_told(translate, word, told):
    refused = translate(*DE_EN, word, "ja")
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert translate(*DE_EN, "--", word).stdout == f"{word.upper()}\n"


def test_options_of_one_letter_are_options(translate):
    assert translate("-h").stdout.startswith("Usage: ")


def test_a_dash_alone_is_standard_input(translate):
    assert translate(*DE_EN, "-", stdin="ja\nnein\n").stdout == "JA\nNEIN\n"


@pytest.mark.parametrize("name", ["book.de", "Mein Buch", "./book.de"])
def test_a_text_that_names_a_file_is_asked_about(translate, server, tmp_path, name):
    (tmp_path / name).write_text("ja\n")
    refused = translate(*DE_EN, "nein", name)
    assert refused.exit_code == 2
    for way in ("dragoman translate-file", "OUTPUT", "dragoman translate ... < ", "`--`"):
        assert way in refused.stderr
    assert not server.servicer.requests
    assert translate(*DE_EN, "--", name).stdout == f"{name.upper()}\n"


@pytest.mark.parametrize("text", ["folder", "nein\x00", "ä" * 5000, ""])
def test_a_text_that_names_no_file_is_a_text(translate, tmp_path, text):
    (tmp_path / "folder").mkdir()
    assert translate(*DE_EN, text).stdout == f"{text.upper()}\n"

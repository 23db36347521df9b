"""The client and the command as somebody new to them calls them, with the shipped models."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.server.web import conftest
from tests.server.web.conftest import Web

from dragoman import AsyncClient, Client, InvalidRequestError
from dragoman.cli.group import main

DOG = "Der Hund schläft im Garten."
THE_DOG = "The dog is sleeping in the garden."
FRENCH = "Je voudrais un café, s'il vous plaît."


glossaries, web = conftest.glossaries, conftest.web


@pytest.fixture(scope="module")
def client(web: Web) -> Iterator[Client]:
    with Client(web.grpc_address) as client:
        yield client


def run(web: Web, *arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin, env={"DRAGOMAN_SERVER": web.grpc_address})


def test_one_string_has_one_translation(client: Client) -> None:
    assert client.translate(DOG, source="de", target="en").text == THE_DOG
    assert [each.text for each in client.translate([DOG], source="de", target="en")] == [THE_DOG]


async def test_one_string_has_one_translation_awaited(web: Web) -> None:
    async with AsyncClient(web.grpc_address) as client:
        assert (await client.translate(DOG, source="auto", target="en")).text == THE_DOG
        found = await client.translate([DOG, "1234", THE_DOG], source="auto", target="en")
        assert [each.text for each in found] == [THE_DOG, "1234", THE_DOG]


def test_each_text_is_translated_from_its_own_language(client: Client) -> None:
    texts = [DOG, "The dog is sleeping.", "42", "Brot"]
    to_english = client.translate(texts, source="auto", target="en")
    assert [each.text for each in to_english[:3]] == [THE_DOG, "The dog is sleeping.", "42"]
    assert to_english[1].hypotheses == ()
    assert to_english[3].model.source_language == "de"
    to_german = client.translate(["The dog is sleeping.", DOG], source="auto", target="de")
    assert to_german[0].model.name == "en-de"
    assert to_german[1].text == DOG
    with pytest.raises(InvalidRequestError, match=r"texts\[1\] is in no language of the server.*fr"):
        client.translate([DOG, FRENCH], source="auto", target="en")


def test_the_command_detects_texts_lines_and_files(web: Web, tmp_path: Path) -> None:
    options = ("--from", "auto", "--to", "en")
    assert run(web, "translate", *options, DOG, THE_DOG).stdout == f"{THE_DOG}\n{THE_DOG}\n"
    assert run(web, "translate", *options, stdin=f"1\n{DOG}\nJa.\n").stdout.splitlines()[1] == THE_DOG
    (tmp_path / "a.txt").write_text(f"{DOG}\n")
    done = run(web, "translate-file", *options, str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "b.txt").read_text() == f"{THE_DOG}\n"
    refused = run(web, "translate", *options, FRENCH)
    assert (refused.exit_code, "--from is auto, and texts[0]" in refused.stderr) == (1, True)
    (tmp_path / "c.txt").write_text(f"{FRENCH}\n")
    refused = run(web, "translate-file", *options, str(tmp_path / "c.txt"), str(tmp_path / "d.txt"))
    assert (refused.exit_code, "--from is auto" in refused.stderr) == (1, True)


@pytest.mark.parametrize("more", [(), ("--n-best", "2"), ("--alignments",)], ids=str)
def test_the_command_tells_what_to_check(web: Web, more: tuple[str, ...]) -> None:
    text = "Ich sehe 北京."
    done = run(web, "translate", "--from", "de", "--to", "en", *more, text)
    assert done.exit_code == 0
    lines = done.stderr.splitlines()
    assert any(line.startswith("text 1: '北京") and "stays as it is" in line for line in lines), lines
    assert "北京" in done.stdout
    as_json = run(web, "translate", "--from", "de", "--to", "en", "--json", text)
    assert as_json.stderr == ""
    assert "unknown_tokens" in as_json.stdout


def test_models_fit_a_terminal_and_say_what_they_are_good_for(web: Web) -> None:
    terminal = {"DRAGOMAN_SERVER": web.grpc_address, "FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}
    listed = CliRunner().invoke(main, ["models"], env=terminal).stdout
    lines = [re.sub("\x1b.*?m", "", line) for line in listed.splitlines()]
    assert max(map(len, lines)) <= 100
    begin = lines[0].index("GOOD FOR")
    good_for = " ".join(word for line in lines for word in line[begin:].split())
    assert "German to English: everyday sentences, documentation, interfaces" in good_for
    # What reads a pipe has a line for each.
    heading, *models = run(web, "models").stdout.splitlines()
    assert heading.split() == ["MODEL", "FROM", "TO", "SIZE", "RUNS", "ON", "QUALITY", "GOOD", "FOR"]
    assert [line.partition("/")[0] for line in models] == ["de-en", "en-de"]
    card = run(web, "models", "--model", "de-en").stdout
    for fact in ("de-en/", "Small: made to answer fast", "chrF 46", "length penalty 2.2", "CC BY-SA 4.0"):
        assert fact in card
    assert "en-de" not in card


def test_a_glossary_that_is_not_there_is_told_by_its_option(web: Web) -> None:
    done = run(web, "translate", "--from", "de", "--to", "en", "--glossary", "nope", DOG)
    assert done.exit_code == 1
    assert done.stderr == "Error: --glossary is 'nope', which the server does not have; it has house\n"

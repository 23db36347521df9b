"""Links by a saved aligner as ranges of characters, and `dragoman align-texts --aligner`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.training.alignment.test_align_command import train

from dragoman.cli.align_texts import align_texts
from dragoman_training.alignment.character_links import open_character_aligner


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("aligner"))


def linked(folder: Path, text: str, translation: str) -> list[tuple[str, str]]:
    links = open_character_aligner(str(folder))(text, translation)
    assert all(0 < link.weight <= 1 for link in links)
    return [(text[slice(*link.source)], translation[slice(*link.target)]) for link in links]


def test_words_are_linked_where_they_stand(folder: Path) -> None:
    assert linked(folder, "  der\tHund sieht", "dog the sees ") == [
        ("Hund", "dog"),
        ("der", "the"),
        ("sieht", "sees"),
    ]


def test_as_many_lines_are_linked_line_by_line(folder: Path) -> None:
    found = linked(folder, "der hund\n\nder vogel", "the dog\r\nthe bird\n")
    assert found == [("der", "the"), ("hund", "dog"), ("der", "the"), ("vogel", "bird")]
    links = open_character_aligner(str(folder))("der hund\n\nder vogel", "the dog\r\nthe bird\n")
    assert links[2].source == (10, 13)
    assert links[2].target == (9, 12)


def test_other_numbers_of_lines_are_linked_at_once(folder: Path) -> None:
    assert linked(folder, "hund\nvogel", "dog bird") == [("hund", "dog"), ("vogel", "bird")]


@pytest.mark.parametrize("pair", [("", ""), ("hund", ""), (" \n", "dog")], ids=repr)
def test_a_side_without_words_has_no_links(folder: Path, pair: tuple[str, str]) -> None:
    assert linked(folder, *pair) == []


def test_texts_the_other_way_round_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="belong the other way round"):
        linked(folder, "the dog sees", "der hund sieht")


def test_the_command_needs_no_server(folder: Path) -> None:
    arguments = ["--aligner", str(folder), "der hund", "the dog"]
    shown = CliRunner().invoke(align_texts, ["--json", *arguments], catch_exceptions=False)
    links = json.loads(shown.output)["alignments"]
    assert [(link["source_start"], link["target_end"]) for link in links] == [(0, 3), (4, 7)]
    drawn = CliRunner().invoke(align_texts, arguments, catch_exceptions=False)
    assert "hund" in drawn.output
    assert "believed in" in drawn.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from", "de", "--aligner", "."], "--from is of a server"),
        (["--from", "de"], "give --from and --to for a model of the server"),
    ],
    ids=["both", "half"],
)
def test_a_server_or_an_aligner(options: list[str], said: str) -> None:
    result = CliRunner().invoke(align_texts, [*options, "der hund", "the dog"])
    assert result.exit_code == 2
    assert said in result.output


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(align_texts, ["--aligner", str(tmp_path), "der hund", "the dog"])
    assert "is no saved aligner" in str(result.exception)


def test_what_would_take_minutes_at_once_is_refused(folder: Path) -> None:
    lines = ["--aligner", str(folder), "--max-words", "3", "der hund\nsieht", "the dog\nsees"]
    assert CliRunner().invoke(align_texts, lines).exit_code == 0
    result = CliRunner().invoke(align_texts, [*lines[:4], "der hund der hund\nsieht", "the dog sees"])
    assert "has 5 words, and at most 3 are; give both sides as many lines" in str(result.exception)

"""The test set, and long sentences made of its own."""

from pathlib import Path

from dragoman_training.classics.study.inputs import StudySet, read_study_set

SOURCES = ["Ein Mann geht.", "Zwei Hunde laufen .", "Was ruft?", "Die Frau singt.", "Nie!"]
REFERENCES = ["A man walks.", "Two dogs run .", "What calls?", "The woman sings.", "Never!"]


def read(folder: Path, join: int, sentences: str | None = None) -> StudySet:
    for side, lines in (("de", SOURCES), ("en", REFERENCES)):
        (folder / f"test.{side}").write_text("".join(f"{line}\n" for line in lines))
    return read_study_set(folder / "test.de", folder / "test.en", sentences, join=join)


def test_joined_sentences_stand_behind_the_test_sets_own_in_both_languages(tmp_path: Path) -> None:
    test_set = read(tmp_path, 2)
    assert [test_set.sources[number] for number in test_set.own] == SOURCES
    assert [test_set.references[number] for number in test_set.own] == REFERENCES
    assert [test_set.sources[number] for number in test_set.joined] == [
        "Ein Mann geht, zwei Hunde laufen .",
        "Was ruft, die Frau singt.",
    ]
    assert [test_set.references[number] for number in test_set.joined] == [
        "A man walks, two dogs run .",
        "What calls, the woman sings.",
    ]
    assert test_set.join == 2


def test_more_than_two_are_joined_to_one_sentence(tmp_path: Path) -> None:
    test_set = read(tmp_path, 5)
    assert test_set.references[5:] == ("A man walks, two dogs run, what calls, the woman sings, never!",)


def test_one_joins_none(tmp_path: Path) -> None:
    test_set = read(tmp_path, 1)
    assert test_set.sources == tuple(SOURCES)
    assert not test_set.joined


def test_examples_are_of_the_test_sets_own_sentences(tmp_path: Path) -> None:
    assert max(read(tmp_path, 2).examples) < len(SOURCES)
    assert read(tmp_path, 2, "5,1").examples == (4, 0)
